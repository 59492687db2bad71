-- The first schema. Times are milliseconds since 1970 UTC, durations are milliseconds, lists and objects are JSON text.
-- Checks compare with `or`: for `in` with more than two values SQLite builds a temporary index, in every statement that
-- touches a row, which cost a claim and its settling a fifth of their time.

-- One row a job, for its whole life. Its latest run stands here too, from the claim on: most jobs have only one. It becomes
-- a row of `runs` when something else needs its place, see archive.sql.
create table jobs (
    seq integer primary key autoincrement,  -- the order of enqueue; never given twice
    id text not null unique check (length(id) between 1 and 128),
    command text,  -- for the shell; or else
    argv text,     -- a list, run as it is
    state text not null check (
        state = 'blocked' or state = 'pending' or state = 'processing' or state = 'failed' or state = 'completed'
        or state = 'dead' or state = 'cancelled'
    ),
    queue text not null check (length(queue) between 1 and 64),

    -- the place in the line
    ready integer not null check (ready in (0, 1)),  -- may be claimed now; due times flip it, see promote.sql
    priority integer not null check (priority between -1000000 and 1000000),
    rank integer not null,                           -- see job/rank.py; smaller goes first
    eligible_at integer not null,                    -- when it could first have run
    missed integer not null default 0,               -- enqueues that came while it ran: they earn no ageing
    effective_priority integer,                      -- as it was at the claim or the end; null: it grows, compute it
    run_at integer not null,
    held integer not null default 0 check (held in (0, 1)),

    -- the rules
    max_retries integer not null check (max_retries between 0 and 1000000),
    first_is_free integer not null check (first_is_free in (0, 1)),
    backoff_base real not null check (backoff_base >= 1),
    timeout_ms integer check (timeout_ms > 0),
    cwd text not null,
    env text,
    tags text not null default '[]',
    unique_key text,

    -- the counts
    attempts integer not null default 0 check (attempts >= 0),
    runs integer not null default 0 check (runs >= attempts),
    crashes integer not null default 0 check (crashes >= 0),

    -- the latest run
    token text,  -- whoever shows it may write about the run under way
    worker text,
    host text,
    pid integer,
    claimed_seq integer,  -- the last seq given out at the time of the claim
    cancel_requested integer not null default 0 check (cancel_requested in (0, 1)),
    started_at integer,
    finished_at integer,
    duration_ms integer check (duration_ms >= 0),
    wait_ms integer check (wait_ms >= 0),
    exit_code integer,
    signal integer,
    error text,
    ending text check (
        ending = 'completed' or ending = 'failed' or ending = 'timeout' or ending = 'signalled'
        or ending = 'unstartable' or ending = 'cancelled' or ending = 'released' or ending = 'lost'
    ),  -- null: it is under way, or stands in `runs`, or there was none
    log text,
    log_from integer,
    log_to integer,

    created_at integer not null,
    updated_at integer not null check (updated_at >= created_at),

    check ((command is null) <> (argv is null)),
    check ((token is not null) = (state = 'processing')),
    check (ending is null or token is null),
    check (ready = 0 or (state in ('pending', 'failed') and held = 0)),
    check ((finished_at is not null) >= (state = 'completed' or state = 'dead' or state = 'cancelled'))
) strict;

-- Who may be claimed, in order. Everybody else stays out, so that a claim costs the same at any number of jobs.
create index jobs_ready on jobs (queue, rank, seq) where ready = 1;
-- How long the oldest has waited.
create index jobs_oldest on jobs (queue, run_at) where ready = 1;
-- Who comes due next.
create index jobs_due on jobs (run_at) where ready = 0 and held = 0 and state in ('pending', 'failed');
-- Who is in the hands of which worker.
create index jobs_running on jobs (worker) where state = 'processing';
-- Lists by state, newest first. Who is processing stays out: they are few, jobs_running has them, and every run would
-- cost one entry more.
create index jobs_state on jobs (state, seq) where state <> 'processing';
-- Throughput and retention.
create index jobs_completed on jobs (finished_at) where state = 'completed';

-- One row a run that is over, of any end, but for those that stand in their job.
create table runs (
    job integer not null references jobs (seq) on delete cascade,
    number integer not null check (number >= 1),
    worker text not null,
    host text not null,
    pid integer,
    started_at integer,
    finished_at integer not null,
    duration_ms integer check (duration_ms >= 0),
    exit_code integer,
    signal integer,
    error text,
    ending text not null check (
        ending = 'completed' or ending = 'failed' or ending = 'timeout' or ending = 'signalled'
        or ending = 'unstartable' or ending = 'cancelled' or ending = 'released' or ending = 'lost'
    ),
    log_from integer,
    log_to integer,
    primary key (job, number)
) strict, without rowid;

-- What runs printed, in pieces, as far as it is kept: where the log of a job lies on the disk of another host. `at`: how many
-- bytes of the output of this run come before; pieces may overlap, see add_output.sql.
create table output (
    job integer not null references jobs (seq) on delete cascade,
    run integer not null check (run >= 1),
    at integer not null check (at >= 0),
    data blob not null check (length(data) > 0),
    primary key (job, run, at)
) strict;

create table job_tags (
    tag text not null,
    job integer not null references jobs (seq) on delete cascade,
    primary key (tag, job)
) strict, without rowid;

create index job_tags_job on job_tags (job);

create table workers (
    id text primary key,
    host text not null,
    machine text not null,  -- which one, whatever it is called: names are given twice
    lock text not null,     -- the mark of its lock file: paths are given twice, too
    pid integer not null,
    home text not null,
    state text not null check (state in ('running', 'stopping', 'lost')),  -- lost: its jobs are being taken from it
    stop text check (stop in ('finish', 'now', 'restart')),
    slots integer not null check (slots between 1 and 1000),
    queues text,  -- a list; null: all
    started_at integer not null,
    heartbeat_at integer not null,
    beats integer not null default 0,
    jobs_done integer not null default 0
) strict, without rowid;

create table config (
    key text primary key,
    value text not null
) strict, without rowid;

-- How many jobs ever moved from one state to another ('' is outside), and how the run ended that ended with it ('' if
-- none did). What is in a state now is what came in less what went out, so counts cost the same at any number of jobs, and
-- the totals survive every purge. Every transaction that changes states adds to it at its end, see store/counting.py.
create table moves (
    queue text not null,
    was text not null,
    now text not null,
    ending text not null,
    jobs integer not null,
    primary key (queue, was, now, ending),
    check ((ending <> '') = (was = 'processing' and now <> ''))
) strict, without rowid;
