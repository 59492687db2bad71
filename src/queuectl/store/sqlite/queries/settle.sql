-- settle: write the end of a run. Matches nothing if the job has passed to somebody else, or if a cancel is recorded
-- that the caller does not know of: then the caller decides anew.
-- A job that waits again keeps its place; enqueues that came while it ran earn it nothing (`missed`), also if this was
-- its last run: it may be revived.
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
       log_from = coalesce(:log_from, log_from),
       log_to = :log_to,
       usage = :usage,
       updated_at = max(:now, created_at)
 where seq = :seq
   and token = :token
   and state = 'processing'
   and (cancel_requested = 0 or :is_cancel)
