-- What the HTTP API, its page and Prometheus need.

-- What charts are drawn of, at a cost that does not grow with the jobs: see job/points.py. Once a minute
-- one of all workers looks at the counters and writes down how much they have grown.

-- One row for each minute, and for each hour, in which somebody looked, by queue ('' is all, '*' those beyond the busiest).
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
    run text not null,           -- run and waiting times in buckets, see job/buckets.py
    wait text not null,
    primary key (span, queue, at)
) strict, without rowid;

-- For removing what is old.
create index points_at on points (span, at);

-- What ever happened in each queue, as it was when somebody last looked.
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

-- When somebody last looked, up to which end of a job its times are in `buckets`, and how often jobs after that were added to them
-- since they were removed. Whoever writes a point changes this row from what it has seen: so there is one of a minute. No row: nobody
-- ever did.
create table sampling (
    one integer primary key check (one = 1),
    at integer,  -- null: never
    until integer not null,
    removals integer not null
) strict;

-- What was there before this version: its times are known, its rates are not, so the first point begins with the last change.
insert into sampling (one, at, until, removals)
select 1, (select max(updated_at) from jobs), coalesce((select max(finished_at) from jobs where state = 'completed'), 0), 0
 where exists (select 1 from jobs);

insert into buckets (queue, what, bucket, jobs, ms)
select queue, what,
       (ms > 10) + (ms > 25) + (ms > 50) + (ms > 100) + (ms > 250) + (ms > 500) + (ms > 1000) + (ms > 2500) + (ms > 5000)
       + (ms > 10000) + (ms > 30000) + (ms > 60000) + (ms > 300000) + (ms > 900000) + (ms > 3600000) + (ms > 14400000)
       + (ms > 86400000) as bucket,
       count(*), sum(ms)
  from (
    select queue, 'run' as what, duration_ms as ms
      from jobs
     where state = 'completed'
    union all
    select queue, 'wait', wait_ms
      from jobs
     where state = 'completed'
  )
 where ms is not null
 group by queue, what, bucket;

insert into counters (queue, enqueued, started, completed, failed, dead, retried, rescued)
select queue,
       sum(jobs * (was = '')),
       sum(jobs * (now = 'processing')),
       sum(jobs * (now = 'completed')),
       sum(jobs * (ending in ('failed', 'timeout', 'signalled', 'unstartable'))),
       sum(jobs * (now = 'dead')),
       sum(jobs * ((was = 'failed' and now = 'processing') or (now = 'pending' and was in ('failed', 'dead', 'cancelled')))),
       sum(jobs * (ending = 'lost'))
  from moves
 group by queue;

-- Requests that somebody gave a key to, so that they can be repeated without adding their jobs twice: see store/requests.py.
create table requests (
    key text primary key,
    digest text not null,  -- of what was asked for: the same key means the same request
    answer text not null,
    at integer not null
) strict, without rowid;

create index requests_at on requests (at);
