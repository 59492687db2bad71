-- name: enqueue
-- Add one job. Positional parameters, since a bulk enqueue binds a million rows.
insert into jobs (
    seq, id, command, argv, state, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free,
    backoff_base, timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, aside, places, hooks,
    limits, secrets
)
values (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: block
-- A new job that waits for others, or could have.
update jobs
   set state = iif(:is_blocked, 'blocked', state),
       ready = iif(:is_blocked, 0, ready),
       depends_on = :said
 where seq = :seq

-- name: tag
-- Let a job be found by one of its tags.
insert into job_tags (tag, job)
values (?, ?)

-- name: admit
-- Let jobs be claimed again for which their concurrency key has free slots, in order. Without a limit for keys that is all
-- of them. The first says what the limit is, if it says so itself. Others of the key may have come to the line behind them meanwhile: who goes too far back is set aside by a claim.
update jobs
   set aside = 0
 where aside = 1
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

-- name: line_up
-- In a whole queue, set aside the jobs whose concurrency key has no free slot, and let the others be claimed. When its limit changes or
-- the order of the line; :per_key is null if it has none.
update jobs
   set aside = line.aside
  from (
    select seq,
           coalesce(places, :per_key) is not null
           and row_number() over (partition by key order by rank, seq) > coalesce(places, :per_key) - (
               select count(*)
                 from jobs as other indexed by jobs_running_key
                where other.queue = :queue
                  and other.key = jobs.key
                  and other.state = 'processing'
           ) as aside
      from jobs indexed by jobs_of_key
     where queue = :queue
       and key is not null
       and ready = 1
  ) as line
 where jobs.seq = line.seq
   and jobs.aside <> line.aside

-- name: request
-- What was answered to a request of this key, unless it was too long ago.
select digest, answer
  from requests
 where key = :key
   and at > :before

-- name: keep_request
-- What was answered to a request, in the place of one that was too long ago.
insert into requests (key, digest, answer, at)
values (:key, :digest, :answer, :now)
on conflict (key) do update set digest = excluded.digest, answer = excluded.answer, at = excluded.at

-- name: holders
-- Who has each of some unique keys: the one that waits or runs (there is one at most), else the one enqueued last.
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
-- Cancel a job that does not run. Its last run, if there was one, has been archived: what the job's row
-- shows of it stays as it was but for the error, which says why.
update jobs
   set state = 'cancelled',
       ready = 0,
       aside = 0,
       effective_priority = :effective_priority,
       error = :error,
       ending = null,
       finished_at = max(:now, created_at, coalesce(started_at, created_at)),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('blocked', 'pending', 'failed')

-- name: cancel_running
-- Record the wish. The worker that holds the job ends it; whatever it reports then, the wish wins.
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
-- Of some jobs, those that another one of them has cancelled as their parent.
select distinct child
  from edges
 where child in (select value from json_each(:seqs))
   and parent in (select value from json_each(:seqs))
   and state = 'broke'

-- name: retry
-- Another chance, due now, in the old place of the line. The caller has checked the state in this transaction.
-- A cancel that came between two runs is forgotten: what is shown is the end of the latest run again, if there was one.
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
-- Change a job that waits. What is null stays as it is; a timeout of 0 means none. The caller has read where the job
-- stands in this transaction, and says where it stands now.
update jobs
   set command = iif(:argv is null, coalesce(:command, command), null),
       argv = iif(:command is null, coalesce(:argv, argv), null),
       queue = coalesce(:queue, queue),
       priority = :priority,
       rank = :rank,
       eligible_at = :eligible_at,
       run_at = :run_at,
       ready = :ready,
       aside = 0,
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
-- What decides about the place and fate of jobs, read under the write lock before a person's command changes it.
select seq, id, state, queue, worker, token, log, priority, eligible_at, missed, run_at, ready, held, runs, updated_at,
       unique_key, key
  from jobs
 where id in (select value from json_each(:ids))

-- name: move
-- Move the waiting jobs of a queue, all or those with some IDs, to another one. They keep their rank.
update jobs
   set queue = :to,
       aside = 0,
       updated_at = max(:now, created_at)
 where queue = :queue
   and state in ('blocked', 'pending', 'failed')
   and state <> 'processing'
   and (:ids is null or id in (select value from json_each(:ids)))
returning seq, id, state, key

-- name: purge
-- Remove a dead job; its history, output, tags and edges go with it. (PostgreSQL: `prune`.)
delete from jobs
 where seq = ?
   and state = 'dead'

-- name: reset_jobs
-- Remove every job; history, output and tags go with them.
delete from jobs

-- name: last_seq
-- The sequence number given out last; survives the removal of every job.
select coalesce((select seq from sqlite_sequence where name = 'jobs'), 0)
