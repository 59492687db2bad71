-- history: the runs of a job but for one that stands in the job's row.
select number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage
  from queuectl.runs
 where job = %(seq)s
 order by number
