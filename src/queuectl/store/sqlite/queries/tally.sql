-- tally: jobs per queue and state. See the table `moves`; neither outside nor another queue is a state.
select queue, state, sum(jobs)
  from (
    select queue, now as state, jobs
      from moves
     where now not in ('', 'elsewhere')
    union all
    select queue, was, -jobs
      from moves
     where was not in ('', 'elsewhere')
  )
 group by queue, state
