-- is_ready: has a queue something whose time has come? Also if it stands aside.
-- (PostgreSQL: is_drained.sql asks for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_oldest
     where queue = :queue
       and ready = 1
)
