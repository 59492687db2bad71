-- add_run: a run that `settle` has just ended becomes history, as the job's row has it now.
insert into runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to
)
select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, :ending, log_from,
       :log_to
  from jobs
 where seq = :seq
