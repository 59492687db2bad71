-- placed_queues: the queues with jobs that have not ended and say themselves how many of their key may run. Steps from name to
-- name through jobs_places, as ready_queues.sql.
with recursive step (queue) as (
    (
        select queue
          from queuectl.jobs
         where places is not null
           and state in ('blocked', 'pending', 'processing', 'failed')
         order by queue
         limit 1
    )
    union all
    select (
        select jobs.queue
          from queuectl.jobs
         where jobs.places is not null
           and jobs.state in ('blocked', 'pending', 'processing', 'failed')
           and jobs.queue > step.queue
         order by jobs.queue
         limit 1
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null
