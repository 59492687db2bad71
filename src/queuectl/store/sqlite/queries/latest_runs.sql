-- latest_runs: of some jobs, the run that stands in the row of each, and where its log is.
select id, log, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error,
       coalesce(ending, 'running'), log_from, log_to, usage
  from jobs
 where id in (select value from json_each(:ids))
   and (state = 'processing' or ending is not null)
