-- latest_run: the run that stands in the job's row, if there is one: under way, or over and not archived.
select runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error,
       coalesce(ending, 'running'), log_from, log_to, usage
  from queuectl.jobs
 where seq = %(seq)s
   and (state = 'processing' or ending is not null)
