-- late: those whose time has come, but whom nobody has let in yet: there is no worker, or it is about to.
select queue, rank, seq
  from queuectl.jobs
 where not ready
   and not held
   and state in ('pending', 'failed')
   and run_at <= %(now)s
 order by run_at
 limit %(limit)s
