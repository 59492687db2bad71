-- unended: some jobs of a schedule that have not ended, and the one that waits for others, which may be among many.
select id, held
  from (
    select id, held
      from jobs indexed by jobs_cron
     where cron = :name
       and state in ('pending', 'processing', 'failed', 'blocked')
     limit :limit
  )
union
select id, held
  from jobs
 where id = :waiting
   and state in ('pending', 'processing', 'failed', 'blocked')
 order by 1
