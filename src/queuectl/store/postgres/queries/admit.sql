-- admit: let those back into the line for whom there is room by their key, the first of it first. Without a limit by key that is all
-- of them. The first says what the limit is, if it says so itself. Others of the key may have come to the line behind them meanwhile: who goes too far back is set aside by a claim.
-- Behind hold_lines.sql and hold_places.sql. The range is in the order of jobs_of_key, also where it means one value: no other index gives that order.
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
             select case
                        when said.places is not null
                        then greatest(0, said.places - (
                            select count(*)
                              from queuectl.jobs as other
                             where other.queue = told.queue
                               and other.key = told.key
                               and other.state = 'processing'
                        ))
                    end
               from (
                 select coalesce(
                            (
                                select first.places
                                  from queuectl.jobs as first
                                 where first.ready
                                   and first.key is not null
                                   and (first.queue, first.key, first.rank, first.seq)
                                       > (told.queue, told.key, -9223372036854775808, 0)
                                   and (first.queue, first.key) <= (told.queue, told.key)
                                 order by first.queue, first.key, first.rank, first.seq
                                 limit 1
                            ),
                            (select queues.per_key from queuectl.queues where queues.name = told.queue)
                        ) as places
               ) as said
         )
     ) as line
   )
