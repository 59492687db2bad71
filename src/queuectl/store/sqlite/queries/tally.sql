-- tally: jobs per queue and state. See the table `moves`.
select queue, state, sum(jobs)
  from (
    select queue, now as state, jobs
      from moves
     where now <> ''
    union all
    select queue, was, -jobs
      from moves
     where was <> ''
  )
 group by queue, state
