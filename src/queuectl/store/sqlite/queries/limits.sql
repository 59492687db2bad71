-- limits: the queues that are paused or limited, how many of each run, the number of the latest start, and when that one was
-- from which the next has to keep its distance. When a start was: at the claim, until the worker says when exactly; a
-- claim whose process is not there yet counts, and is not sure. A time outside of what can be is no time (the clock was set).
select name, paused, concurrency, rate_starts, rate_ms,
       iif(
           concurrency is null, 0,
           (
               select coalesce(sum(iif(now = 'processing', jobs, 0) - iif(was = 'processing', jobs, 0)), 0)
                 from moves
                where moves.queue = queues.name
           )
       ),
       coalesce(last.number, 0),
       coalesce(
           (
               select max(started_at)
                 from (
                   select started_at from jobs where seq = earlier.job and runs = earlier.run
                   union all
                   select started_at from runs where job = earlier.job and runs.number = earlier.run
                 )
                where started_at between earlier.at and :now
           ),
           earlier.at
       ),
       not exists (
           select 1
             from jobs
            where seq = earlier.job
              and runs = earlier.run
              and state = 'processing'
              and pid is null
       ),
       per_key
  from queues
  left join starts as last
    on rate_starts is not null
   and last.queue = queues.name
   and last.number = (select max(number) from starts where starts.queue = queues.name)
  left join starts as earlier
    on earlier.queue = queues.name
   and earlier.number = last.number + 1 - rate_starts
 where paused
    or concurrency is not null
    or rate_starts is not null
    or per_key is not null
