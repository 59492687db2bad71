-- admit: let those back into the line for whom there is room by their key, the first of it first. Without a limit by key that is all
-- of them. The first says what the limit is, if it says so itself. Others of the key may have come to the line behind them meanwhile: who goes too far back is set aside by a claim.
update jobs
   set aside = 0
 where aside = 1
   and seq in (
    select seq
      from jobs indexed by jobs_of_key
     where queue = :queue
       and key = :key
       and ready = 1
     order by rank, seq
     limit coalesce(
         max(
             0,
             coalesce(
                 (
                     select places
                       from jobs indexed by jobs_of_key
                      where queue = :queue
                        and key = :key
                        and ready = 1
                      order by rank, seq
                      limit 1
                 ),
                 (select per_key from queues where name = :queue)
             ) - (
                 select count(*)
                   from jobs indexed by jobs_running_key
                  where queue = :queue
                    and key = :key
                    and state = 'processing'
             )
         ),
         -1
     )
   )
