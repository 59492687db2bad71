-- hold_limits: until the end of this transaction nobody else claims by these limits: two could use the same place. In the order
-- of names, so that nobody waits for one who waits for them. Only queues (null: all) that have something to be claimed; which
-- these are is only known by what this returns, since the next statement may see more. (SQLite has one writer.)
-- The first of each line is asked for by itself, with a limit: of an `exists` the planner makes a join with all that waits.
select queues.name
  from queuectl.queues
 cross join lateral (
    select jobs.seq
      from queuectl.jobs
     where jobs.ready
       and not jobs.aside
       and (jobs.queue, jobs.rank, jobs.seq) > (queues.name, -9223372036854775808, 0)
       and jobs.queue <= queues.name
     order by jobs.queue, jobs.rank, jobs.seq
     limit 1
 ) as first
 where (queues.concurrency is not null or queues.rate_starts is not null or queues.per_key is not null)
   and not queues.paused
   and (%(queues)s::text[] is null or queues.name = any(%(queues)s::text[]))
 order by queues.name
   for update of queues
