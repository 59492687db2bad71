-- name: rules
-- The settings of all queues.
select name, paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key, on_success,
       on_failure, on_dead, limits
  from queuectl.queues
 order by name

-- name: set_rules
-- Store the settings of a queue. Its row exists, see `take_rules`.
update queuectl.queues
   set paused = %(paused)s,
       concurrency = %(concurrency)s,
       rate_starts = %(rate_starts)s,
       rate_ms = %(rate_ms)s,
       priority = %(priority)s,
       max_retries = %(max_retries)s,
       timeout_ms = %(timeout_ms)s,
       per_key = %(per_key)s,
       on_success = %(on_success)s,
       on_failure = %(on_failure)s,
       on_dead = %(on_dead)s,
       limits = %(limits)s
 where name = %(name)s

-- name: take_rules
-- Until the end of this transaction no other one changes the settings of a queue, or claims by them. (SQLite has one writer.)
insert into queuectl.queues (name)
values (%(name)s)
on conflict (name) do update set name = excluded.name
returning paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key, on_success, on_failure,
          on_dead, limits

-- name: limits
-- The queues that are paused or limited: how many of their jobs run, the number of the latest start, and the start that the
-- rate limit of the next one counts from. The time of a start is that of its claim until the worker reports the process; such a
-- start is not sure. An impossible time (the clock was set) is null. Running jobs are counted row by row: they are few. (SQLite
-- uses the sum of `moves`; here that would be many rows.) Once for all queues, and only if one of them needs it: while another
-- session holds a transaction open, the count reads all jobs that ran since.
with running as materialized (
    select queue, count(*) as jobs
      from queuectl.jobs
     where state = 'processing'
     group by queue
)
select queues.name, queues.paused, queues.concurrency, queues.rate_starts, queues.rate_ms,
       case
           when queues.concurrency is null then 0
           else coalesce((select running.jobs from running where running.queue = queues.name), 0)
       end,
       coalesce(last.number, 0),
       coalesce(
           case when jobs.runs = earlier.run and jobs.started_at between earlier.at and %(now)s then jobs.started_at end,
           case when runs.started_at between earlier.at and %(now)s then runs.started_at end,
           earlier.at
       ),
       jobs.seq is null or jobs.runs <> earlier.run or jobs.state <> 'processing' or jobs.pid is not null,
       queues.per_key
  from queuectl.queues
  left join lateral (
      select number
        from queuectl.starts
       where starts.queue = queues.name
         and queues.rate_starts is not null
       order by starts.queue desc, starts.number desc
       limit 1
  ) as last on true
  left join queuectl.starts as earlier
    on earlier.queue = queues.name
   and earlier.number = last.number + 1 - queues.rate_starts
  left join queuectl.jobs
    on jobs.seq = earlier.job
  left join queuectl.runs
    on runs.job = earlier.job
   and runs.number = earlier.run
 where queues.paused
    or queues.concurrency is not null
    or queues.rate_starts is not null
    or queues.per_key is not null

-- name: hold_limits
-- Until the end of this transaction no other one claims by these limits: two could use the same slot. In the order of names, to
-- avoid deadlocks. Only queues (null: all) with something to claim; returns them, since the next statement may see more.
-- (SQLite has one writer.) The first job of each queue is read by itself, with a limit: for `exists` the planner would join all
-- waiting jobs.
select queues.name
  from queuectl.queues
 cross join lateral (
    select jobs.seq
      from queuectl.jobs
     where jobs.ready
       and not jobs.key_blocked
       and (jobs.queue, jobs.rank, jobs.seq) > (queues.name, -9223372036854775808, 0)
       and jobs.queue <= queues.name
     order by jobs.queue, jobs.rank, jobs.seq
     limit 1
 ) as first
 where (queues.concurrency is not null or queues.rate_starts is not null or queues.per_key is not null)
   and not queues.paused
   and (%(queues)s::text[] is null or queues.name = any(%(queues)s::text[]))
 order by queues.name
   for update of queues

-- name: hold_key_limits
-- Until the end of this transaction no other one claims from, or admits to, those of these queues (null: all) whose jobs limit
-- their own key. Not by a row of `queues`: such a queue need not have one. Follows `hold_limits` and `lock_keyed_queues`, and in one
-- order, to avoid deadlocks. (SQLite has one writer.)
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
),
wanted as (
    select queue, 2048 + (hashtext(queue) & 1023) as lock
      from step
     where queue is not null
       and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
),
taken as (
    select id
      from queuectl.locks
     where id = any(array(select lock from wanted))
     order by id
       for update
)
select queue
  from wanted
 where lock in (select id from taken)

-- name: next_seqs
-- The next sequence numbers, in order, for a batch; null if one of the given IDs is taken. Checked before and not after: a
-- sequence never goes back, and a refused batch must not count as enqueues (see jobs/priority.py). Concurrent batches may
-- interleave; each still gets its own numbers in order. (SQLite has one writer, which counts from `last_seq`.)
select case
           when exists (select 1 from queuectl.jobs where id = any(%(ids)s::text[])) then null
           else array(select nextval('queuectl.jobs_seq_seq') from generate_series(1, %(jobs)s))
       end

-- name: queues_with_key_limits
-- The queues with unfinished jobs that set a limit for their concurrency key. Steps from name to name through jobs_key_limits, as
-- `ready_queues`.
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

-- name: running_keys
-- The running jobs by concurrency key, in queues that limit keys.
select jobs.queue, jobs.key, jobs.id
  from queuectl.jobs
  left join queuectl.queues
    on queues.name = jobs.queue
 where jobs.state = 'processing'
   and jobs.key is not null
   and (jobs.places is not null or queues.per_key is not null)

-- name: running_of_keys
-- How many jobs of a queue run with each of these keys. (SQLite: `running_of_key`, for each.)
select input.key,
       (
           select count(*)
             from queuectl.jobs
            where jobs.queue = %(queue)s
              and jobs.key = input.key
              and jobs.state = 'processing'
       )
  from unnest(%(keys)s::text[]) as input (key)

-- name: block_on_key
-- The concurrency keys of these jobs have no free slot. Exclude the jobs, so that the next claim need not step over them. Jobs
-- that another transaction has locked are skipped: they are promoted later.
with found as (
    select seq
      from queuectl.jobs
     where seq = any(%(seq)s)
       and ready
       for update skip locked
)
update queuectl.jobs
   set key_blocked = true
  from found
 where jobs.seq = found.seq

-- name: earlier_starts
-- The starts of a queue with a rate limit that have these numbers. Columns as in `limits`.
select earlier.number,
       coalesce(
           case when jobs.runs = earlier.run and jobs.started_at between earlier.at and %(now)s then jobs.started_at end,
           case when runs.started_at between earlier.at and %(now)s then runs.started_at end,
           earlier.at
       ),
       jobs.seq is null or jobs.runs <> earlier.run or jobs.state <> 'processing' or jobs.pid is not null
  from queuectl.starts as earlier
  left join queuectl.jobs
    on jobs.seq = earlier.job
  left join queuectl.runs
    on runs.job = earlier.job
   and runs.number = earlier.run
 where earlier.queue = %(queue)s
   and earlier.number between %(first)s and %(last)s

-- name: count_due
-- Of a queue: the due jobs that wait, and those of them whose concurrency key has a free slot. At most `most` each, from indexes.
select (
    select count(*)
      from (select 1 from queuectl.jobs where queue = %(queue)s and ready limit %(most)s) as due
), (
    select count(*)
      from (select 1 from queuectl.jobs where queue = %(queue)s and ready and not key_blocked limit %(most)s) as free
)
