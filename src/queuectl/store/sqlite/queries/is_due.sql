-- is_due: has a queue something whose time has come but that nobody has let in yet?
-- (PostgreSQL: is_drained.sql asks for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_due
     where ready = 0
       and held = 0
       and state in ('pending', 'failed')
       and run_at <= :now
       and queue = :queue
)
