-- name: claim
-- Claim one job. Runs in the transaction that found it, which holds the write lock: no other worker can claim it meanwhile.
-- `started_at` is that of the claim until the worker reports the process. An earlier run has been archived.
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
       last_output = null,
       fingerprint = null,
       updated_at = max(:now, created_at)
 where seq = :seq
   and ready = 1

-- name: ready
-- The first claimable jobs of a queue, from jobs_ready. (PostgreSQL: within `claim`, or `heads` where queues are limited.)
select rank, seq, id, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, state, priority, eligible_at, missed, key, places, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_ready
 where queue = :queue
   and ready = 1
   and key_blocked = 0
 order by rank, seq
 limit :limit

-- name: ready_behind
-- The same after a position, for a queue that limits concurrency keys: earlier jobs may have no free slot.
select rank, seq, id, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, state, priority, eligible_at, missed, key, places, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_ready
 where queue = :queue
   and ready = 1
   and key_blocked = 0
   and (rank, seq) > (:rank, :seq)
 order by rank, seq
 limit :limit

-- name: ready_queues
-- The queues with claimable jobs. Steps from name to name through jobs_ready (a loose index scan), so it costs one probe per
-- queue, not one row per job.
with recursive step (queue) as (
    select min(queue)
      from jobs
     where ready = 1
       and key_blocked = 0
    union all
    select (
        select min(queue)
          from jobs
         where ready = 1
           and key_blocked = 0
           and queue > step.queue
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null

-- name: promote
-- Make due jobs claimable. Bounded, so that a million at once do not hold the write lock for seconds; the caller repeats it
-- while the bound is reached.
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
-- What an exchange needs before it writes, in one statement: the ageing rule, the latest sequence number, the state of the
-- worker, when the next job comes due, and whether queues are paused or limited, dependencies are unresolved, jobs have
-- dependencies, or jobs limit their own key. (PostgreSQL: within the statements of its one round trip.)
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
             from jobs indexed by jobs_key_limits
            where places is not null
              and state in ('blocked', 'pending', 'processing', 'failed')
       ) is not null

-- name: is_due
-- Whether a queue has a job that is due but not promoted yet. (PostgreSQL: `is_drained`, for all queues at once.)
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
-- Whether a queue has a due job, including those blocked on their key. (PostgreSQL: `is_drained`, for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_oldest
     where queue = :queue
       and ready = 1
)

-- name: is_waiting
-- Whether a job waits for a parent. (PostgreSQL: `open_edges`, for many children at once.)
select exists (select 1 from edges where child = ? and state = 'waiting')

-- name: is_retrying
-- Whether a retry in this queue waits that is not held (of a webhook delivery: one of the first few). (PostgreSQL:
-- `is_drained`, for all queues at once.)
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
-- The frequency of each waiting time among the completed jobs of each queue, without webhook deliveries. See `durations`.
select queue, wait_ms, count(*)
  from jobs indexed by jobs_state
 where state = 'completed'
   and state <> 'processing'
   and wait_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, wait_ms

-- name: unclaim
-- A worker returned a job that it had not started: the claim was not a run. The job's row shows the run before it again, which
-- was archived at the claim, or none. See `drop_earlier`.
update jobs
   set runs = runs - 1,
       (worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage, last_output) = (
           select worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage, last_output
             from runs
            where job = jobs.seq
              and number = jobs.runs - 1
       ),
       wait_ms = iif(runs > 1, wait_ms, null)
 where seq = :seq

-- name: unrun
-- The policy of the host refused this job: the claim was not a run, is not counted, and is not in the history. An earlier run
-- was archived at the claim; its start time stays in the row.
update jobs
   set runs = runs - 1,
       started_at = (select coalesce(runs.started_at, jobs.started_at) from runs where job = jobs.seq and number = jobs.runs - 1),
       wait_ms = iif(runs > 1, wait_ms, null),
       duration_ms = null
 where seq = :seq
   and state = 'dead'
   and ending is null
