-- What the HTTP API, its page and Prometheus need.

-- What charts are drawn of, at a cost that does not grow with the jobs: see job/points.py. Once a minute
-- one of all workers looks at the counters and writes down how much they have grown.

-- One row for each minute, and for each hour, in which somebody looked, by queue ('' is all, '*' those beyond the busiest).
create table queuectl.points (
    span text collate "C" not null check (span in ('minute', 'hour')),
    queue text collate "C" not null,
    at bigint not null,         -- the beginning of the minute or hour
    covers_ms bigint not null check (covers_ms >= 0),
    enqueued bigint not null,
    started bigint not null,
    completed bigint not null,
    failed bigint not null,
    dead bigint not null,
    retried bigint not null,
    rescued bigint not null,
    waiting bigint not null,
    running bigint not null,
    oldest_ms bigint,
    run text not null,           -- run and waiting times in buckets, see job/buckets.py
    wait text not null,
    primary key (span, queue, at)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

-- For removing what is old.
create index points_at on queuectl.points (span, at);

-- What ever happened in each queue, as it was when somebody last looked.
create table queuectl.counters (
    queue text collate "C" primary key,
    enqueued bigint not null,
    started bigint not null,
    completed bigint not null,
    failed bigint not null,
    dead bigint not null,
    retried bigint not null,
    rescued bigint not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Run and waiting times of all jobs ever completed, also of those removed since; without those that ended after `sampling.until`.
create table queuectl.buckets (
    queue text collate "C" not null,
    what text collate "C" not null check (what in ('run', 'wait')),
    bucket integer not null check (bucket >= 0),
    jobs bigint not null,
    ms bigint not null,
    primary key (queue, what, bucket)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- When somebody last looked, up to which end of a job its times are in `buckets`, and how often jobs after that were added to them
-- since they were removed. Whoever writes a point changes this row from what it has seen: so there is one of a minute. No row: nobody
-- ever did.
create table queuectl.sampling (
    one integer primary key check (one = 1),
    at bigint,  -- null: never
    until bigint not null,
    removals bigint not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);

-- What was there before this version: its times are known, its rates are not, so the first point begins with the last change.
insert into queuectl.sampling (one, at, until, removals)
select 1,
       (select max(updated_at) from queuectl.jobs),
       coalesce((select max(finished_at) from queuectl.jobs where state = 'completed'), 0),
       0
 where exists (select 1 from queuectl.jobs);

insert into queuectl.buckets (queue, what, bucket, jobs, ms)
select queue, what,
       width_bucket(
           ms - 1,
           array[10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 14400000,
                 86400000]::bigint[]
       ) as bucket,
       count(*), sum(ms)::bigint
  from (
    select queue, 'run' as what, duration_ms as ms
      from queuectl.jobs
     where state = 'completed'
    union all
    select queue, 'wait', wait_ms
      from queuectl.jobs
     where state = 'completed'
  ) as times
 where ms is not null
 group by queue, what, bucket;

insert into queuectl.counters (queue, enqueued, started, completed, failed, dead, retried, rescued)
select queue,
       coalesce(sum(jobs) filter (where was = ''), 0),
       coalesce(sum(jobs) filter (where now = 'processing'), 0),
       coalesce(sum(jobs) filter (where now = 'completed'), 0),
       coalesce(sum(jobs) filter (where ending in ('failed', 'timeout', 'signalled', 'unstartable')), 0),
       coalesce(sum(jobs) filter (where now = 'dead'), 0),
       coalesce(sum(jobs) filter (
           where (was = 'failed' and now = 'processing') or (now = 'pending' and was in ('failed', 'dead', 'cancelled'))
       ), 0),
       coalesce(sum(jobs) filter (where ending = 'lost'), 0)
  from queuectl.moves
 group by queue;

-- Requests that somebody gave a key to, so that they can be repeated without adding their jobs twice: see store/requests.py.
create table queuectl.requests (
    key text collate "C" primary key,
    digest text collate "C" not null,  -- of what was asked for: the same key means the same request
    answer text not null,
    at bigint not null
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

create index requests_at on queuectl.requests (at);
