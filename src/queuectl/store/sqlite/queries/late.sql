-- late: those whose time has come, but whom nobody has let in yet: there is no worker, or it is about to.
select queue, rank, seq
  from jobs indexed by jobs_due
 where ready = 0
   and held = 0
   and state in ('pending', 'failed')
   and run_at <= :now
 order by run_at
 limit :limit
