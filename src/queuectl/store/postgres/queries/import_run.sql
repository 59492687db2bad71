-- import_run: add earlier runs of jobs that came with their past, as a stream of rows; the token as in import_job.sql.
copy queuectl.runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, usage, token
) from stdin
