-- name: join_batch
-- Add jobs to a batch, which is created if it does not exist. Returns when it was completed, if it is.
insert into batches (name, added, created_at)
values (:name, :jobs, :now)
on conflict (name) do update set added = added + excluded.added
returning completed_at

-- name: batch_states
-- The jobs of a batch by state, from an index.
select state, count(*)
  from jobs indexed by jobs_batch
 where batch = :name
 group by state

-- name: all_batch_states
-- The jobs of each batch by state, from an index.
select batch, state, count(*)
  from jobs indexed by jobs_batch
 where batch is not null
 group by batch, state

-- name: batch_due
-- Batches that wait for nothing but what is to run when they have ended. States by name: one probe of the index each,
-- however many jobs of the batch have ended.
select name
  from batches indexed by batches_open
 where on_complete is not null
   and completed_at is null
   and not exists (
       select 1
         from jobs indexed by jobs_batch
        where batch = batches.name
          and state in ('blocked', 'pending', 'processing', 'failed')
   )
 limit 20

-- name: batch_lately
-- How many jobs of a batch ended since a time.
select count(*)
  from (
    select batch
      from jobs indexed by jobs_completed
     where state = 'completed'
       and finished_at > :since
       and batch = :name
     union all
    select batch
      from jobs indexed by jobs_ended
     where state = 'dead'
       and finished_at > :since
       and batch = :name
     union all
    select batch
      from jobs indexed by jobs_ended
     where state = 'cancelled'
       and finished_at > :since
       and batch = :name
) as ended

-- name: batches_lately
-- How many jobs of each batch ended since a time.
select batch, count(*)
  from (
    select batch
      from jobs indexed by jobs_completed
     where state = 'completed'
       and finished_at > :since
       and batch is not null
     union all
    select batch
      from jobs indexed by jobs_ended
     where state = 'dead'
       and finished_at > :since
       and batch is not null
     union all
    select batch
      from jobs indexed by jobs_ended
     where state = 'cancelled'
       and finished_at > :since
       and batch is not null
) as ended
 group by batch

-- name: take_batch
-- The completion job of this batch, unless another worker has enqueued it.
select on_complete
  from batches
 where name = :name
   and on_complete is not null
   and completed_at is null

-- name: forget_batches
-- Remove old batches that have no jobs left and no completion job to come.
delete from batches
 where created_at < :before
   and (on_complete is null or completed_at is not null)
   and not exists (select 1 from jobs indexed by jobs_batch where batch = batches.name)
