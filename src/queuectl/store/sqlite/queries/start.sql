-- start: the process of a claimed job exists.
update jobs
   set pid = :pid,
       log_from = :log_from,
       started_at = max(:started_at, created_at),
       wait_ms = max(0, :started_at - max(created_at, run_at))
 where seq = :seq
   and token = :token
   and state = 'processing'
