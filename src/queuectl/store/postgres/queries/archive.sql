-- archive: the latest run of each of these jobs, if it is over and not there yet, becomes a row of `runs`: the job's row is
-- about to lose it. (claim.sql does the same for those it claims.)
insert into queuectl.runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
    token, usage
)
select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
       last_token, usage
  from queuectl.jobs
 where seq = any(%(seqs)s)
   and ending is not null
