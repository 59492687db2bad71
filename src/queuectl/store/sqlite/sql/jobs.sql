-- name: enqueue
-- Add one job. Positional parameters, since a bulk enqueue binds a million rows.
insert into jobs (
    seq, id, command, argv, state, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free,
    backoff_base, timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, key_blocked, places, hooks,
    limits, secrets
)
values (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: block
-- Store the dependencies of a new job.
update jobs
   set state = iif(:is_blocked, 'blocked', state),
       ready = iif(:is_blocked, 0, ready),
       depends_on = :depends_on
 where seq = :seq

-- name: tag
-- Add a tag to a job.
insert into job_tags (tag, job)
values (?, ?)

-- name: admit
-- Let jobs be claimed again whose concurrency key has free slots, in order; all of them if the key has no limit. The first job
-- sets the limit, if it has one. Other jobs of the key may have become ready behind them meanwhile: a claim marks those
-- that exceed the limit.
update jobs
   set key_blocked = 0
 where key_blocked = 1
   and seq in (
    select seq
      from jobs indexed by jobs_of_key
     where queue = :queue
       and key = :key
       and ready = 1
     order by rank, seq
     limit coalesce(
         max(
             0,
             coalesce(
                 (
                     select places
                       from jobs indexed by jobs_of_key
                      where queue = :queue
                        and key = :key
                        and ready = 1
                      order by rank, seq
                      limit 1
                 ),
                 (select per_key from queues where name = :queue)
             ) - (
                 select count(*)
                   from jobs indexed by jobs_running_key
                  where queue = :queue
                    and key = :key
                    and state = 'processing'
             )
         ),
         -1
     )
   )

-- name: mark_key_blocked
-- In a whole queue, mark the jobs whose concurrency key has no free slot, and let the others be claimed. Needed when the
-- limit or the order of the jobs changes; per_key is null if there is no limit.
update jobs
   set key_blocked = line.key_blocked
  from (
    select seq,
           coalesce(places, :per_key) is not null
           and row_number() over (partition by key order by rank, seq) > coalesce(places, :per_key) - (
               select count(*)
                 from jobs as other indexed by jobs_running_key
                where other.queue = :queue
                  and other.key = jobs.key
                  and other.state = 'processing'
           ) as key_blocked
      from jobs indexed by jobs_of_key
     where queue = :queue
       and key is not null
       and ready = 1
  ) as line
 where jobs.seq = line.seq
   and jobs.key_blocked <> line.key_blocked

-- name: request
-- The stored answer to a request with this idempotency key, unless it has expired.
select digest, answer
  from requests
 where key = :key
   and at > :before

-- name: keep_request
-- Store the answer to a request; replaces one that has expired.
insert into requests (key, digest, answer, at)
values (:key, :digest, :answer, :now)
on conflict (key) do update set digest = excluded.digest, answer = excluded.answer, at = excluded.at

-- name: holders
-- The job that has each of these unique keys: the one that waits or runs (at most one), else the one enqueued last.
select given.value, jobs.id, jobs.state, jobs.created_at
  from json_each(:keys) as given
  join jobs
    on jobs.seq = coalesce(
           (
               select seq
                 from jobs indexed by jobs_unique
                where unique_key = given.value
                  and state <> 'completed'
                  and state <> 'dead'
                  and state <> 'cancelled'
           ),
           (
               select seq
                 from jobs indexed by jobs_key
                where unique_key = given.value
                order by created_at desc, seq desc
                limit 1
           )
       )

-- name: cancel_waiting
-- Cancel a job that does not run. Its last run, if there was one, has been archived: its columns stay as they are, except the
-- error, which is the reason.
update jobs
   set state = 'cancelled',
       ready = 0,
       key_blocked = 0,
       effective_priority = :effective_priority,
       error = :error,
       ending = null,
       finished_at = max(:now, created_at, coalesce(started_at, created_at)),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('blocked', 'pending', 'failed')

-- name: cancel_running
-- Record a cancel. The worker that holds the job terminates it; the cancel wins over any result that it reports.
update jobs
   set cancel_requested = 1,
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'processing'

-- name: cancel_orders
-- The runs of a worker for which a cancel is recorded.
select token
  from jobs indexed by jobs_running
 where worker = :worker
   and state = 'processing'
   and cancel_requested = 1

-- name: cancelled_children
-- Those of some jobs that were cancelled because another one of them was their parent.
select distinct child
  from edges
 where child in (select value from json_each(:seqs))
   and parent in (select value from json_each(:seqs))
   and state = 'broke'

-- name: retry
-- Retry a job, due now, at its old position in the queue. The caller has checked the state in this transaction. After a cancel
-- between two runs, the columns show the end of the latest run again, if there was one.
update jobs
   set state = 'pending',
       ready = held = 0,
       run_at = :now,
       rank = :rank,
       effective_priority = null,
       attempts = iif(state = 'failed', attempts, 0),
       crashes = iif(state = 'failed', crashes, 0),
       finished_at = iif(
           ending is null, (select finished_at from runs where job = jobs.seq and number = jobs.runs), finished_at
       ),
       error = iif(ending is null, (select error from runs where job = jobs.seq and number = jobs.runs), error),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('failed', 'dead', 'cancelled')

-- name: edit
-- Change a waiting job. Null: unchanged; a timeout of 0: none. The caller has read the position of the job in this transaction,
-- and computes the new one.
update jobs
   set command = iif(:argv is null, coalesce(:command, command), null),
       argv = iif(:command is null, coalesce(:argv, argv), null),
       queue = coalesce(:queue, queue),
       priority = :priority,
       rank = :rank,
       eligible_at = :eligible_at,
       run_at = :run_at,
       ready = :ready,
       key_blocked = 0,
       held = :held,
       max_retries = coalesce(:max_retries, max_retries),
       first_is_free = coalesce(:first_is_free, first_is_free),
       timeout_ms = nullif(coalesce(:timeout_ms, timeout_ms), 0),
       secrets = nullif(coalesce(:secrets, secrets), '[]'),
       hooks = iif(:hooks is null, hooks, nullif(json_patch(coalesce(hooks, '{}'), :hooks), '{}')),
       limits = iif(:limits is null, limits, nullif(json_patch(coalesce(limits, '{}'), :limits), '{}')),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('blocked', 'pending', 'failed')

-- name: standing
-- The columns that a command of a user needs to decide about jobs, read under the write lock.
select seq, id, state, queue, worker, token, log, priority, eligible_at, missed, run_at, ready, held, runs, updated_at,
       unique_key, key
  from jobs
 where id in (select value from json_each(:ids))

-- name: move
-- Move the waiting jobs of a queue, all or those with some IDs, to another one. They keep their rank.
update jobs
   set queue = :to,
       key_blocked = 0,
       updated_at = max(:now, created_at)
 where queue = :queue
   and state in ('blocked', 'pending', 'failed')
   and state <> 'processing'
   and (:ids is null or id in (select value from json_each(:ids)))
returning seq, id, state, key

-- name: purge
-- Remove a dead job with its history, output, tags and dependencies. (PostgreSQL: `prune`.)
delete from jobs
 where seq = ?
   and state = 'dead'

-- name: reset_jobs
-- Remove every job; history, output and tags go with them.
delete from jobs

-- name: last_seq
-- The latest sequence number; survives the removal of every job.
select coalesce((select seq from sqlite_sequence where name = 'jobs'), 0)
