-- import_run: add an earlier run of a job that came with its past.
insert into runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, usage
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
