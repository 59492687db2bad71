-- is_ready: has a queue something whose time has come? Also if it stands aside.
select exists (
    select 1
      from jobs indexed by jobs_oldest
     where queue = :queue
       and ready = 1
)
