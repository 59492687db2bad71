-- name: rules
-- The settings of all queues.
select name, paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key, on_success,
       on_failure, on_dead, limits
  from queues

-- name: set_rules
-- Store the settings of a queue.
insert or replace into queues (name, paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key,
    on_success, on_failure, on_dead, limits)
values (:name, :paused, :concurrency, :rate_starts, :rate_ms, :priority, :max_retries, :timeout_ms, :per_key,
    :on_success, :on_failure, :on_dead, :limits)

-- name: limits
-- The queues that are paused or limited: how many of their jobs run, the number of the latest start, and the start that the
-- rate limit of the next one counts from. The time of a start is that of its claim until the worker reports the process; such a
-- start is not sure. An impossible time (the clock was set) is null.
select name, paused, concurrency, rate_starts, rate_ms,
       iif(
           concurrency is null, 0,
           (
               select coalesce(sum(iif(now = 'processing', jobs, 0) - iif(was = 'processing', jobs, 0)), 0)
                 from moves
                where moves.queue = queues.name
           )
       ),
       coalesce(last.number, 0),
       coalesce(
           (
               select max(started_at)
                 from (
                   select started_at from jobs where seq = earlier.job and runs = earlier.run
                   union all
                   select started_at from runs where job = earlier.job and runs.number = earlier.run
                 )
                where started_at between earlier.at and :now
           ),
           earlier.at
       ),
       not exists (
           select 1
             from jobs
            where seq = earlier.job
              and runs = earlier.run
              and state = 'processing'
              and pid is null
       ),
       per_key
  from queues
  left join starts as last
    on rate_starts is not null
   and last.queue = queues.name
   and last.number = (select max(number) from starts where starts.queue = queues.name)
  left join starts as earlier
    on earlier.queue = queues.name
   and earlier.number = last.number + 1 - rate_starts
 where paused
    or concurrency is not null
    or rate_starts is not null
    or per_key is not null

-- name: queues_with_key_limits
-- The queues with unfinished jobs that set a limit for their concurrency key. Steps from name to name through jobs_key_limits, as
-- `ready_queues`.
with recursive step (queue) as (
    select min(queue)
      from jobs indexed by jobs_key_limits
     where places is not null
       and state in ('blocked', 'pending', 'processing', 'failed')
    union all
    select (
        select min(queue)
          from jobs indexed by jobs_key_limits
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

-- name: running_keys
-- The running jobs by concurrency key, in queues that limit keys.
select queue, key, id
  from jobs indexed by jobs_running_key
 where key is not null
   and state = 'processing'
   and (places is not null or exists (select 1 from queues where name = jobs.queue and per_key is not null))
 order by seq

-- name: running_of_key
-- How many jobs of a queue with this key run. (PostgreSQL: `running_of_keys`, for many at once.)
select count(*)
  from jobs indexed by jobs_running_key
 where queue = :queue
   and key = :key
   and state = 'processing'

-- name: block_on_key
-- The concurrency key of this job has no free slot. Exclude the job, so that the next claim need not step over it.
update jobs
   set key_blocked = 1
 where seq = :seq
   and ready = 1

-- name: earlier_starts
-- The starts of a queue with a rate limit that have these numbers. Columns as in `limits`.
select number,
       coalesce(
           (
               select max(started_at)
                 from (
                   select started_at from jobs where seq = earlier.job and runs = earlier.run
                   union all
                   select started_at from runs where job = earlier.job and runs.number = earlier.run
                 )
                where started_at between earlier.at and :now
           ),
           at
       ),
       not exists (
           select 1
             from jobs
            where seq = earlier.job
              and runs = earlier.run
              and state = 'processing'
              and pid is null
       )
  from starts as earlier
 where queue = :queue
   and number between :first and :last

-- name: take_rules
-- The settings of one queue, under the write lock.
select paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key, on_success, on_failure, on_dead, limits
  from queues
 where name = :name

-- name: count_due
-- Of a queue: the due jobs that wait, and those of them whose concurrency key has a free slot. At most `most` each, from indexes.
select (
    select count(*)
      from (select 1 from jobs indexed by jobs_oldest where queue = :queue and ready = 1 limit :most)
), (
    select count(*)
      from (select 1 from jobs indexed by jobs_ready where queue = :queue and ready = 1 and key_blocked = 0 limit :most)
)
