-- rules: what is said about queues.
select name, paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key, on_success,
       on_failure, on_dead, limits
  from queues
