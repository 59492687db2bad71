-- trim_runs: remove the oldest runs of a job that has ended by a moment.
delete from runs
 where job = (
    select seq
      from jobs
     where id = :id
       and state in ('completed', 'dead', 'cancelled')
       and finished_at <= :before
 )
   and number in (
    select number
      from runs
     where job = (select seq from jobs where id = :id)
     order by number
     limit :rows
 )
