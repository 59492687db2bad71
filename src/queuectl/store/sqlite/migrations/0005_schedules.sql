-- Schedules: when jobs are to be added by themselves, see job/cron/. Times are milliseconds since 1970 UTC.
create table schedules (
    name text primary key check (length(name) between 1 and 64),
    expression text not null,
    tz text not null,
    anchor_at integer not null,  -- where `every` counts from
    fields text not null,        -- of the job, as enqueue takes them
    overlap text not null check (overlap in ('skip', 'queue', 'allow')),
    catch_up integer not null check (catch_up >= 0),
    jitter_ms integer not null check (jitter_ms >= 0),
    until_at integer,
    paused integer not null check (paused in (0, 1)),
    created_at integer not null,
    updated_at integer not null,
    tick_at integer,   -- the next tick
    start_at integer,  -- when it is fired
    look_at integer,   -- when somebody has to look at it again
    last_at integer,   -- the latest tick that was decided about
    waiting text,      -- the id of the job that waits for those before it
    check (paused = 0 or tick_at is null),
    check ((tick_at is null) = (start_at is null))
) strict, without rowid;

create index schedules_look on schedules (look_at) where look_at is not null;

-- What was decided about each tick; written in the transaction of its job. That there can be one row only is what keeps a tick
-- from being fired twice, whoever looks and whatever the clocks do. The latest are kept, see trim_ticks.sql.
create table ticks (
    schedule text not null references schedules (name) on delete cascade,
    at integer not null,
    by_hand integer not null check (by_hand in (0, 1)),
    decided_at integer not null,
    job text,     -- its id; or else
    reason text,  -- why there is none
    times integer not null check (times >= 1),
    primary key (schedule, at, by_hand),
    check ((job is null) <> (reason is null))
) strict, without rowid;

-- The schedule that a job is of. Added at the end, and null for all that workers of the version before write.
alter table jobs add column cron text;

-- Which jobs of a schedule have not ended.
create index jobs_cron on jobs (cron, state) where cron is not null;
