-- claim: give one job to a worker. Runs inside the transaction that found it, which holds the write lock: nobody else
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
       log = :log,
       log_from = null,
       log_to = null,
       usage = null,
       updated_at = max(:now, created_at)
 where seq = :seq
   and ready = 1
