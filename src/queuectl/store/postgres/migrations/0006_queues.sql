-- What is said about a queue. One without a row has no limits, and costs nothing.
create table queuectl.queues (
    name text collate "C" primary key check (length(name) between 1 and 64),
    paused boolean not null default false,
    concurrency integer check (concurrency >= 1),  -- jobs at a time, over all workers and hosts
    rate_starts integer check (rate_starts >= 1),  -- so many starts, retries included,
    rate_ms bigint check (rate_ms >= 1),           -- in every window of this length

    -- for jobs that do not say otherwise when they are enqueued
    priority integer check (priority between -1000000 and 1000000),
    max_retries integer check (max_retries between 0 and 1000000),
    timeout_ms bigint check (timeout_ms >= 0),     -- 0: none at all

    check ((rate_starts is null) = (rate_ms is null))
);

-- The latest starts of queues with a rate, as many as it counts, by a number that goes up by one each. `at` is the time of the
-- claim; when the process was there, the job's row or its history says, see limits.sql.
create table queuectl.starts (
    queue text collate "C" not null,
    number bigint not null check (number >= 1),
    job bigint not null,
    run integer not null,
    at bigint not null,
    primary key (queue, number)
) with (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0);
