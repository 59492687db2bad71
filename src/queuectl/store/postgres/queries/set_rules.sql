-- set_rules: all that is said about a queue. Its row is there, see take_rules.sql.
update queuectl.queues
   set paused = %(paused)s,
       concurrency = %(concurrency)s,
       rate_starts = %(rate_starts)s,
       rate_ms = %(rate_ms)s,
       priority = %(priority)s,
       max_retries = %(max_retries)s,
       timeout_ms = %(timeout_ms)s,
       per_key = %(per_key)s,
       on_success = %(on_success)s,
       on_failure = %(on_failure)s,
       on_dead = %(on_dead)s,
       limits = %(limits)s
 where name = %(name)s
