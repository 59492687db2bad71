-- candidates_named_queues: the first jobs of the queues that the worker names, for claim.sql. The queues are read one after the other until
-- there are enough. The queue is a range that means one value: only jobs_ready gives that order, and the planner cannot prefer an
-- index in which the jobs of other queues come first. (SQLite asks queue by queue.)
candidates as (
    select served.turn, first.*
      from unnest(%(queues)s::text[]) with ordinality as served (queue, turn)
     cross join lateral (
        select *
          from queuectl.jobs
         where ready
           and not aside
           and (jobs.queue, jobs.rank, jobs.seq) > (served.queue, -9223372036854775808, 0)
           and jobs.queue <= served.queue
           and (select is_open and is_unlimited from gate)
         order by jobs.queue, jobs.rank, jobs.seq
         limit %(limit)s
           for update skip locked
     ) as first
     limit %(limit)s
)
