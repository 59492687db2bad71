-- name: claim
-- Claim one job. Runs in the transaction that found it, which holds the write lock: no other worker
-- can have it meanwhile. Started now until the worker says when exactly. An earlier run has been archived.
update jobs
   set state = 'processing',
       ready = 0,
       token = :token,
       worker = :worker,
       host = :host,
       pid = null,
       claimed_seq = :last_seq,
       cancel_requested = 0,
       effective_priority = :effective_priority,
       runs = runs + 1,
       started_at = max(:now, created_at),
       wait_ms = max(0, :now - max(created_at, run_at)),
       finished_at = null,
       duration_ms = null,
       exit_code = null,
       signal = null,
       error = null,
       ending = null,
       log_from = null,
       log_to = null,
       usage = null,
       updated_at = max(:now, created_at)
 where seq = :seq
   and ready = 1

-- name: ready
-- The head of one queue's line, straight from jobs_ready.
-- (PostgreSQL: within `claim`, or `heads` where queues are limited.)
select rank, seq, id, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, state, priority, eligible_at, missed, key, places, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_ready
 where queue = :queue
   and ready = 1
   and aside = 0
 order by rank, seq
 limit :limit

-- name: ready_behind
-- The same behind a place of the line, for a queue with a limit by key: some of those before may have no room.
-- (PostgreSQL: `heads_behind`.)
select rank, seq, id, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, state, priority, eligible_at, missed, key, places, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_ready
 where queue = :queue
   and ready = 1
   and aside = 0
   and (rank, seq) > (:rank, :seq)
 order by rank, seq
 limit :limit

-- name: ready_queues
-- The queues that have something to claim. Steps from name to name through jobs_ready (a loose index
-- scan), so it costs one probe a queue, not one row a job.
with recursive step (queue) as (
    select min(queue)
      from jobs
     where ready = 1
       and aside = 0
    union all
    select (
        select min(queue)
          from jobs
         where ready = 1
           and aside = 0
           and queue > step.queue
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null

-- name: promote
-- Let those in whose time has come. Bounded, so that a million at once do not hold the
-- write lock for seconds; the caller comes back while the bound was reached.
update jobs
   set ready = 1
 where seq in (
    select seq
      from jobs indexed by jobs_due
     where ready = 0
       and held = 0
       and state in ('pending', 'failed')
       and run_at <= :now
     order by run_at
     limit :limit
 )

-- name: next_due
-- When the next job comes due. (PostgreSQL: `outlook`.)
select min(run_at)
  from jobs indexed by jobs_due
 where ready = 0
   and held = 0
   and state in ('pending', 'failed')

-- name: outlook
-- What an exchange has to know before it writes, in one statement: how waiting is rewarded, the sequence number
-- given out last, the state of the worker if the store knows it, when the next job comes due, whether any queue is paused or
-- limited, whether some jobs have not been told what became of their parents, whether there are jobs with parents at all, and
-- whether any job limits its key itself. (PostgreSQL finds out within the statements of its one round trip.)
select (select value from config where key = 'ageing'),
       coalesce((select seq from sqlite_sequence where name = 'jobs'), 0),
       (select state from workers where id = ?),
       (select min(run_at) from jobs indexed by jobs_due where ready = 0 and held = 0 and state in ('pending', 'failed')),
       exists (
           select 1 from queues where paused or concurrency is not null or rate_starts is not null or per_key is not null
       ),
       exists (select 1 from undecided),
       exists (select 1 from edges where parent > 0),
       (
           select min(queue)
             from jobs indexed by jobs_places
            where places is not null
              and state in ('blocked', 'pending', 'processing', 'failed')
       ) is not null

-- name: is_due
-- Has a queue a job that is due but not promoted yet?
-- (PostgreSQL: `is_drained` asks for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_due
     where ready = 0
       and held = 0
       and state in ('pending', 'failed')
       and run_at <= :now
       and queue = :queue
)

-- name: is_ready
-- Has a queue something whose time has come? Also if it stands aside.
-- (PostgreSQL: `is_drained` asks for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_oldest
     where queue = :queue
       and ready = 1
)

-- name: is_waiting
-- Does a job wait for some parent? (PostgreSQL: `open_edges`, for many children at once.)
select exists (select 1 from edges where child = ? and state = 'waiting')

-- name: is_retrying
-- Does a retry of this queue wait that is not held (of a delivery: one of the first few)?
-- (PostgreSQL: `is_drained` asks for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_state
     where state = 'failed'
       and state <> 'processing'
       and held = 0
       and queue = :queue
       and (queue <> 'queuectl.webhooks' or attempts < :patience)
)

-- name: waits
-- How often each waiting time occurred among the completed jobs of each queue (not the calls). See `durations`.
select queue, wait_ms, count(*)
  from jobs indexed by jobs_state
 where state = 'completed'
   and state <> 'processing'
   and wait_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, wait_ms

-- name: unclaim
-- A job that was just settled was given back by its worker, which had not begun it: the claim has not been a run. The job
-- shows the run before it again, which was archived at the claim, or none. See `drop_earlier`.
update jobs
   set runs = runs - 1,
       (worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage) = (
           select worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage
             from runs
            where job = jobs.seq
              and number = jobs.runs - 1
       ),
       wait_ms = iif(runs > 1, wait_ms, null)
 where seq = :seq

-- name: unrun
-- The policy of its host was against this job, so that the claim which was just settled has not been a run: it is not counted,
-- and has no place in the history. An earlier run was archived at the claim; what the row shows of it is when that began.
update jobs
   set runs = runs - 1,
       started_at = (select coalesce(runs.started_at, jobs.started_at) from runs where job = jobs.seq and number = jobs.runs - 1),
       wait_ms = iif(runs > 1, wait_ms, null),
       duration_ms = null
 where seq = :seq
   and state = 'dead'
   and ending is null
