-- name: start
-- Record that the process of a claimed job was started, and again when it has printed something: `log` is null before.
update jobs
   set pid = :pid,
       log = coalesce(:log, log),
       log_from = coalesce(:log_from, log_from),
       started_at = iif(pid is null, max(:started_at, created_at), started_at),
       wait_ms = iif(pid is null, max(0, :started_at - max(created_at, run_at)), wait_ms)
 where seq = :seq
   and token = :token
   and state = 'processing'

-- name: settle
-- Write the end of a run. Matches nothing if the job has another token, or if a cancel is recorded that the caller does not
-- know of: then the caller decides again. A job that waits again keeps its position; enqueues while it ran do not count for its
-- rank (`missed`), also after its last run: it may be retried.
update jobs
   set state = :state,
       ready = :is_due and held = 0,
       token = null,
       pid = coalesce(:pid, pid),
       cancel_requested = 0,
       attempts = :attempts,
       crashes = :crashes,
       missed = missed + :last_seq - claimed_seq,
       rank = rank + :by_enqueues * (:last_seq - claimed_seq),
       effective_priority = iif(:waits, null, effective_priority),
       run_at = coalesce(:retry_at, run_at),
       started_at = max(coalesce(:started_at, started_at), created_at),
       wait_ms = iif(:started_at is null, wait_ms, max(0, :started_at - max(created_at, run_at))),
       finished_at = max(:finished_at, coalesce(:started_at, started_at), created_at),
       duration_ms = :duration_ms,
       exit_code = :exit_code,
       signal = :signal,
       error = :error,
       ending = :ending,
       log = coalesce(:log, log),
       log_from = coalesce(:log_from, log_from),
       log_to = :log_to,
       usage = :usage,
       last_output = :last_output,
       fingerprint = :fingerprint,
       updated_at = max(:now, created_at)
 where seq = :seq
   and token = :token
   and state = 'processing'
   and (cancel_requested = 0 or :is_cancel)

-- name: archive
-- Copy the latest run of a job, if it has ended and was not copied, to `runs`: the job's row is about to be overwritten.
insert into runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
    usage, last_output
)
select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
       usage, last_output
  from jobs
 where seq = :seq
   and ending is not null

-- name: worked
-- Add to the number of jobs that a worker has completed. (PostgreSQL: within `settle`, by a row of `done`.)
update workers
   set jobs_done = jobs_done + :jobs
 where id = :id

-- name: is_cancelled
-- Whether a cancel is recorded for this run. No row: the job has another token. (PostgreSQL: within `settle`.)
select cancel_requested
  from jobs
 where seq = :seq
   and token = :token
   and state = 'processing'

-- name: running
-- The claims of a worker. The log, which may not exist yet, is in the data directory of the worker.
select seq, id, token, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, key, coalesce((select home from workers where id = :worker) || '/logs/' || id || '.log', log, ''), cancel_requested, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_running
 where worker = :worker
   and state = 'processing'
 order by seq

-- name: add_output
-- Store a piece of output. Changes nothing if the job has another token. If it is sent again because the answer was lost, it
-- may be longer: the longer one stays.
insert into output (job, run, at, data)
select seq, runs, :at, :data
  from jobs
 where seq = :seq
   and token = :token
   and state = 'processing'
    on conflict (job, run, at) do update
   set data = excluded.data
 where length(excluded.data) > length(output.data)

-- name: drop_output
-- Remove output that ends at or before an offset. Changes nothing if the job has another token.
delete from output
 where job = :seq
   and run = (select runs from jobs where seq = :seq and token = :token and state = 'processing')
   and at < :keep_from
   and at + length(data) <= :keep_from

-- name: drop_earlier
-- After `unclaim` the latest run is stored in the job again, and not in `runs`. (PostgreSQL: within `unclaim`.)
delete from runs
 where job = :seq
   and number = (select runs from jobs where seq = :seq)

-- name: add_delivery
-- Add a webhook to the outbox, in the transaction that settles the run. (PostgreSQL does so within `settle`.)
insert into webhook_outbox (job, run, event, url, origin, at)
values (:job, :run, :event, :url, :origin, :at)

-- name: take_deliveries
-- The oldest rows of the webhook outbox. (PostgreSQL skips those that another worker is reading.)
delete from webhook_outbox
 where rowid in (select rowid from webhook_outbox order by rowid limit :limit)
returning at, job, run, event, url, origin

-- name: histories
-- The runs of some jobs except those that are stored in the jobs' rows. In the order of the primary key.
select job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage, last_output
  from runs
 where job in (select value from json_each(:seqs))
 order by job, number

-- name: latest_runs
-- For some jobs, the run that is stored in the job's row, and the path of its log.
select id, log, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error,
       coalesce(ending, 'running'), log_from, log_to, usage, last_output
  from jobs
 where id in (select value from json_each(:ids))
   and (state = 'processing' or ending is not null)

-- name: output
-- The stored output of a run, from a byte on; the first piece may begin before it.
select at, data
  from output
 where job = (select seq from jobs where id = :id)
   and run = :run
   and at >= coalesce(
       (select max(at) from output where job = (select seq from jobs where id = :id) and run = :run and at <= :start), 0
   )
   and at + length(data) > :start
 order by at
 limit :limit
