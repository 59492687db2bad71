-- queue_defaults: what jobs of a queue get that do not say otherwise.
select name, priority, max_retries, timeout_ms, on_success, on_failure, on_dead, limits
  from queuectl.queues
 where priority is not null
    or max_retries is not null
    or timeout_ms is not null
    or on_success is not null
    or on_failure is not null
    or on_dead is not null
    or limits is not null
