-- free_waiting: a job that waited for others of its schedule need not any more. It may have been called off meanwhile.
update queuectl.jobs
   set held = false,
       ready = run_at <= %(now)s,
       ready_since = pg_current_xact_id(),
       updated_at = greatest(updated_at, %(now)s)
 where id = %(id)s
   and held
   and state in ('pending', 'failed')
