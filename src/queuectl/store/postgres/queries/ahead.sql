-- ahead: how many jobs of a queue would be claimed before this place, counted up to a limit. The range is in the order of
-- jobs_ready, also where it means one value: no other index gives that order.
select count(*)
  from (
    select 1
      from queuectl.jobs
     where ready
       and not aside
       and (queue, rank, seq) > (%(queue)s, -9223372036854775807, 0)
       and (queue, rank, seq) < (%(queue)s, %(rank)s, %(seq)s)
     order by queue, rank, seq
     limit %(limit)s
  ) as before
