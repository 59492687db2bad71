-- ready_behind: the same behind a place of the line, for a queue with a limit by key: some of those before may have no room.
-- (PostgreSQL: heads_behind.sql.)
select rank, seq, id, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, state, priority, eligible_at, missed, key, places, depends_on, hooks, limits, secrets
  from jobs indexed by jobs_ready
 where queue = :queue
   and ready = 1
   and aside = 0
   and (rank, seq) > (:rank, :seq)
 order by rank, seq
 limit :limit
