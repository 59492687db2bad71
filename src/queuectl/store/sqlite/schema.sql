-- The schema, version 1. Times are milliseconds since 1970 UTC, durations are milliseconds, lists and objects are JSON text.
-- Checks compare with `or`: for `in` with more than two values SQLite builds a temporary index, in every statement that
-- touches a row, which cost a claim and its settling a fifth of their time.

-- One row per job. It also has the latest run, from the claim on: most jobs have only one. That run becomes a row of `runs` when its
-- columns are needed for another one, see `archive`.
create table jobs (
    seq integer primary key autoincrement,  -- the order of enqueue; never used twice
    id text not null unique check (length(id) between 1 and 128),
    command text,  -- for the shell; or
    argv text,     -- a list, run without a shell
    state text not null check (
        state = 'blocked' or state = 'pending' or state = 'processing' or state = 'failed' or state = 'completed'
        or state = 'dead' or state = 'cancelled'
    ),
    queue text not null check (length(queue) between 1 and 64),

    -- position in the queue
    ready integer not null check (ready in (0, 1)),  -- may be claimed now; `promote` sets it when the job comes due
    priority integer not null check (priority between -1000000 and 1000000),
    rank integer not null,                           -- see jobs/priority.py; smaller runs first
    eligible_at integer not null,                    -- when it was first eligible
    missed integer not null default 0,               -- enqueues while it ran, which do not count for ageing
    effective_priority integer,                      -- at the claim or the end; null: computed
    run_at integer not null,
    held integer not null default 0 check (held in (0, 1)),

    -- settings of the job
    max_retries integer not null check (max_retries between 0 and 1000000),
    first_is_free integer not null check (first_is_free in (0, 1)),
    backoff_base real not null check (backoff_base >= 1),
    timeout_ms integer check (timeout_ms > 0),
    cwd text not null,
    env text,
    tags text not null default '[]',
    unique_key text,

    -- counters
    attempts integer not null default 0 check (attempts >= 0),
    runs integer not null default 0 check (runs >= attempts),
    crashes integer not null default 0 check (crashes >= 0),

    -- the latest run
    token text,  -- the fencing token: required to write about the current run
    worker text,
    host text,
    pid integer,
    claimed_seq integer,  -- the latest seq at the time of the claim
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
    ),  -- null: it is running, or in `runs`, or there was none
    log text,
    log_from integer,
    log_to integer,

    created_at integer not null,
    updated_at integer not null check (updated_at >= created_at),

    batch text,
    -- The schedule that added the job; null: none.
    cron text,
    -- The concurrency key: the queue, or the job, limits how many of its jobs run at a time.
    key text,
    -- Due, but its concurrency key has no free slot. Excluded from the index of claimable jobs, so that no claim has to step over it;
    -- the transaction that frees a slot resets it, see `admit`.
    key_blocked integer not null default 0
        check (key_blocked = 0 or (key_blocked = 1 and ready = 1 and key is not null)),
    -- Dependencies, see jobs/dependencies.py.
    depends_on text,  -- as requested, with full IDs; null: none
    -- The limit of its concurrency key that the job sets, as those of an array do. Null: that of its queue.
    places integer check (places is null or (places >= 1 and key is not null)),
    -- Webhooks, fixed at enqueue, see webhooks/rules.py. Null: none.
    hooks text,
    -- Resource limits of a run, fixed at enqueue, see jobs/resources.py. Null: none.
    limits text,
    -- The resource usage of a run, as a JSON list, see store/rows.py. Null: not measured.
    usage text,
    -- The names of its secrets, see secrets/rules.py. Null: none. The values are never stored.
    secrets text,
    -- The last line that the latest run printed, see logs/last_line.py. Null: none.
    last_output text,
    -- Equal for failures of the same kind, see jobs/fingerprint.py. Null: the latest run did not fail.
    fingerprint text,
    check ((command is null) <> (argv is null)),
    check ((token is not null) = (state = 'processing')),
    check (ending is null or token is null),
    check (ready = 0 or (state in ('pending', 'failed') and held = 0)),
    check ((finished_at is not null) >= (state = 'completed' or state = 'dead' or state = 'cancelled'))
) strict;

-- For the waiting time of the oldest job.
create index jobs_oldest on jobs (queue, run_at) where ready = 1;

-- For the next due job.
create index jobs_due on jobs (run_at) where ready = 0 and held = 0 and state in ('pending', 'failed');

-- The running jobs of each worker.
create index jobs_running on jobs (worker) where state = 'processing';

-- Lists by state, newest first. Without running jobs: they are few, jobs_running has them, and every run would cost another entry.
create index jobs_state on jobs (state, seq) where state <> 'processing';

-- Throughput and retention.
create index jobs_completed on jobs (finished_at) where state = 'completed';

-- One row per ended run, except those that are stored in the row of their job.
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
    last_output text,
    primary key (job, number)
) strict, without rowid;

-- The stored output of runs, in pieces, for logs on the disk of another host. `at`: the offset of the piece in the output of the run;
-- pieces may overlap, see `add_output`.
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
    machine text not null,  -- identifies the host: two may have the same name
    lock text not null,     -- the mark of its lock file: two may have the same path
    pid integer not null,
    home text not null,
    state text not null check (state in ('running', 'stopping', 'lost')),  -- lost: its jobs are being rescued
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

-- How many jobs ever moved from one state to another ('' is outside), and the ending of the run that ended with it ('' if none).
-- The jobs in a state are the difference, so counts cost the same at any number of jobs, and the totals survive every purge. Every transaction that changes states adds to it at its end, see store/transactions.py.
create table moves (
    queue text not null,
    was text not null,
    now text not null,
    ending text not null,
    jobs integer not null,
    primary key (queue, was, now, ending),
    check ((ending <> '') = (was = 'processing' and now <> ''))
) strict, without rowid;

-- For the retention of dead and cancelled jobs; jobs_completed has the others.
create index jobs_ended on jobs (state, finished_at) where state = 'dead' or state = 'cancelled';

-- Dead jobs by kind of failure, see `failures`, which reads no more than this index; and those of one kind in the order of enqueue. Only a
-- job that dies costs these entries. All of them have a fingerprint: that an index asks for it keeps other statements from using it.
create index jobs_failures on jobs (state, fingerprint, finished_at, queue) where state = 'dead' and fingerprint is not null;
create index jobs_fingerprint on jobs (fingerprint) where state = 'dead' and fingerprint is not null;

-- Unique keys: at most one job with a key waits or runs. Jobs without a key are in neither of these indexes.
create unique index jobs_unique on jobs (unique_key)
 where unique_key is not null
   and state <> 'completed'
   and state <> 'dead'
   and state <> 'cancelled';

-- The latest job of each key, in any state.
create index jobs_key on jobs (unique_key, created_at) where unique_key is not null;

-- Batches: jobs under one name, and the job that runs when all of them have ended. Their states are counted from an index, so that
-- no transition of a job has to update them.
create table batches (
    name text primary key check (length(name) between 1 and 64),
    added integer not null,   -- jobs that were ever added, including removed ones
    created_at integer not null,
    completed_at integer,     -- when the completion job was enqueued; then no more jobs can be added
    on_complete text,         -- the completion job, as JSON; null: none
    on_complete_job text,     -- its ID
    check ((completed_at is null) = (on_complete_job is null))
) strict, without rowid;

-- For lists, the newest first.
create index batches_created on batches (created_at, name);

create index batches_open on batches (name) where on_complete is not null and completed_at is null;

create index jobs_batch on jobs (batch, state) where batch is not null;

-- Schedules, see cron/schedule.py.
create table schedules (
    name text primary key check (length(name) between 1 and 64),
    expression text not null,
    tz text not null,
    anchor_at integer not null,  -- where `every` begins
    fields text not null,        -- of the job, as enqueue takes them
    overlap text not null check (overlap in ('skip', 'queue', 'allow')),
    catch_up integer not null check (catch_up >= 0),
    jitter_ms integer not null check (jitter_ms >= 0),
    until_at integer,
    paused integer not null check (paused in (0, 1)),
    created_at integer not null,
    updated_at integer not null,
    next_run_at integer,   -- the next run
    start_at integer,  -- when its job is added: with jitter
    check_at integer,   -- when it has to be evaluated again
    last_at integer,   -- the latest run that was decided
    waiting text,      -- the ID of the job that is held until earlier ones have ended
    check (paused = 0 or next_run_at is null),
    check ((next_run_at is null) = (start_at is null))
) strict, without rowid;

create index schedules_check on schedules (check_at) where check_at is not null;

-- The decision about each run of a schedule, written in the transaction of its job. The primary key keeps a run from being enqueued
-- twice, whatever the clocks do. The latest are kept, see `trim_schedule_runs`.
create table schedule_runs (
    schedule text not null references schedules (name) on delete cascade,
    at integer not null,
    by_hand integer not null check (by_hand in (0, 1)),
    decided_at integer not null,
    job text,     -- its ID; or
    reason text,  -- why no job was added
    times integer not null check (times >= 1),
    primary key (schedule, at, by_hand),
    check ((job is null) <> (reason is null))
) strict, without rowid;

-- The unfinished jobs of a schedule.
create index jobs_cron on jobs (cron, state) where cron is not null;

-- The settings of a queue. A queue without a row has none.
create table queues (
    name text primary key check (length(name) between 1 and 64),
    paused integer not null default 0 check (paused in (0, 1)),
    concurrency integer check (concurrency >= 1),  -- jobs at a time, over all workers
    rate_starts integer check (rate_starts >= 1),  -- starts, including retries,
    rate_ms integer check (rate_ms >= 1),          -- in every window of this length

    -- defaults for its jobs, applied at enqueue
    priority integer check (priority between -1000000 and 1000000),
    max_retries integer check (max_retries between 0 and 1000000),
    timeout_ms integer check (timeout_ms >= 0),    -- 0: none at all

    per_key integer check (per_key >= 1),
    -- Defaults for its jobs, applied at enqueue.
    on_success text,
    on_failure text,
    on_dead text,
    -- Defaults for its jobs, applied at enqueue.
    limits text,
    check ((rate_starts is null) = (rate_ms is null))
) strict, without rowid;

-- The latest starts of queues with a rate limit, as many as it counts, numbered. `at` is the time of the claim; the start of the process
-- is in the job's row or its history, see `limits`.
create table starts (
    queue text not null,
    number integer not null check (number >= 1),
    job integer not null,
    run integer not null,
    at integer not null,
    primary key (queue, number)
) strict, without rowid;

create index jobs_ready on jobs (queue, rank, seq) where ready = 1 and key_blocked = 0;

-- The order of waiting jobs with a key, and running ones. Jobs without a key are in neither index.
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

-- The dependencies on a parent that may have to be resolved.
create index edges_parent on edges (parent, state, need, child);

-- Parents that have ended or were retried, and have unresolved children. Exchanges of workers resolve some of them at a time, so that a
-- parent with ten thousand children ends as quickly as one without.
create table undecided (
    parent integer primary key references jobs (seq) on delete cascade
) strict;

-- By triggers, and not by each statement that ends a job: there are many, including those of workers of an older version, and a missing
-- one would leave a job blocked forever.
create trigger jobs_ended after update of state on jobs
when (new.state = 'completed' or new.state = 'dead' or new.state = 'cancelled')
  <> (old.state = 'completed' or old.state = 'dead' or old.state = 'cancelled')
begin
    insert or ignore into undecided (parent)
    select new.seq
     where exists (select 1 from edges where parent = new.seq and state = 'waiting')
        or exists (select 1 from edges where parent = new.seq and state = 'broke');
end;

-- A job that is no longer blocked waits for no parent. A job that was cancelled by a parent and then retried no longer depends on it.
create trigger jobs_let_go after update of state on jobs
when (old.state = 'blocked' and new.state <> 'blocked') or (old.state = 'cancelled' and new.state = 'pending')
begin
    update edges
       set state = 'void'
     where child = new.seq
       and state = iif(old.state = 'blocked', 'waiting', 'broke');
end;

-- The queues with unfinished jobs that limit their own key.
create index jobs_key_limits on jobs (queue) where places is not null and state in ('blocked', 'pending', 'processing', 'failed');

-- For the HTTP API, the dashboard and Prometheus.

-- Samples for charts, at a cost that does not grow with the number of jobs, see jobs/stats.py. Once a minute one of all workers compares
-- the counters with those of the last sample.

-- One row for each minute and each hour with a sample, by queue ('': all, '*': those beyond the busiest).
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

-- For the retention.
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

-- Run and waiting times of all jobs ever completed, including removed ones; without those that ended after `sampling.until`.
create table buckets (
    queue text not null,
    what text not null check (what = 'run' or what = 'wait'),
    bucket integer not null check (bucket >= 0),
    jobs integer not null,
    ms integer not null,
    primary key (queue, what, bucket)
) strict, without rowid;

-- The time of the last sample, the end of the runs whose times are in `buckets`, and how often later runs were added to them
-- because they were removed. Writing a sample updates this row from the values that were read, so there is one per minute. No row: there is
-- no sample.
create table sampling (
    one integer primary key check (one = 1),
    at integer,  -- null: never
    until integer not null,
    removals integer not null
) strict;

-- Requests with an idempotency key, which can be repeated without enqueuing their jobs twice: see store/enqueue.py.
create table requests (
    key text primary key,
    digest text not null,  -- of the request: another request with the same key is refused
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

-- The webhook outbox: deliveries that are not enqueued yet, see store/webhook_outbox.py.
create table webhook_outbox (
    job text not null,
    run integer not null,
    event text not null,
    url text not null,
    origin text not null,
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
    turn integer not null, -- the version of the row
    paused integer not null check (paused in (0, 1)),
    check ((url is null) <> (command is null))
) strict, without rowid;
