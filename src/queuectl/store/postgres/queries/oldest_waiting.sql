-- oldest_waiting: since when the oldest due job of each queue waits. Steps through jobs_oldest from queue to queue; the
-- second half sees those whose time has come but whom nobody has let in yet.
with recursive step (queue) as (
    (
        select queue
          from queuectl.jobs
         where ready
         order by queue
         limit 1
    )
    union all
    select (
        select queue
          from queuectl.jobs
         where ready
           and queue > step.queue
         order by queue
         limit 1
    )
      from step
     where step.queue is not null
)
select queue, min(since)
  from (
    select queue, (select min(run_at) from queuectl.jobs where ready and queue = step.queue) as since
      from step
     where queue is not null
    union all
    select queue, min(run_at)
      from queuectl.jobs
     where not ready
       and not held
       and state in ('pending', 'failed')
       and run_at <= %(now)s
     group by queue
  ) as found
 group by queue
