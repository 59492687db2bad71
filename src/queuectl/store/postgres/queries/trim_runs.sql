-- trim_runs: remove the oldest runs of a job that has ended by a moment.
delete from queuectl.runs
 where (job, number) in (
    select job, number
      from queuectl.runs
     where job = (
        select seq
          from queuectl.jobs
         where id = %(id)s
           and state in ('completed', 'dead', 'cancelled')
           and finished_at <= %(before)s
           for update
     )
     order by job, number
     limit %(rows)s
 )
