-- archive: the latest run of a job, if it is over and not there yet, becomes a row of `runs`: the job's row is about to
-- lose it.
insert into runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
    usage
)
select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
       usage
  from jobs
 where seq = ?
   and ending is not null
