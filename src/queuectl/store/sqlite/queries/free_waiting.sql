-- free_waiting: a job that waited for others of its schedule need not any more. It may have been called off meanwhile.
update jobs
   set held = 0,
       ready = run_at <= :now,
       updated_at = max(updated_at, :now)
 where id = :id
   and held = 1
   and state in ('pending', 'failed')
