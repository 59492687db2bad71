-- enqueue: add one job. Positional parameters, since a bulk enqueue binds a million rows.
insert into jobs (
    seq, id, command, argv, state, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free,
    backoff_base, timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, aside, places, hooks,
    limits, secrets
)
values (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
