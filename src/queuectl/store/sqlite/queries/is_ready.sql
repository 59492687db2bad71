-- is_ready: has a queue something to claim?
select exists (
    select 1
      from jobs indexed by jobs_ready
     where queue = :queue
       and ready = 1
)
