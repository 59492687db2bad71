-- running: what a worker holds.
select seq, id, token, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, key, log, cancel_requested, depends_on, hooks, limits, secrets
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
 order by seq
