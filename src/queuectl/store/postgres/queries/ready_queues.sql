-- ready_queues: the queues that have something to claim. Steps from name to name through jobs_ready (a loose index
-- scan), so it costs one probe a queue, not one row a job.
with recursive step (queue) as (
    (
        select queue
          from queuectl.jobs
         where ready
           and not aside
         order by queue, rank, seq
         limit 1
    )
    union all
    select (
        select jobs.queue
          from queuectl.jobs
         where ready
           and not aside
           and jobs.queue > step.queue
         order by jobs.queue, jobs.rank, jobs.seq
         limit 1
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null
