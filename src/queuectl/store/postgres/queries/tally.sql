-- tally: jobs per queue and state. See the table `moves`; neither outside nor another queue is a state.
select queue, state, sum(jobs)::bigint
  from (
    select queue, now as state, jobs
      from queuectl.moves
     where now not in ('', 'elsewhere')
    union all
    select queue, was, -jobs
      from queuectl.moves
     where was not in ('', 'elsewhere')
  ) as found
 group by queue, state
