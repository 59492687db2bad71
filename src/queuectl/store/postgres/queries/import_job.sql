-- import_job: add jobs with their past, as a stream of rows. In the order of store/porting.py, and the token of the latest run:
-- there is none that anybody could show. (SQLite has no such column.)
copy queuectl.jobs (
    seq, id, command, argv, state, queue, ready, priority, rank, eligible_at, effective_priority, run_at, held, max_retries,
    first_is_free, backoff_base, timeout_ms, cwd, env, tags, unique_key, cron, attempts, runs, crashes, worker, host, pid, started_at,
    finished_at, duration_ms, wait_ms, exit_code, signal, error, ending, created_at, updated_at, batch, key, depends_on, places,
    hooks, limits, usage, secrets, last_token
) from stdin
