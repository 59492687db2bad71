-- hold_limits: until the end of this transaction nobody else claims by these limits: two could use the same place. In the order
-- of names, so that nobody waits for one who waits for them. Only queues (null: all) that have something to be claimed; which
-- these are is only known by what this returns, since the next statement may see more. (SQLite has one writer.)
select name
  from queuectl.queues
 where (concurrency is not null or rate_starts is not null or per_key is not null)
   and not paused
   and (%(queues)s::text[] is null or name = any(%(queues)s::text[]))
   and exists (
       select 1
         from queuectl.jobs
        where jobs.ready
          and not jobs.aside
          and (jobs.queue, jobs.rank, jobs.seq) > (queues.name, -9223372036854775808, 0)
          and jobs.queue <= queues.name
   )
 order by name
   for update
