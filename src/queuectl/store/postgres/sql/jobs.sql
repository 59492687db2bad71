-- name: enqueue
-- Add one job. In the order of store/enqueue.py; state is pending by default. Many come as a stream, see `enqueue_many`.
insert into queuectl.jobs (
    seq, id, command, argv, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free, backoff_base,
    timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, key_blocked, places, hooks, limits, secrets
)
values (
    %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
)

-- name: enqueue_many
-- Add jobs, as a stream of rows. In the order of store/enqueue.py; state is pending by default. (SQLite: `enqueue`.)
copy queuectl.jobs (
    seq, id, command, argv, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free, backoff_base,
    timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, key_blocked, places, hooks, limits, secrets
) from stdin

-- name: duplicate
-- The first of some IDs that is taken. (SQLite looks up one ID after the other once the schema has refused them.)
select given.id
  from unnest(%(ids)s::text[]) with ordinality as given (id, place)
  join queuectl.jobs on jobs.id = given.id
 order by given.place
 limit 1

-- name: block
-- Store the dependencies of new jobs.
update queuectl.jobs
   set state = case when input.is_blocked then 'blocked' else state end,
       ready = ready and not input.is_blocked,
       depends_on = input.depends_on
  from unnest(%(seqs)s::bigint[], %(blocked)s::boolean[], %(depends_on)s::text[]) as input (seq, is_blocked, depends_on)
 where jobs.seq = input.seq

-- name: tag
-- Add a tag to a job.
insert into queuectl.job_tags (tag, job)
values (%s, %s)

-- name: tag_many
-- Add tags to jobs, as a stream of rows. (SQLite: `tag`.)
copy queuectl.job_tags (tag, job) from stdin

-- name: admit
-- Let jobs be claimed again whose concurrency key has free slots, in order; all of them if the key has no limit. The first job
-- sets the limit, if it has one. Other jobs of the key may have become ready behind them meanwhile: a claim marks those
-- that exceed the limit. Follows `lock_keyed_queues` and `hold_key_limits`. The range is in the order of jobs_of_key, also where it means
-- one value: no other index gives that order.
update queuectl.jobs
   set key_blocked = false,
       ready_since = pg_current_xact_id()
 where key_blocked
   and seq in (
    select line.seq
      from unnest(%(queues)s::text[], %(keys)s::text[]) as input (queue, key)
     cross join lateral (
        select jobs.seq
          from queuectl.jobs
         where jobs.ready
           and jobs.key is not null
           and (jobs.queue, jobs.key, jobs.rank, jobs.seq) > (input.queue, input.key, -9223372036854775808, 0)
           and (jobs.queue, jobs.key) <= (input.queue, input.key)
         order by jobs.queue, jobs.key, jobs.rank, jobs.seq
         limit (
             select case
                        when first.places is not null
                        then greatest(0, first.places - (
                            select count(*)
                              from queuectl.jobs as other
                             where other.queue = input.queue
                               and other.key = input.key
                               and other.state = 'processing'
                        ))
                    end
               from (
                 select coalesce(
                            (
                                select first.places
                                  from queuectl.jobs as first
                                 where first.ready
                                   and first.key is not null
                                   and (first.queue, first.key, first.rank, first.seq)
                                       > (input.queue, input.key, -9223372036854775808, 0)
                                   and (first.queue, first.key) <= (input.queue, input.key)
                                 order by first.queue, first.key, first.rank, first.seq
                                 limit 1
                            ),
                            (select queues.per_key from queuectl.queues where queues.name = input.queue)
                        ) as places
               ) as first
         )
     ) as line
   )

-- name: mark_key_blocked
-- In a whole queue, mark the jobs whose concurrency key has no free slot, and let the others be claimed. Needed when the
-- limit or the order of the jobs changes; per_key is null if there is no limit. No claims run meanwhile, see `change_ageing`.
update queuectl.jobs
   set key_blocked = line.key_blocked,
       ready_since = pg_current_xact_id()
  from (
    select seq,
           coalesce(places, %(per_key)s::integer) is not null
           and row_number() over (partition by key order by rank, seq) > coalesce(places, %(per_key)s::integer) - (
               select count(*)
                 from queuectl.jobs as other
                where other.queue = jobs.queue
                  and other.key = jobs.key
                  and other.state = 'processing'
           ) as key_blocked
      from queuectl.jobs
     where queue = %(queue)s
       and key is not null
       and ready
  ) as line
 where jobs.seq = line.seq
   and jobs.key_blocked <> line.key_blocked

-- name: lock_keyed_queues
-- Until the end of this transaction no other one claims from those of these queues that limit keys, so that `admit` sees the
-- jobs that were marked by a claim that did not see this transaction. (SQLite has one writer.)
select name
  from queuectl.queues
 where name = any(%(queues)s)
   and per_key is not null
 order by name
   for update

-- name: request
-- The stored answer to a request with this idempotency key.
select digest, answer
  from queuectl.requests
 where key = %(key)s

-- name: take_request
-- Lock this idempotency key, unless it was used recently. A concurrent request with the same key
-- waits here until we are done. (SQLite has one writer.)
insert into queuectl.requests as old (key, digest, answer, at)
values (%(key)s, %(digest)s, '', %(now)s)
on conflict (key) do update
   set digest = excluded.digest, answer = '', at = excluded.at
 where old.at <= %(before)s
returning 1

-- name: keep_request
-- Store the answer to a request whose key this transaction has locked, see `take_request`.
update queuectl.requests
   set answer = %(answer)s
 where key = %(key)s

-- name: take_keys
-- Until the end of this transaction no other one decides about jobs with these unique keys. Taken before the holders of
-- the keys are looked up: two transactions that find none would both add their job, and no index covers `unique_for`. In the order
-- of the IDs, so that two transactions do not wait for each other. Keys of one hash share a row, which costs a short wait at
-- most. (SQLite has one writer.)
select id
  from queuectl.locks
 where id = any(
     array(
         select 1024 + (hashtext(key) & 1023)
           from unnest(%(keys)s::text[]) as given (key)
     )
 )
 order by id
   for update

-- name: take_keys_of
-- As `take_keys`, the keys that some jobs have. Before their rows are locked, in the order that enqueue has.
-- (SQLite has one writer.)
select id
  from queuectl.locks
 where id = any(
     array(
         select 1024 + (hashtext(unique_key) & 1023)
           from queuectl.jobs
          where id = any(%(ids)s)
            and unique_key is not null
     )
 )
 order by id
   for update

-- name: holders
-- The job that has each of these unique keys: the one that waits or runs (at most one), else the one enqueued last. The caller
-- holds the locks of these keys, see `take_keys`.
select given.key, found.id, found.state, found.created_at
  from unnest(%(keys)s::text[]) as given (key)
 cross join lateral (
    (
        select id, state, created_at, 1 as turn
          from queuectl.jobs
         where unique_key = given.key
           and state <> 'completed'
           and state <> 'dead'
           and state <> 'cancelled'
    )
    union all
    (
        select id, state, created_at, 2 as turn
          from queuectl.jobs
         where unique_key = given.key
         order by created_at desc, seq desc
         limit 1
    )
    order by turn
    limit 1
 ) as found

-- name: cancel_waiting
-- Cancel jobs that do not run. The last run of each, if there was one, has been archived: its columns stay as they are, except
-- the error, which is the reason. (SQLite: one at a time, which costs no round trip there.) `is true` keeps the planner from an
-- index of all jobs in these states.
update queuectl.jobs
   set state = 'cancelled',
       ready = false,
       key_blocked = false,
       effective_priority = waiting.points,
       error = %(error)s,
       ending = null,
       finished_at = greatest(%(now)s, created_at, started_at),
       updated_at = greatest(%(now)s, created_at)
  from unnest(%(seq)s::bigint[], %(effective_priority)s::bigint[]) as waiting (seq, points)
 where jobs.seq = any(%(seq)s)
   and jobs.seq = waiting.seq
   and (state in ('blocked', 'pending', 'failed')) is true

-- name: cancel_running
-- Record a cancel. The worker that holds the job terminates it; the cancel wins over any result that it reports.
update queuectl.jobs
   set cancel_requested = true,
       updated_at = greatest(%(now)s, created_at)
 where seq = %(seq)s
   and token = %(token)s

-- name: cancel_orders
-- The runs of a worker for which a cancel is recorded. By an index that contains nothing else.
select token
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
   and cancel_requested

-- name: cancelled_children
-- Those of some jobs that were cancelled because another one of them was their parent.
select distinct child
  from queuectl.edges
 where child = any(%(seqs)s)
   and parent = any(%(seqs)s)
   and state = 'broke'

-- name: retry
-- Retry jobs, due now, at their old position in the queue. The caller has checked the states in this transaction. After a
-- cancel between two runs, the columns show the end of the latest run again, if there was one. `is true` keeps the planner from
-- an index of all jobs in these states.
update queuectl.jobs
   set state = 'pending',
       ready = not held,
       ready_since = pg_current_xact_id(),
       run_at = %(now)s,
       rank = chosen.rank,
       effective_priority = null,
       attempts = case when state = 'failed' then attempts else 0 end,
       crashes = case when state = 'failed' then crashes else 0 end,
       finished_at = case
           when ending is not null then finished_at
           else (select finished_at from queuectl.runs where job = jobs.seq and number = jobs.runs)
       end,
       error = case
           when ending is not null then error
           else (select error from queuectl.runs where job = jobs.seq and number = jobs.runs)
       end,
       updated_at = greatest(%(now)s, created_at)
  from unnest(%(seq)s::bigint[], %(rank)s::bigint[]) as chosen (seq, rank)
 where jobs.seq = any(%(seq)s)
   and jobs.seq = chosen.seq
   and (state in ('failed', 'dead', 'cancelled')) is true

-- name: edit
-- Change waiting jobs. Null: unchanged; a timeout of 0: none. The caller has locked them in this transaction, and computes the
-- new positions. (SQLite: one at a time, which costs no round trip there.)
update queuectl.jobs
   set command = case when %(argv)s::text is null then coalesce(%(command)s::text, command) end,
       argv = case when %(command)s::text is null then coalesce(%(argv)s::text, argv) end,
       queue = coalesce(%(queue)s::text, queue),
       priority = place.priority,
       rank = place.rank,
       eligible_at = place.eligible_at,
       run_at = place.run_at,
       ready = place.ready,
       key_blocked = false,
       ready_since = pg_current_xact_id(),
       held = place.held,
       max_retries = coalesce(%(max_retries)s::integer, max_retries),
       first_is_free = coalesce(%(first_is_free)s::boolean, first_is_free),
       timeout_ms = nullif(coalesce(%(timeout_ms)s::bigint, timeout_ms), 0),
       secrets = nullif(coalesce(%(secrets)s::text, secrets), '[]'),
       hooks = case
           when %(hooks)s::text is null then hooks
           else nullif(jsonb_strip_nulls(coalesce(hooks, '{}')::jsonb || %(hooks)s::jsonb), '{}'::jsonb)::text
       end,
       limits = case
           when %(limits)s::text is null then limits
           else nullif(jsonb_strip_nulls(coalesce(limits, '{}')::jsonb || %(limits)s::jsonb), '{}'::jsonb)::text
       end,
       updated_at = greatest(%(now)s, created_at)
  from unnest(
           %(seq)s::bigint[], %(priority)s::integer[], %(rank)s::bigint[], %(eligible_at)s::bigint[], %(run_at)s::bigint[],
           %(ready)s::boolean[], %(held)s::boolean[]
       ) as place (seq, priority, rank, eligible_at, run_at, ready, held)
 where jobs.seq = any(%(seq)s)
   and jobs.seq = place.seq
   and state in ('blocked', 'pending', 'failed')

-- name: standing
-- The columns that a command of a user needs to decide about jobs, locked.
select seq, id, state, queue, worker, token, log, priority, eligible_at, missed, run_at, ready, held, runs, updated_at,
       unique_key, key
  from queuectl.jobs
 where id = any(%(ids)s)
 order by id
   for update

-- name: move
-- Move the waiting jobs of a queue, all or those with some IDs, to another one. They keep their rank. Not in the order of IDs
-- as elsewhere, which would scan all jobs: after a deadlock the transaction is repeated.
with found as (
    select seq
      from queuectl.jobs
     where queue = %(queue)s
       and state in ('blocked', 'pending', 'failed')
       and state <> 'processing'
       and (%(ids)s::text[] is null or id = any(%(ids)s::text[]))
       for update
)
update queuectl.jobs
   set queue = %(to)s,
       key_blocked = false,
       ready_since = pg_current_xact_id(),
       updated_at = greatest(%(now)s, created_at)
  from found
 where jobs.seq = found.seq
returning jobs.seq, jobs.id, jobs.state, jobs.key

-- name: reset_jobs
-- Remove every job with history, output, tags and edges, and all batches, and count them out. (SQLite counts by its tally:
-- there is no other writer.)
with gone as (
    delete from queuectl.jobs
    returning seq, queue, state
),
history as (
    delete from queuectl.runs
),
printed as (
    delete from queuectl.output
),
tags as (
    delete from queuectl.job_tags
),
names as (
    delete from queuectl.batches
),
edges as (
    delete from queuectl.edges
),
deliveries as (
    delete from queuectl.webhook_outbox
),
undecided as (
    delete from queuectl.undecided
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, '', '', count(*)
      from gone
     group by queue, state
)
select count(*)
  from gone

-- name: last_seq
-- The latest sequence number; survives the removal of every job. It may belong to a batch that is not committed yet.
select case when is_called then last_value else 0 end
  from queuectl.jobs_seq_seq

-- name: hold_ageing
-- Until the end of this transaction the ageing rule does not change: ranks are computed by that rule. A lock on the table and
-- on none of its rows (mode ROW SHARE), which transactions share with all but `change_ageing`. Statements that lock a row of
-- this table hold it, too: `hold_worker`, `take_worker`. (SQLite has one writer.)
select id
  from queuectl.locks
 where false
   for key share

-- name: change_ageing
-- Wait until no transaction uses the old ageing rule, and let none begin until the new one is written: see `hold_ageing`.
-- (SQLite has one writer.)
lock table queuectl.locks in exclusive mode

-- name: set_ageing
-- Store the ageing rule for the statements that compute with it. (SQLite computes with it in Python, and in `rerank`.)
update queuectl.meta
   set ageing = %(ageing)s,
       step_ms = %(step_ms)s

-- name: hold_jobs
-- Lock jobs, so that their states stay the same. Does not wait for other transactions, so there is no deadlock: locked ones are
-- handled the next time. (SQLite has one writer.)
select seq, id, state, queue, priority, eligible_at, missed, run_at, unique_key
  from queuectl.jobs
 where seq = any(%(seqs)s)
   for no key update skip locked
