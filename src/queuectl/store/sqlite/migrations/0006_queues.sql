-- What is said about a queue. One without a row has no limits, and costs nothing.
create table queues (
    name text primary key check (length(name) between 1 and 64),
    paused integer not null default 0 check (paused in (0, 1)),
    concurrency integer check (concurrency >= 1),  -- jobs at a time, over all workers
    rate_starts integer check (rate_starts >= 1),  -- so many starts, retries included,
    rate_ms integer check (rate_ms >= 1),          -- in every window of this length

    -- for jobs that do not say otherwise when they are enqueued
    priority integer check (priority between -1000000 and 1000000),
    max_retries integer check (max_retries between 0 and 1000000),
    timeout_ms integer check (timeout_ms >= 0),    -- 0: none at all

    check ((rate_starts is null) = (rate_ms is null))
) strict, without rowid;

-- The latest starts of queues with a rate, as many as it counts, by a number that goes up by one each. `at` is the time of the
-- claim; when the process was there, the job's row or its history says, see limits.sql.
create table starts (
    queue text not null,
    number integer not null check (number >= 1),
    job integer not null,
    run integer not null,
    at integer not null,
    primary key (queue, number)
) strict, without rowid;
