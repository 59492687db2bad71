-- candidates_chosen: the jobs (by seq, in order) that were chosen within the limits of their queues, for claim.sql. The transaction
-- holds those limits, see hold_limits.sql. `is true` keeps the planner from an index of all that is ready. (SQLite claims what it has just read.)
candidates as (
    select chosen.turn, jobs.*
      from unnest(%(chosen)s::bigint[]) with ordinality as chosen (seq, turn)
      join queuectl.jobs
        on jobs.seq = chosen.seq
     where (jobs.ready and not jobs.aside) is true
       and (select is_open from gate)
       for update of jobs skip locked
)
