pragma auto_vacuum = 2;
BEGIN TRANSACTION;
CREATE TABLE alerts (
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
CREATE TABLE audit (
    seq integer primary key,
    at integer not null,
    record text not null,  -- who, what, before and after, as JSON
    hash text not null     -- of this and of the one before
) strict;
INSERT INTO "audit" VALUES(1,1794968001078,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"config set","subjects":["max-retries"],"before":{"max-retries":null},"after":{"max-retries":"5"}}','aa2c591ff0664b23bf39422bb5da680a5332af950c07434666452d75ef63abde');
INSERT INTO "audit" VALUES(2,1794968001166,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["done"],"before":null,"after":{"jobs":[{"command":"echo hello","queue":"default","priority":0}]}}','3ed8d711fd09fd55f1ff595744362bb6fbb157952e118396ac3ca3e27c6d9f73');
INSERT INTO "audit" VALUES(3,1794968001267,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["bad"],"before":null,"after":{"jobs":[{"command":"exit 3","queue":"other","priority":0}]}}','a9fcbf1aeb1b0beba511f354321fe187a013131648ef8c4cad3ce82067c388f7');
INSERT INTO "audit" VALUES(4,1794968001365,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["again"],"before":null,"after":{"jobs":[{"command":"exit 4","queue":"default","priority":5}]}}','0a1dd89eee6bb9863322dcbba4d20bb60b4024fea991509040ccb238bc5f7c7f');
INSERT INTO "audit" VALUES(5,1794968001572,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["child"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0}]}}','533b925953d225bd130720b1f1748c68fab353b98e99b782fe8d40780238c020');
INSERT INTO "audit" VALUES(6,1794968003085,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["later"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0}]}}','977936c779c71696d01e2af8547221b1d0e17314a1f8fc7dc9ee2a42c3b23f89');
INSERT INTO "audit" VALUES(7,1794968003172,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["words"],"before":null,"after":{"jobs":[{"command":"printf %s a b","queue":"default","priority":0}]}}','666a2f349366620c8f89ed19bc4ac85cd17d03e88f2fbc67d574b6d7f8371505');
INSERT INTO "audit" VALUES(8,1794968003266,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["only"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0,"unique":"k1"}]}}','6114619d459c68e9ad3802eea387270302bf692723ac03691c1e53ba89200835');
INSERT INTO "audit" VALUES(9,1794968003353,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["batched"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0,"batch":"b1"}]}}','aa71ab14f28f5f0d8c51a6633e39d4657f6ec3585e2adaf0d7255ff0cbfc22c6');
INSERT INTO "audit" VALUES(10,1794968003535,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"cron add","subjects":["nightly"],"before":null,"after":{"name":"nightly","expression":"0 2 * * *","tz":"Etc/UTC","anchor_ms":1794968003534,"fields":{"command":"true","cwd":"/"},"overlap":"skip","catch_up":1,"jitter_ms":0,"until_ms":null,"is_paused":false}}','82ee0ce161cd00f1dc0c88a835d232d80de2fb2ffca6adedb714487d1714f431');
INSERT INTO "audit" VALUES(11,1794968003695,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"queue set","subjects":["other"],"before":{"concurrency":null},"after":{"concurrency":2}}','bda5ac0c290d555f89c42a044f351f8d53334f66bd7ba8ed0cb48603ae8f00d2');
INSERT INTO "audit" VALUES(12,1794968003813,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["keyed"],"before":null,"after":{"jobs":[{"command":"true","queue":"other","priority":0}]}}','b9e4b18203b59017da9021ede71899c645ae68b1f882c86848ae19cddcb7882e');
INSERT INTO "audit" VALUES(13,1794968003957,'{"who":{"uid":0,"user":"root","host":"earlier","program":"__main__.py","token":null},"what":"enqueue","subjects":["blocked"],"before":null,"after":{"jobs":[{"command":"true","queue":"default","priority":0}]}}','65afcf3c2415d1723b6068f3ae2919951f367fbd006f50ed2a377f3910b22f18');
CREATE TABLE audit_ends (
    one integer primary key check (one = 1),
    base integer not null,
    base_hash text not null,
    head integer not null check (head >= base),
    head_hash text not null
) strict;
INSERT INTO "audit_ends" VALUES(1,0,'0000000000000000000000000000000000000000000000000000000000000000',13,'65afcf3c2415d1723b6068f3ae2919951f367fbd006f50ed2a377f3910b22f18');
CREATE TABLE batches (
    name text primary key check (length(name) between 1 and 64),
    added integer not null,   -- jobs that ever came to it, also those that were removed since
    created_at integer not null,
    completed_at integer,     -- when what runs then was queued; from then on nobody comes to it
    on_complete text,         -- the job, as JSON; null: nothing runs
    on_complete_job text,     -- the id it got
    check ((completed_at is null) = (on_complete_job is null))
) strict, without rowid;
INSERT INTO "batches" VALUES('b1',1,1794968003353,NULL,NULL,NULL);
CREATE TABLE buckets (
    queue text not null,
    what text not null check (what = 'run' or what = 'wait'),
    bucket integer not null check (bucket >= 0),
    jobs integer not null,
    ms integer not null,
    primary key (queue, what, bucket)
) strict, without rowid;
CREATE TABLE calls (
    job text not null,
    run integer not null,
    happening text not null,
    url text not null,
    said text not null,
    at integer not null
) strict;
CREATE TABLE config (
    key text primary key,
    value text not null
) strict, without rowid;
INSERT INTO "config" VALUES('max-retries','5');
CREATE TABLE counters (
    queue text primary key,
    enqueued integer not null,
    started integer not null,
    completed integer not null,
    failed integer not null,
    dead integer not null,
    retried integer not null,
    rescued integer not null
) strict, without rowid;
INSERT INTO "counters" VALUES('default',3,0,0,0,0,0,0);
INSERT INTO "counters" VALUES('other',1,0,0,0,0,0,0);
CREATE TABLE edges (
    parent integer not null references jobs (seq) on delete cascade,
    child integer not null references jobs (seq) on delete cascade,
    need text not null check (need = 'completed' or need = 'ended' or need = 'failed'),
    otherwise text not null check (otherwise = 'cancel' or otherwise = 'run'),
    state text not null check (state = 'waiting' or state = 'met' or state = 'broke' or state = 'void'),
    primary key (child, parent)
) strict, without rowid;
INSERT INTO "edges" VALUES(1,4,'completed','cancel','met');
INSERT INTO "edges" VALUES(5,10,'completed','cancel','waiting');
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
    updated_at integer not null check (updated_at >= created_at), batch text, cron text, key text, aside integer not null default 0
    check (aside = 0 or (aside = 1 and ready = 1 and key is not null)), depends_on text, places integer check (places is null or (places >= 1 and key is not null)), hooks text, limits text, usage text,

    check ((command is null) <> (argv is null)),
    check ((token is not null) = (state = 'processing')),
    check (ending is null or token is null),
    check (ready = 0 or (state in ('pending', 'failed') and held = 0)),
    check ((finished_at is not null) >= (state = 'completed' or state = 'dead' or state = 'cancelled'))
) strict;
INSERT INTO "jobs" VALUES(1,'done','echo hello',NULL,'completed','default',0,0,0,1794968001164,0,0,1794968001164,0,5,0,2.0,NULL,'/','{"A": "b"}','["old"]',NULL,0,1,0,NULL,'old','earlier',24885,4,0,1794968001919,1794968001920,1,755,0,NULL,NULL,'completed','/tmp/queuectl/home/logs/done.log',56,62,1794968001164,1794968001922,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'[0,0,15040512,0,0]');
INSERT INTO "jobs" VALUES(2,'bad','exit 3',NULL,'dead','other',0,0,0,1794968001267,0,0,1794968001267,0,1,0,2.0,NULL,'/',NULL,'[]',NULL,1,1,0,NULL,'old','earlier',24888,4,0,1794968001926,1794968001934,8,659,3,NULL,'exit code 3','failed','/tmp/queuectl/home/logs/bad.log',56,56,1794968001267,1794968001935,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'[0,0,15040512,0,0]');
INSERT INTO "jobs" VALUES(3,'again','exit 4',NULL,'failed','default',0,5,-5,1794968001365,0,NULL,1794969001922,0,5,0,1000.0,NULL,'/',NULL,'[]',NULL,1,1,0,NULL,'old','earlier',24884,4,0,1794968001919,1794968001921,2,554,4,NULL,'exit code 4','failed','/tmp/queuectl/home/logs/again.log',56,56,1794968001365,1794968001922,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'[0,0,15040512,0,0]');
INSERT INTO "jobs" VALUES(4,'child','true',NULL,'completed','default',0,0,0,1794968001922,0,0,1794968001922,0,5,0,2.0,NULL,'/',NULL,'[]',NULL,0,1,0,NULL,'old','earlier',24889,4,0,1794968001926,1794968001933,7,4,0,NULL,NULL,'completed','/tmp/queuectl/home/logs/child.log',56,56,1794968001569,1794968001934,NULL,NULL,NULL,0,'["done"]',NULL,NULL,NULL,'[0,0,15040512,0,0]');
INSERT INTO "jobs" VALUES(5,'later','true',NULL,'pending','default',0,0,0,2109464003085,0,NULL,2109464003085,0,5,0,2.0,NULL,'/',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794968003085,1794968003085,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(6,'words',NULL,'["printf", "%s", "a b"]','pending','default',1,0,0,1794968003170,0,NULL,1794968003170,0,5,0,2.0,NULL,'/',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794968003170,1794968003170,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(7,'only','true',NULL,'pending','default',0,0,0,2109464003245,0,NULL,2109464003245,0,5,0,2.0,NULL,'/',NULL,'[]','k1',0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794968003245,1794968003245,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(8,'batched','true',NULL,'pending','default',1,0,0,1794968003353,0,NULL,1794968003353,0,5,0,2.0,NULL,'/',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794968003353,1794968003353,'b1',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(9,'keyed','true',NULL,'pending','other',1,0,0,1794968003813,0,NULL,1794968003813,0,5,0,2.0,NULL,'/',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794968003813,1794968003813,NULL,NULL,'c7',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(10,'blocked','true',NULL,'blocked','default',0,0,0,1794968003956,0,NULL,1794968003956,0,5,0,2.0,NULL,'/',NULL,'[]',NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794968003956,1794968003956,NULL,NULL,NULL,0,'["later"]',NULL,NULL,NULL,NULL);
CREATE TABLE moves (
    queue text not null,
    was text not null,
    now text not null,
    ending text not null,
    jobs integer not null,
    primary key (queue, was, now, ending),
    check ((ending <> '') = (was = 'processing' and now <> ''))
) strict, without rowid;
INSERT INTO "moves" VALUES('default','','blocked','',2);
INSERT INTO "moves" VALUES('default','','pending','',6);
INSERT INTO "moves" VALUES('default','blocked','pending','',1);
INSERT INTO "moves" VALUES('default','pending','processing','',3);
INSERT INTO "moves" VALUES('default','processing','completed','completed',2);
INSERT INTO "moves" VALUES('default','processing','failed','failed',1);
INSERT INTO "moves" VALUES('other','','pending','',2);
INSERT INTO "moves" VALUES('other','pending','processing','',1);
INSERT INTO "moves" VALUES('other','processing','dead','failed',1);
CREATE TABLE output (
    job integer not null references jobs (seq) on delete cascade,
    run integer not null check (run >= 1),
    at integer not null check (at >= 0),
    data blob not null check (length(data) > 0),
    primary key (job, run, at)
) strict;
CREATE TABLE points (
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
    run text not null,           -- run and waiting times in buckets, see job/buckets.py
    wait text not null,
    primary key (span, queue, at)
) strict, without rowid;
INSERT INTO "points" VALUES('hour','',1794967200000,745,4,0,0,0,0,0,0,3,0,745,'[]','[]');
INSERT INTO "points" VALUES('hour','default',1794967200000,745,3,0,0,0,0,0,0,2,0,745,'[]','[]');
INSERT INTO "points" VALUES('hour','other',1794967200000,745,1,0,0,0,0,0,0,1,0,642,'[]','[]');
INSERT INTO "points" VALUES('minute','',1794967980000,745,4,0,0,0,0,0,0,3,0,745,'[]','[]');
INSERT INTO "points" VALUES('minute','default',1794967980000,745,3,0,0,0,0,0,0,2,0,745,'[]','[]');
INSERT INTO "points" VALUES('minute','other',1794967980000,745,1,0,0,0,0,0,0,1,0,642,'[]','[]');
CREATE TABLE queues (
    name text primary key check (length(name) between 1 and 64),
    paused integer not null default 0 check (paused in (0, 1)),
    concurrency integer check (concurrency >= 1),  -- jobs at a time, over all workers
    rate_starts integer check (rate_starts >= 1),  -- so many starts, retries included,
    rate_ms integer check (rate_ms >= 1),          -- in every window of this length

    -- for jobs that do not say otherwise when they are enqueued
    priority integer check (priority between -1000000 and 1000000),
    max_retries integer check (max_retries between 0 and 1000000),
    timeout_ms integer check (timeout_ms >= 0), per_key integer check (per_key >= 1), on_success text, on_failure text, on_dead text, limits text,    -- 0: none at all

    check ((rate_starts is null) = (rate_ms is null))
) strict, without rowid;
INSERT INTO "queues" VALUES('other',0,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE requests (
    key text primary key,
    digest text not null,  -- of what was asked for: the same key means the same request
    answer text not null,
    at integer not null
) strict, without rowid;
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
    log_to integer, usage text,
    primary key (job, number)
) strict, without rowid;
CREATE TABLE sampling (
    one integer primary key check (one = 1),
    at integer,  -- null: never
    until integer not null,
    removals integer not null
) strict;
INSERT INTO "sampling" VALUES(1,1794968001909,1794967996909,0);
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
INSERT INTO "schedules" VALUES('nightly','0 2 * * *','Etc/UTC',1794968003534,'{"command": "true", "cwd": "/"}','skip',1,0,NULL,0,1794968003534,1794968003534,1795053600000,1795053600000,1795053600000,NULL,NULL);
CREATE TABLE starts (
    queue text not null,
    number integer not null check (number >= 1),
    job integer not null,
    run integer not null,
    at integer not null,
    primary key (queue, number)
) strict, without rowid;
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
CREATE TABLE undecided (
    parent integer primary key references jobs (seq) on delete cascade
) strict;
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
CREATE INDEX jobs_ready on jobs (queue, rank, seq) where ready = 1 and aside = 0;
CREATE INDEX jobs_of_key on jobs (queue, key, rank, seq) where ready = 1 and key is not null;
CREATE INDEX jobs_running_key on jobs (queue, key) where state = 'processing' and key is not null;
CREATE INDEX edges_parent on edges (parent, state, need, child);
CREATE TRIGGER jobs_ended after update of state on jobs
when (new.state = 'completed' or new.state = 'dead' or new.state = 'cancelled')
  <> (old.state = 'completed' or old.state = 'dead' or old.state = 'cancelled')
begin
    insert or ignore into undecided (parent)
    select new.seq
     where exists (select 1 from edges where parent = new.seq and state = 'waiting')
        or exists (select 1 from edges where parent = new.seq and state = 'broke');
end;
CREATE TRIGGER jobs_let_go after update of state on jobs
when (old.state = 'blocked' and new.state <> 'blocked') or (old.state = 'cancelled' and new.state = 'pending')
begin
    update edges
       set state = 'void'
     where child = new.seq
       and state = iif(old.state = 'blocked', 'waiting', 'broke');
end;
CREATE INDEX jobs_places on jobs (queue) where places is not null and state in ('blocked', 'pending', 'processing', 'failed');
CREATE INDEX points_at on points (span, at);
CREATE INDEX requests_at on requests (at);
CREATE INDEX audit_at on audit (at);
CREATE TRIGGER audit_stays before update on audit
begin
    select raise(abort, 'what is in the audit is not changed');
end;
CREATE TRIGGER audit_is_kept before delete on audit when old.seq > coalesce((select base from audit_ends), 0)
begin
    select raise(abort, 'what is in the audit is not removed');
end;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('jobs',10);
COMMIT;
pragma application_id = 1366647668;
pragma user_version = 14;
