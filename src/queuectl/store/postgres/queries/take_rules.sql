-- take_rules: until the end of this transaction nobody else changes what is said about a queue, or claims by it. (SQLite has one
-- writer.)
insert into queuectl.queues (name)
values (%(name)s)
on conflict (name) do update set name = excluded.name
returning paused, concurrency, rate_starts, rate_ms, priority, max_retries, timeout_ms, per_key, on_success, on_failure,
          on_dead, limits
