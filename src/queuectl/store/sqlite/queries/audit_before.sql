-- audit_before: what of jobs a person can change, for the audit.
select id, command, argv, queue, priority, max_retries, timeout_ms, limits, run_at, held
  from jobs
 where id in (select value from json_each(:ids))
