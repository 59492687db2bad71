-- name: moves
-- All transitions between two states, and the endings of the runs that ended with them.
select queue, was, now, ending, jobs
  from moves

-- name: moved
-- Count jobs that moved from one state to another. See the table `moves`. Positional, see store/transactions.py.
insert into moves (queue, was, now, ending, jobs)
values (?, ?, ?, ?, ?)
on conflict (queue, was, now, ending) do update set jobs = jobs + excluded.jobs

-- name: tally
-- Jobs by queue and state. See the table `moves`; OUTSIDE and ELSEWHERE are not states.
select queue, state, sum(jobs)
  from (
    select queue, now as state, jobs
      from moves
     where now not in ('', 'elsewhere')
    union all
    select queue, was, -jobs
      from moves
     where was not in ('', 'elsewhere')
  )
 group by queue, state

-- name: set_counters
-- Store the counters of a queue at this sample. Positional: the columns of `counters`.
insert into counters (queue, enqueued, started, completed, failed, dead, retried, rescued)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (queue) do update
   set enqueued = excluded.enqueued,
       started = excluded.started,
       completed = excluded.completed,
       failed = excluded.failed,
       dead = excluded.dead,
       retried = excluded.retried,
       rescued = excluded.rescued

-- name: count_ended
-- How many jobs ended in a state by a time. Only one of the two indexes has any of them.
select (
    select count(*)
      from jobs indexed by jobs_completed
     where :state = 'completed'
       and state = 'completed'
       and finished_at <= :before
) + (
    select count(*)
      from jobs indexed by jobs_ended
     where state = :state
       and (state = 'dead' or state = 'cancelled')
       and finished_at <= :before
)

-- name: note_sample
-- Claim the sample of this minute, unless another worker was first, or jobs were removed whose times were read.
insert into sampling (one, at, until, removals)
values (1, :at, :until, 0)
on conflict (one) do update
   set at = excluded.at, until = excluded.until
 where at is :last
   and until = :since
   and removals = :removals

-- name: note_removal
-- Jobs that ended by a time are about to be removed, and the times of some may not be in `buckets` yet. Usually they are, and
-- nothing changes.
insert into sampling (one, at, until, removals)
values (1, null, 0, 1)
on conflict (one) do update
   set removals = removals + 1
 where until < :before

-- name: add_to_bucket
-- Add measured times to their buckets. Positional: the columns of `measured` without the longest time.
insert into buckets (queue, what, bucket, jobs, ms)
values (?, ?, ?, ?, ?)
on conflict (queue, what, bucket) do update set jobs = jobs + excluded.jobs, ms = ms + excluded.ms

-- name: points
-- The samples of a queue for each minute or hour since a time, oldest first. A time in which the queue was idle is included;
-- one in which it may be among the other queues is not. The row of all queues has the length of the time.
select everything.at, :queue, everything.covers_ms, coalesce(of_queue.enqueued, 0), coalesce(of_queue.started, 0),
       coalesce(of_queue.completed, 0), coalesce(of_queue.failed, 0), coalesce(of_queue.dead, 0),
       coalesce(of_queue.retried, 0), coalesce(of_queue.rescued, 0), coalesce(of_queue.waiting, 0),
       coalesce(of_queue.running, 0), of_queue.oldest_ms, coalesce(of_queue.run, '[]'), coalesce(of_queue.wait, '[]')
  from points as everything
  left join points as of_queue
    on of_queue.span = :span and of_queue.queue = :queue and of_queue.at = everything.at
 where everything.span = :span
   and everything.queue = ''
   and everything.at >= :since
   and (of_queue.at is not null
        or not exists (select 1 from points where span = :span and queue = '*' and at = everything.at))
 order by everything.at

-- name: put_point
-- Store or replace a sample. Positional, see store/counters.py.
insert into points (
    span, queue, at, covers_ms, enqueued, started, completed, failed, dead, retried, rescued, waiting, running,
    oldest_ms, run, wait
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (span, queue, at) do update
   set covers_ms = excluded.covers_ms,
       enqueued = excluded.enqueued,
       started = excluded.started,
       completed = excluded.completed,
       failed = excluded.failed,
       dead = excluded.dead,
       retried = excluded.retried,
       rescued = excluded.rescued,
       waiting = excluded.waiting,
       running = excluded.running,
       oldest_ms = excluded.oldest_ms,
       run = excluded.run,
       wait = excluded.wait

-- name: measured
-- Run and waiting times of the jobs that were completed after a time and up to another, in buckets, and the longest time of each:
-- see jobs/stats.py. One scan of the index for both.
with ended as materialized (
    select queue, duration_ms, wait_ms
      from jobs indexed by jobs_completed
     where state = 'completed'
       and finished_at > :since
       and finished_at <= :until
)
select queue, what,
       (ms > 10) + (ms > 25) + (ms > 50) + (ms > 100) + (ms > 250) + (ms > 500) + (ms > 1000) + (ms > 2500) + (ms > 5000)
       + (ms > 10000) + (ms > 30000) + (ms > 60000) + (ms > 300000) + (ms > 900000) + (ms > 3600000) + (ms > 14400000)
       + (ms > 86400000) as bucket,
       count(*), sum(ms), max(ms)
  from (
    select queue, 'run' as what, duration_ms as ms
      from ended
    union all
    select queue, 'wait', wait_ms
      from ended
  )
 where ms is not null
 group by queue, what, bucket

-- name: oldest_waiting
-- Since when the oldest due job of each queue waits. Steps through jobs_oldest from queue to queue; the second half finds jobs
-- that are due but not promoted yet.
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

-- name: completed_since
-- How many jobs were completed after a time, without webhook deliveries.
select count(*)
  from jobs indexed by jobs_completed
 where state = 'completed'
   and finished_at > :since
   and queue <> 'queuectl.webhooks'

-- name: died_since
-- How many jobs of each queue died after a time, and are still dead.
select queue, count(*)
  from jobs indexed by jobs_ended
 where state = 'dead'
   and finished_at > :since
 group by queue

-- name: durations
-- The frequency of each run time among the completed jobs of each queue, without webhook deliveries: one scan gives every
-- percentile.
select queue, duration_ms, count(*)
  from jobs indexed by jobs_state
 where state = 'completed'
   and state <> 'processing'
   and duration_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, duration_ms

-- name: average_attempts
-- Failed runs per job, without webhook deliveries.
select avg(attempts)
  from jobs
 where queue <> 'queuectl.webhooks'
