-- unclaim: a job that was just settled was given back by its worker, which had not begun it: the claim has not been a run. The job
-- shows the run before it again, which was archived at the claim, or none. See drop_earlier.sql.
update jobs
   set runs = runs - 1,
       (worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage) = (
           select worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage
             from runs
            where job = jobs.seq
              and number = jobs.runs - 1
       ),
       wait_ms = iif(runs > 1, wait_ms, null),
       log = iif(runs > 1, log, null)
 where seq = :seq
