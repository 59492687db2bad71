-- placed_queues: the queues with jobs that have not ended and say themselves how many of their key may run. Steps from name to
-- name through jobs_places, as ready_queues.sql.
with recursive step (queue) as (
    select min(queue)
      from jobs indexed by jobs_places
     where places is not null
       and state in ('blocked', 'pending', 'processing', 'failed')
    union all
    select (
        select min(queue)
          from jobs indexed by jobs_places
         where places is not null
           and state in ('blocked', 'pending', 'processing', 'failed')
           and queue > step.queue
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null
