-- set_rules: all that is said about a queue.
insert or replace into queues (name, paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key,
    on_success, on_failure, on_dead, limits)
values (:name, :paused, :concurrency, :rate_starts, :rate_ms, :priority, :max_retries, :timeout_ms, :per_key,
    :on_success, :on_failure, :on_dead, :limits)
