-- audit_before: what of jobs a person can change, for the audit.
select id, command, argv, queue, priority, max_retries, timeout_ms, limits, run_at, held
  from queuectl.jobs
 where id = any(%(ids)s)
