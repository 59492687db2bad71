-- ready_queues: the queues that have something to claim. Steps from name to name through jobs_ready (a loose index
-- scan), so it costs one probe a queue, not one row a job.
with recursive step (queue) as (
    select min(queue)
      from jobs
     where ready = 1
       and aside = 0
    union all
    select (
        select min(queue)
          from jobs
         where ready = 1
           and aside = 0
           and queue > step.queue
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null
