-- histories: the runs of some jobs but for those that stand in the jobs' rows.
select job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage
  from queuectl.runs
 where job = any(%(seqs)s)
 order by job, number
