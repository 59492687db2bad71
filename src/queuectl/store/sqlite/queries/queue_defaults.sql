-- queue_defaults: what jobs of a queue get that do not say otherwise.
select name, priority, max_retries, timeout_ms
  from queues
 where priority is not null
    or max_retries is not null
    or timeout_ms is not null
