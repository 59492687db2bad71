-- name: moves
-- All transitions between two states, and the endings of the runs that ended with them.
select queue, was, now, ending, sum(jobs)::bigint
  from queuectl.moves
 group by queue, was, now, ending

-- name: moved
-- Count jobs that moved from one state to another. See the table `moves`.
insert into queuectl.moves (queue, was, now, ending, jobs)
values (%s, %s, %s, %s, %s)

-- name: tally
-- Jobs by queue and state. See the table `moves`; OUTSIDE and ELSEWHERE are not states.
select queue, state, sum(jobs)::bigint
  from (
    select queue, now as state, jobs
      from queuectl.moves
     where now not in ('', 'elsewhere')
    union all
    select queue, was, -jobs
      from queuectl.moves
     where was not in ('', 'elsewhere')
  ) as found
 group by queue, state

-- name: set_counters
-- Store the counters of a queue at this sample. Positional: the columns of `counters`.
insert into queuectl.counters (queue, enqueued, started, completed, failed, dead, retried, rescued)
values (%s, %s, %s, %s, %s, %s, %s, %s)
on conflict (queue) do update
   set enqueued = excluded.enqueued,
       started = excluded.started,
       completed = excluded.completed,
       failed = excluded.failed,
       dead = excluded.dead,
       retried = excluded.retried,
       rescued = excluded.rescued

-- name: count_out
-- Add the times of jobs that are about to be removed to `buckets`, unless they are there: counters never decrease. (SQLite
-- reads and writes them; here that would be another round trip.) `ids` null: all jobs. Follows `note_removal`. In the order of
-- their ends, so that its index is used.
with ended as materialized (
    select queue, duration_ms, wait_ms
      from queuectl.jobs
     where state = 'completed'
       and finished_at > coalesce((select until from queuectl.sampling), 0)
       and finished_at <= %(before)s
       and (
           %(ids)s::text[] is null
           or (id = any(%(ids)s) and not exists (select 1 from queuectl.edges where parent = jobs.seq and state = 'waiting'))
       )
     order by finished_at
)
insert into queuectl.buckets as old (queue, what, bucket, jobs, ms)
select queue, what,
       width_bucket(
           ms - 1,
           array[10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 14400000,
                 86400000]::bigint[]
       ) as bucket,
       count(*), sum(ms)::bigint
  from (
    select queue, 'run' as what, duration_ms as ms
      from ended
    union all
    select queue, 'wait', wait_ms
      from ended
  ) as times
 where ms is not null
 group by queue, what, bucket
on conflict (queue, what, bucket) do update set jobs = old.jobs + excluded.jobs, ms = old.ms + excluded.ms

-- name: count_ended
-- How many jobs ended in a state by a time. Only one of the two indexes has any of them.
select (
    select count(*)
      from queuectl.jobs
     where %(state)s::text = 'completed'
       and state = 'completed'
       and finished_at <= %(before)s
) + (
    select count(*)
      from queuectl.jobs
     where state = %(state)s
       and state in ('dead', 'cancelled')
       and finished_at <= %(before)s
)

-- name: note_sample
-- Claim the sample of this minute, unless another worker was first, or jobs were removed whose times were read.
insert into queuectl.sampling as old (one, at, until, removals)
values (1, %(at)s, %(until)s, 0)
on conflict (one) do update
   set at = excluded.at, until = excluded.until
 where old.at is not distinct from %(last)s::bigint
   and old.until = %(since)s
   and old.removals = %(removals)s

-- name: note_removal
-- Jobs that ended by a time are about to be removed, and the times of some may not be in `buckets` yet. Usually they are, and
-- nothing changes. Otherwise the row stays locked, so that no sample counts them, too.
insert into queuectl.sampling as old (one, at, until, removals)
values (1, null, 0, 1)
on conflict (one) do update
   set removals = old.removals + 1
 where old.until < %(before)s

-- name: add_to_bucket
-- Add measured times to their buckets. Positional: the columns of `measured` without the longest time.
insert into queuectl.buckets as old (queue, what, bucket, jobs, ms)
values (%s, %s, %s, %s, %s)
on conflict (queue, what, bucket) do update set jobs = old.jobs + excluded.jobs, ms = old.ms + excluded.ms

-- name: points
-- The samples of a queue for each minute or hour since a time, oldest first. A time in which the queue was idle is included;
-- one in which it may be among the other queues is not. The row of all queues has the length of the time.
select everything.at, %(queue)s::text, everything.covers_ms, coalesce(of_queue.enqueued, 0), coalesce(of_queue.started, 0),
       coalesce(of_queue.completed, 0), coalesce(of_queue.failed, 0), coalesce(of_queue.dead, 0),
       coalesce(of_queue.retried, 0), coalesce(of_queue.rescued, 0), coalesce(of_queue.waiting, 0),
       coalesce(of_queue.running, 0), of_queue.oldest_ms, coalesce(of_queue.run, '[]'), coalesce(of_queue.wait, '[]')
  from queuectl.points as everything
  left join queuectl.points as of_queue
    on of_queue.span = %(span)s and of_queue.queue = %(queue)s and of_queue.at = everything.at
 where everything.span = %(span)s
   and everything.queue = ''
   and everything.at >= %(since)s
   and (of_queue.at is not null
        or not exists (select 1 from queuectl.points where span = %(span)s and queue = '*' and at = everything.at))
 order by everything.at

-- name: put_point
-- Store or replace a sample. Positional, see store/counters.py.
insert into queuectl.points (
    span, queue, at, covers_ms, enqueued, started, completed, failed, dead, retried, rescued, waiting, running,
    oldest_ms, run, wait
)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
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
      from queuectl.jobs
     where state = 'completed'
       and finished_at > %(since)s
       and finished_at <= %(until)s
)
select queue, what,
       width_bucket(
           ms - 1,
           array[10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 14400000,
                 86400000]::bigint[]
       ) as bucket,
       count(*), sum(ms)::bigint, max(ms)
  from (
    select queue, 'run' as what, duration_ms as ms
      from ended
    union all
    select queue, 'wait', wait_ms
      from ended
  ) as times
 where ms is not null
 group by queue, what, bucket

-- name: oldest_waiting
-- Since when the oldest due job of each queue waits. Steps through jobs_oldest from queue to queue; the second half finds jobs
-- that are due but not promoted yet.
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

-- name: completed_since
-- How many jobs were completed after a time, without webhook deliveries.
select count(*)
  from queuectl.jobs
 where state = 'completed'
   and finished_at > %(since)s
   and queue <> 'queuectl.webhooks'

-- name: died_since
-- How many jobs of each queue died after a time, and are still dead.
select queue, count(*)
  from queuectl.jobs
 where state = 'dead'
   and finished_at > %(since)s
 group by queue

-- name: durations
-- The frequency of each run time among the completed jobs of each queue, without webhook deliveries: one scan gives every
-- percentile.
select queue, duration_ms, count(*)
  from queuectl.jobs
 where state = 'completed'
   and duration_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, duration_ms

-- name: average_attempts
-- Failed runs per job, without webhook deliveries.
select avg(attempts)::float8
  from queuectl.jobs
 where queue <> 'queuectl.webhooks'
