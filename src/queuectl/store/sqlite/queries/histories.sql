-- histories: the runs of some jobs but for those that stand in the jobs' rows. Job by job, as the primary key has them.
select job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage
  from runs
 where job in (select value from json_each(:seqs))
 order by job, number
