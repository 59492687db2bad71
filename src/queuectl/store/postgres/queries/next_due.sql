-- next_due: when the next job comes due.
select run_at
  from queuectl.jobs
 where not ready
   and not held
   and state in ('pending', 'failed')
 order by run_at
 limit 1
