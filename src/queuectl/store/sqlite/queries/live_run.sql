-- live_run: the run under way, if there is one.
select runs, worker, host, pid, started_at, log_from
  from jobs
 where seq = :seq
   and state = 'processing'
