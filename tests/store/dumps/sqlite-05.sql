pragma auto_vacuum = 2;
pragma page_size = 4096;
BEGIN TRANSACTION;
CREATE TABLE batches (
    name text primary key check (length(name) between 1 and 64),
    added integer not null,   -- jobs that ever came to it, also those that were removed since
    created_at integer not null,
    completed_at integer,     -- when what runs then was queued; from then on nobody comes to it
    on_complete text,         -- the job, as JSON; null: nothing runs
    on_complete_job text,     -- the id it got
    check ((completed_at is null) = (on_complete_job is null))
) strict, without rowid;
INSERT INTO "batches" VALUES('b1',1,1794857294602,NULL,NULL,NULL);
CREATE TABLE config (
    key text primary key,
    value text not null
) strict, without rowid;
INSERT INTO "config" VALUES('max-retries','5');
CREATE TABLE job_tags (
    tag text not null,
    job integer not null references jobs (seq) on delete cascade,
    primary key (tag, job)
) strict, without rowid;
INSERT INTO "job_tags" VALUES('old',1);
CREATE TABLE jobs (
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
    updated_at integer not null check (updated_at >= created_at), batch text, cron text,

    check ((command is null) <> (argv is null)),
    check ((token is not null) = (state = 'processing')),
    check (ending is null or token is null),
    check (ready = 0 or (state in ('pending', 'failed') and held = 0)),
    check ((finished_at is not null) >= (state = 'completed' or state = 'dead' or state = 'cancelled'))
) strict;
INSERT INTO "jobs" VALUES(1,'done','echo hello',NULL,'completed','default',0,0,0,1794857293147,0,0,1794857293147,0,5,0,2.0,NULL,'/tmp','{"A": "b"}','["old"]',NULL,0,1,0,NULL,'old','earlier',28327,3,0,1794857293764,1794857293781,17,617,0,NULL,NULL,'completed','/tmp/queuectl/home05/logs/done.log',56,62,1794857293147,1794857293781,NULL,NULL);
INSERT INTO "jobs" VALUES(2,'bad','exit 3',NULL,'dead','other',0,0,0,1794857293279,0,0,1794857293279,0,1,0,2.0,NULL,'/tmp',NULL,'[]',NULL,1,1,0,NULL,'old','earlier',28328,3,0,1794857293782,1794857293793,11,503,3,NULL,'exit code 3','failed','/tmp/queuectl/home05/logs/bad.log',56,56,1794857293279,1794857293793,NULL,NULL);
INSERT INTO "jobs" VALUES(3,'again','exit 4',NULL,'failed','default',0,5,-5,1794857293421,0,NULL,1794858293781,0,5,0,1000.0,NULL,'/tmp',NULL,'[]',NULL,1,1,0,NULL,'old','earlier',28326,3,0,1794857293764,1794857293781,17,343,4,NULL,'exit code 4','failed','/tmp/queuectl/home05/logs/again.log',56,56,1794857293421,1794857293781,NULL,NULL);
INSERT INTO "jobs" VALUES(4,'later','true',NULL,'pending','default',0,0,0,2109353294216,0,NULL,2109353294216,0,5,0,2.0,NULL,'/tmp',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794857294216,1794857294216,NULL,NULL);
INSERT INTO "jobs" VALUES(5,'words',NULL,'["printf", "%s", "a b"]','pending','default',1,0,0,1794857294335,0,NULL,1794857294335,0,5,0,2.0,NULL,'/tmp',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794857294335,1794857294335,NULL,NULL);
INSERT INTO "jobs" VALUES(6,'only','true',NULL,'pending','default',0,0,0,2109353294456,0,NULL,2109353294456,0,5,0,2.0,NULL,'/tmp',NULL,'[]','k1',0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794857294456,1794857294456,NULL,NULL);
INSERT INTO "jobs" VALUES(7,'batched','true',NULL,'pending','default',1,0,0,1794857294602,0,NULL,1794857294602,0,5,0,2.0,NULL,'/tmp',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794857294602,1794857294602,'b1',NULL);
CREATE TABLE moves (
    queue text not null,
    was text not null,
    now text not null,
    ending text not null,
    jobs integer not null,
    primary key (queue, was, now, ending),
    check ((ending <> '') = (was = 'processing' and now <> ''))
) strict, without rowid;
INSERT INTO "moves" VALUES('default','','pending','',6);
INSERT INTO "moves" VALUES('default','pending','processing','',2);
INSERT INTO "moves" VALUES('default','processing','completed','completed',1);
INSERT INTO "moves" VALUES('default','processing','failed','failed',1);
INSERT INTO "moves" VALUES('other','','pending','',1);
INSERT INTO "moves" VALUES('other','pending','processing','',1);
INSERT INTO "moves" VALUES('other','processing','dead','failed',1);
CREATE TABLE output (
    job integer not null references jobs (seq) on delete cascade,
    run integer not null check (run >= 1),
    at integer not null check (at >= 0),
    data blob not null check (length(data) > 0),
    primary key (job, run, at)
) strict;
CREATE TABLE runs (
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
CREATE TABLE schedules (
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
INSERT INTO "schedules" VALUES('nightly','0 2 * * *','Etc/UTC',1794857294814,'{"command": "true", "cwd": "/tmp"}','skip',1,0,NULL,0,1794857294814,1794857294814,1794880800000,1794880800000,1794880800000,NULL,NULL);
CREATE TABLE ticks (
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
CREATE TABLE workers (
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
CREATE INDEX jobs_ready on jobs (queue, rank, seq) where ready = 1;
CREATE INDEX jobs_oldest on jobs (queue, run_at) where ready = 1;
CREATE INDEX jobs_due on jobs (run_at) where ready = 0 and held = 0 and state in ('pending', 'failed');
CREATE INDEX jobs_running on jobs (worker) where state = 'processing';
CREATE INDEX jobs_state on jobs (state, seq) where state <> 'processing';
CREATE INDEX jobs_completed on jobs (finished_at) where state = 'completed';
CREATE INDEX job_tags_job on job_tags (job);
CREATE INDEX jobs_ended on jobs (state, finished_at) where state = 'dead' or state = 'cancelled';
CREATE UNIQUE INDEX jobs_unique on jobs (unique_key)
 where unique_key is not null
   and state <> 'completed'
   and state <> 'dead'
   and state <> 'cancelled';
CREATE INDEX jobs_key on jobs (unique_key, created_at) where unique_key is not null;
CREATE INDEX batches_open on batches (name) where on_complete is not null and completed_at is null;
CREATE INDEX jobs_batch on jobs (batch, state) where batch is not null;
CREATE INDEX schedules_look on schedules (look_at) where look_at is not null;
CREATE INDEX jobs_cron on jobs (cron, state) where cron is not null;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('jobs',7);
COMMIT;
pragma application_id = 1366647668;
pragma user_version = 5;
