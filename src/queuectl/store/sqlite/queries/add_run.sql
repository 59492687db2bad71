-- add_run: a run that is over becomes history.
insert into runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to
)
values (
    :seq, :number, :worker, :host, :pid, :started_at, :finished_at, :duration_ms, :exit_code, :signal, :error, :ending,
    :log_from, :log_to
)
