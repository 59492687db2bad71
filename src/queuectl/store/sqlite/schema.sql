-- The schema, version 1. Times are milliseconds since 1970 UTC, durations are milliseconds, lists and objects are JSON text.
-- Checks compare with `or`: for `in` with more than two values SQLite builds a temporary index, in every statement that
-- touches a row, which cost a claim and its settling a fifth of their time.

-- One row a job, for its whole life. Its latest run stands here too, from the claim on: most jobs have only one. It becomes
-- a row of `runs` when something else needs its place, see `archive`.
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
    ready integer not null check (ready in (0, 1)),  -- may be claimed now; due times flip it, see `promote`
    priority integer not null check (priority between -1000000 and 1000000),
    rank integer not null,                           -- see jobs/priority.py; smaller goes first
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
    token text,  -- the fencing token: required to write about the current run
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

    batch text,
    -- The schedule that a job is of. Added at the end, and null for all that workers of the version before write.
    cron text,
    -- Limits by key: of the jobs of one queue with one key at most so many run at a time.
    key text,
    -- Stands aside: its time has come, but others of its key have all places. Not in the line, so that no claim has to step over it;
    -- who makes room lets it back, see `admit`.
    aside integer not null default 0
        check (aside = 0 or (aside = 1 and ready = 1 and key is not null)),
    -- Jobs that wait for other jobs: see jobs/dependencies.py for what an edge asks for and what becomes of it.
    depends_on text,  -- what was asked for, with full ids; null: nothing
    -- A job may say itself how many of its key run at a time: those of an array. Null: what its queue says counts.
    places integer check (places is null or (places >= 1 and key is not null)),
    -- The webhooks of a job: fixed at enqueue, as JSON, see webhooks/rules.py. Null: none.
    hooks text,
    -- What a run of a job may use: fixed at enqueue, as plain data, see jobs/resources.py. Null: whatever there is.
    limits text,
    -- The resource usage of a run, as a JSON list, see store/rows.py. Null: not measured.
    usage text,
    -- Which secrets a job asks for, by name, see secrets/rules.py. Null: none. What they are is never here.
    secrets text,
    check ((command is null) <> (argv is null)),
    check ((token is not null) = (state = 'processing')),
    check (ending is null or token is null),
    check (ready = 0 or (state in ('pending', 'failed') and held = 0)),
    check ((finished_at is not null) >= (state = 'completed' or state = 'dead' or state = 'cancelled'))
) strict;

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
    usage text,
    primary key (job, number)
) strict, without rowid;

-- What runs printed, in pieces, as far as it is kept: where the log of a job lies on the disk of another host. `at`: how many
-- bytes of the output of this run come before; pieces may overlap, see `add_output`.
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
-- the totals survive every purge. Every transaction that changes states adds to it at its end, see store/transactions.py.
create table moves (
    queue text not null,
    was text not null,
    now text not null,
    ending text not null,
    jobs integer not null,
    primary key (queue, was, now, ending),
    check ((ending <> '') = (was = 'processing' and now <> ''))
) strict, without rowid;

-- Retention of those that have ended otherwise than completed, which jobs_completed has.
create index jobs_ended on jobs (state, finished_at) where state = 'dead' or state = 'cancelled';

-- Unique keys: at most one job with a key waits or runs. Jobs without a key are in neither of these indexes.
create unique index jobs_unique on jobs (unique_key)
 where unique_key is not null
   and state <> 'completed'
   and state <> 'dead'
   and state <> 'cancelled';

-- Who had a key last, whatever has become of it.
create index jobs_key on jobs (unique_key, created_at) where unique_key is not null;

-- Batches: jobs under one name, and what is to run when all of them have ended. How many of them are in which state is counted
-- from an index: nothing is written for it when a job moves, and only jobs of a batch are in it.
create table batches (
    name text primary key check (length(name) between 1 and 64),
    added integer not null,   -- jobs that ever came to it, also those that were removed since
    created_at integer not null,
    completed_at integer,     -- when the completion job was enqueued; then no more jobs can be added
    on_complete text,         -- the job, as JSON; null: nothing runs
    on_complete_job text,     -- the id it got
    check ((completed_at is null) = (on_complete_job is null))
) strict, without rowid;

create index batches_open on batches (name) where on_complete is not null and completed_at is null;

create index jobs_batch on jobs (batch, state) where batch is not null;

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
    look_at integer,   -- when it has to be evaluated again
    last_at integer,   -- the latest tick that was decided about
    waiting text,      -- the id of the job that waits for those before it
    check (paused = 0 or tick_at is null),
    check ((tick_at is null) = (start_at is null))
) strict, without rowid;

create index schedules_look on schedules (look_at) where look_at is not null;

-- What was decided about each tick; written in the transaction of its job. That there can be one row only is what keeps a tick
-- from being enqueued twice, whatever the clocks do. The latest are kept, see `trim_ticks`.
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

-- Which jobs of a schedule have not ended.
create index jobs_cron on jobs (cron, state) where cron is not null;

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

    per_key integer check (per_key >= 1),
    -- The same for the jobs of a queue that do not say otherwise.
    on_success text,
    on_failure text,
    on_dead text,
    -- The same for the jobs of a queue that do not say otherwise.
    limits text,
    check ((rate_starts is null) = (rate_ms is null))
) strict, without rowid;

-- The latest starts of queues with a rate, as many as it counts, by a number that goes up by one each. `at` is the time of the
-- claim; when the process was there, the job's row or its history says, see `limits`.
create table starts (
    queue text not null,
    number integer not null check (number >= 1),
    job integer not null,
    run integer not null,
    at integer not null,
    primary key (queue, number)
) strict, without rowid;

create index jobs_ready on jobs (queue, rank, seq) where ready = 1 and aside = 0;

-- The order of waiting jobs with a key, and running ones. Jobs without a key are in neither, so they cost nothing.
create index jobs_of_key on jobs (queue, key, rank, seq) where ready = 1 and key is not null;

create index jobs_running_key on jobs (queue, key) where state = 'processing' and key is not null;

create table edges (
    parent integer not null references jobs (seq) on delete cascade,
    child integer not null references jobs (seq) on delete cascade,
    need text not null check (need = 'completed' or need = 'ended' or need = 'failed'),
    otherwise text not null check (otherwise = 'cancel' or otherwise = 'run'),
    state text not null check (state = 'waiting' or state = 'met' or state = 'broke' or state = 'void'),
    primary key (child, parent)
) strict, without rowid;

-- What is to be decided for the children of a parent.
create index edges_parent on edges (parent, state, need, child);

-- Parents that have ended or were retried, and have unresolved children. A worker that exchanges with
-- the store takes some of them off at a time, so that a parent of ten thousand ends as quickly as one of none.
create table undecided (
    parent integer primary key references jobs (seq) on delete cascade
) strict;

-- By triggers, and not by each statement that ends a job: there are many, also those of workers of the version before, and one
-- that forgot it would leave a job blocked for ever.
create trigger jobs_ended after update of state on jobs
when (new.state = 'completed' or new.state = 'dead' or new.state = 'cancelled')
  <> (old.state = 'completed' or old.state = 'dead' or old.state = 'cancelled')
begin
    insert or ignore into undecided (parent)
    select new.seq
     where exists (select 1 from edges where parent = new.seq and state = 'waiting')
        or exists (select 1 from edges where parent = new.seq and state = 'broke');
end;

-- A job that is no longer blocked waits for no parent. A job that a parent cancelled, and that is retried, is no longer in
-- its hands.
create trigger jobs_let_go after update of state on jobs
when (old.state = 'blocked' and new.state <> 'blocked') or (old.state = 'cancelled' and new.state = 'pending')
begin
    update edges
       set state = 'void'
     where child = new.seq
       and state = iif(old.state = 'blocked', 'waiting', 'broke');
end;

-- The queues with such jobs that have not ended. Jobs without their own limit are not in it.
create index jobs_places on jobs (queue) where places is not null and state in ('blocked', 'pending', 'processing', 'failed');

-- What the HTTP API, its page and Prometheus need.

-- What charts are drawn of, at a cost that does not grow with the jobs: see jobs/stats.py. Once a minute
-- one of all workers looks at the counters and writes down how much they have grown.

-- One row for each minute and each hour with a sample, by queue ('' is all, '*' those beyond the busiest).
create table points (
    span text not null check (span = 'minute' or span = 'hour'),
    queue text not null,
    at integer not null,         -- the beginning of the minute or hour
    covers_ms integer not null check (covers_ms >= 0),
    enqueued integer not null,
    started integer not null,
    completed integer not null,
    failed integer not null,
    dead integer not null,
    retried integer not null,
    rescued integer not null,
    waiting integer not null,
    running integer not null,
    oldest_ms integer,
    run text not null,           -- run and waiting times in buckets, see jobs/stats.py
    wait text not null,
    primary key (span, queue, at)
) strict, without rowid;

-- For removing what is old.
create index points_at on points (span, at);

-- The totals of each queue at the last sample.
create table counters (
    queue text primary key,
    enqueued integer not null,
    started integer not null,
    completed integer not null,
    failed integer not null,
    dead integer not null,
    retried integer not null,
    rescued integer not null
) strict, without rowid;

-- Run and waiting times of all jobs ever completed, also of those removed since; without those that ended after `sampling.until`.
create table buckets (
    queue text not null,
    what text not null check (what = 'run' or what = 'wait'),
    bucket integer not null check (bucket >= 0),
    jobs integer not null,
    ms integer not null,
    primary key (queue, what, bucket)
) strict, without rowid;

-- The time of the last sample, the end of the runs whose times are in `buckets`, and how often later runs were added to them
-- since they were removed. Writing a sample updates this row from the values that were read, so there is one per minute. No row: no worker
-- ever did.
create table sampling (
    one integer primary key check (one = 1),
    at integer,  -- null: never
    until integer not null,
    removals integer not null
) strict;

-- Requests with an idempotency key, which can be repeated without enqueuing their jobs twice: see store/enqueue.py.
create table requests (
    key text primary key,
    digest text not null,  -- of what was asked for: the same key means the same request
    answer text not null,
    at integer not null
) strict, without rowid;

create index requests_at on requests (at);

-- The audit log: one row for each change by a user, written in the transaction of the change. Append-only: retention removes the oldest.
create table audit (
    seq integer primary key autoincrement,
    at integer not null,
    actor text not null,    -- JSON
    action text not null,   -- the command
    targets text not null,  -- IDs or names, as a JSON list
    before text,            -- changed values, as JSON
    after text
) strict;

create index audit_at on audit (at);

create trigger audit_is_append_only before update on audit
begin
    select raise(abort, 'the audit log is append-only');
end;

-- Who is to be told of ends that have been written, until a job has been made of it, see store/webhook_outbox.py.
create table calls (
    job text not null,
    run integer not null,
    happening text not null,
    url text not null,
    said text not null,
    at integer not null
) strict;

-- Alerts, see alerts/rules.py, and their state. Times are milliseconds since 1970.
create table alerts (
    name text primary key check (length(name) between 1 and 64),
    kind text not null check (kind in ('dead', 'oldest', 'no-worker')),
    threshold integer not null, -- a number of jobs, or milliseconds
    within_ms integer,
    queue text,
    for_ms integer not null,
    repeat_ms integer,
    url text,
    command text,
    cwd text not null,
    created_at integer not null,
    firing integer not null check (firing in (0, 1)),
    changed_at integer,
    since_at integer,
    told_at integer,
    seen_at integer,
    checked_at integer,
    value integer,
    untold text not null, -- JSON
    tried_at integer,
    turn integer not null, -- how often it was written
    check ((url is null) <> (command is null))
) strict, without rowid;
