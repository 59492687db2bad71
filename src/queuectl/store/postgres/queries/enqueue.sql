-- enqueue: add one job. In the order of store/entry.py; state is pending by default. Many come as a stream, see enqueue_many.sql.
insert into queuectl.jobs (
    seq, id, command, argv, queue, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free, backoff_base,
    timeout_ms, cwd, env, tags, unique_key, created_at, updated_at, batch, key, aside, places, hooks, limits, secrets
)
values (
    %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
)
