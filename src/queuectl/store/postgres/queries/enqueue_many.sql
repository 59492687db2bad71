-- enqueue_many: add jobs, as a stream of rows. In the order of store/entry.py; state is pending by default. (SQLite: enqueue.sql.)
copy queuectl.jobs (
    seq, id, command, argv, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free, backoff_base,
    timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, aside, places, hooks, limits, secrets
) from stdin
