-- ready: the head of one queue's line, straight from jobs_ready.
-- (PostgreSQL: within claim.sql, or heads.sql where queues are limited.)
select rank, seq, id, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, state, priority, eligible_at, missed, key, places, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_ready
 where queue = :queue
   and ready = 1
   and aside = 0
 order by rank, seq
 limit :limit
