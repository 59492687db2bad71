-- tally: jobs per queue and state. See the table `moves`.
select queue, state, sum(jobs)::bigint
  from (
    select queue, now as state, jobs
      from queuectl.moves
     where now <> ''
    union all
    select queue, was, -jobs
      from queuectl.moves
     where was <> ''
  ) as found
 group by queue, state
