-- oldest_waiting: since when the oldest due job of each queue waits. Steps through jobs_oldest from queue to queue; the
-- second half sees those whose time has come but whom nobody has let in yet.
with recursive step (queue) as (
    select min(queue)
      from jobs
     where ready = 1
    union all
    select (
        select min(queue)
          from jobs
         where ready = 1
           and queue > step.queue
    )
      from step
     where step.queue is not null
)
select queue, min(since)
  from (
    select queue, (select min(run_at) from jobs where ready = 1 and queue = step.queue) as since
      from step
     where queue is not null
    union all
    select queue, min(run_at)
      from jobs indexed by jobs_due
     where ready = 0
       and held = 0
       and state in ('pending', 'failed')
       and run_at <= :now
     group by queue
  )
 group by queue
