-- admit: let those back into the line for whom there is room by their key, the first of it first. Without a limit by key that is all
-- of them. Others of the key may have come to the line behind them meanwhile: who goes too far back is set aside by a claim.
-- Behind hold_lines.sql. The range is in the order of jobs_of_key, also where it means one value: no other index gives that order.
update queuectl.jobs
   set aside = false,
       ready_since = pg_current_xact_id()
 where aside
   and seq in (
    select line.seq
      from unnest(%(queues)s::text[], %(keys)s::text[]) as told (queue, key)
     cross join lateral (
        select jobs.seq
          from queuectl.jobs
         where jobs.ready
           and jobs.key is not null
           and (jobs.queue, jobs.key, jobs.rank, jobs.seq) > (told.queue, told.key, -9223372036854775808, 0)
           and (jobs.queue, jobs.key) <= (told.queue, told.key)
         order by jobs.queue, jobs.key, jobs.rank, jobs.seq
         limit (
             select greatest(0, queues.per_key - (
                        select count(*)
                          from queuectl.jobs as other
                         where other.queue = told.queue
                           and other.key = told.key
                           and other.state = 'processing'
                    ))
               from queuectl.queues
              where queues.name = told.queue
                and queues.per_key is not null
         )
     ) as line
   )
