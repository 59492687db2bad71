-- trim_output: remove the oldest output of a job that has ended by a moment.
delete from queuectl.output
 where (job, run, at) in (
    select job, run, at
      from queuectl.output
     where job = (
        select seq
          from queuectl.jobs
         where id = %(id)s
           and state in ('completed', 'dead', 'cancelled')
           and finished_at <= %(before)s
           for update
     )
     order by job, run, at
     limit %(rows)s
 )
