-- Schedules: when jobs are to be added by themselves, see job/cron/. Times are milliseconds since 1970 UTC.
create table queuectl.schedules (
    name text collate "C" primary key check (length(name) between 1 and 64),
    expression text not null,
    tz text not null,
    anchor_at bigint not null,  -- where `every` counts from
    fields text not null,       -- of the job, as enqueue takes them
    overlap text not null check (overlap in ('skip', 'queue', 'allow')),
    catch_up integer not null check (catch_up >= 0),
    jitter_ms bigint not null check (jitter_ms >= 0),
    until_at bigint,
    paused boolean not null,
    created_at bigint not null,
    updated_at bigint not null,
    tick_at bigint,   -- the next tick
    start_at bigint,  -- when it is fired
    look_at bigint,   -- when somebody has to look at it again
    last_at bigint,   -- the latest tick that was decided about
    waiting text collate "C",  -- the id of the job that waits for those before it
    check (not paused or tick_at is null),
    check ((tick_at is null) = (start_at is null))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

create index schedules_look on queuectl.schedules (look_at) where look_at is not null;

-- What was decided about each tick; written in the transaction of its job. That there can be one row only is what keeps a tick
-- from being fired twice, whoever looks and whatever the clocks do. The latest are kept, see trim_ticks.sql.
create table queuectl.ticks (
    schedule text collate "C" not null references queuectl.schedules (name) on delete cascade,
    at bigint not null,
    by_hand boolean not null,
    decided_at bigint not null,
    job text collate "C",  -- its id; or else
    reason text,           -- why there is none
    times integer not null check (times >= 1),
    primary key (schedule, at, by_hand),
    check ((job is null) <> (reason is null))
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- The schedule that a job is of. Added at the end, and null for all that workers of the version before write.
alter table queuectl.jobs add column cron text collate "C";

-- Which jobs of a schedule have not ended.
create index jobs_cron on queuectl.jobs (cron, state) where cron is not null;
