-- unended: some jobs of a schedule that have not ended, and the one that waits for others, which may be among many.
(
    select id, held
      from queuectl.jobs
     where cron = %(name)s
       and state in ('pending', 'processing', 'failed', 'blocked')
     limit %(limit)s
)
union
select id, held
  from queuectl.jobs
 where id = %(waiting)s
   and state in ('pending', 'processing', 'failed', 'blocked')
 order by 1
