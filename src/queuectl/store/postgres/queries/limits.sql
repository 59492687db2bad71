-- limits: the queues that are paused or limited, how many of each run, the number of the latest start, and when that one was
-- from which the next has to keep its distance. When a start was: at the claim, until the worker says when exactly; a
-- claim whose process is not there yet counts, and is not sure. A time outside of what can be is no time (the clock was set).
-- Who runs is counted job by job: they are few. (SQLite has the sum of its moves; here that would be many rows.) Once for all
-- queues, and only if one of them asks: while somebody holds a transaction open, it steps over all that ran since.
with running as materialized (
    select queue, count(*) as jobs
      from queuectl.jobs
     where state = 'processing'
     group by queue
)
select queues.name, queues.paused, queues.concurrency, queues.rate_starts, queues.rate_ms,
       case
           when queues.concurrency is null then 0
           else coalesce((select running.jobs from running where running.queue = queues.name), 0)
       end,
       coalesce(last.number, 0),
       coalesce(
           case when jobs.runs = earlier.run and jobs.started_at between earlier.at and %(now)s then jobs.started_at end,
           case when runs.started_at between earlier.at and %(now)s then runs.started_at end,
           earlier.at
       ),
       jobs.seq is null or jobs.runs <> earlier.run or jobs.state <> 'processing' or jobs.pid is not null,
       queues.per_key
  from queuectl.queues
  left join lateral (
      select number
        from queuectl.starts
       where starts.queue = queues.name
         and queues.rate_starts is not null
       order by starts.queue desc, starts.number desc
       limit 1
  ) as last on true
  left join queuectl.starts as earlier
    on earlier.queue = queues.name
   and earlier.number = last.number + 1 - queues.rate_starts
  left join queuectl.jobs
    on jobs.seq = earlier.job
  left join queuectl.runs
    on runs.job = earlier.job
   and runs.number = earlier.run
 where queues.paused
    or queues.concurrency is not null
    or queues.rate_starts is not null
    or queues.per_key is not null
