"""Texts for the generated pages that cannot be derived from the code. See generate.py."""

from __future__ import annotations

# ── settings: what a change of each applies to ───────────────────────────────────────────────────────────────────────

AT_ENQUEUE = "jobs that are enqueued afterwards"
AT_BEAT = "running workers, within their heartbeat"
AT_FAILURE = f"runs that fail afterwards; {AT_BEAT}"
AT_RETENTION = "running workers, within some seconds, and the next `prune`"
IN_FORCE = {
    "max-retries": AT_ENQUEUE,
    "backoff-base": AT_ENQUEUE,
    "backoff-max": AT_FAILURE,
    "backoff-jitter": AT_FAILURE,
    "first-attempt-is-free": AT_ENQUEUE,
    "max-crashes": f"workers that are found dead afterwards; {AT_BEAT}",
    "timeout": AT_ENQUEUE,
    "kill-grace": f"runs that are terminated afterwards; {AT_BEAT}",
    "priority": AT_ENQUEUE,
    "ageing": "all waiting jobs, immediately",
    "worker-count": f"{AT_BEAT}, unless started with `--count`",
    "poll-interval": AT_BEAT,
    "heartbeat": AT_BEAT,
    "lease": f"{AT_BEAT}; at least twice the heartbeat",
    "log-limit": f"output that is printed afterwards; {AT_BEAT}; an adopted run keeps its limit",
    "output-limit": "the next `show`; in PostgreSQL, output after the next heartbeat",
    "retain-completed": f"{AT_RETENTION}; it also applies to cancelled jobs",
    "retain-dead": AT_RETENTION,
    "retain-audit": "running workers, within an hour",
    "webhook-success": AT_ENQUEUE,
    "webhook-failure": AT_ENQUEUE,
    "webhook-dead": AT_ENQUEUE,
    "webhook-secret": "requests that are sent afterwards, also retries",
    "webhook-allow-private": "requests that are sent afterwards, also retries",
}

# ── errors: what each code means ────────────────────────────────────────────────────────────────────────────────────

ERRORS = {
    "error": "Never raised itself: the base class of all errors.",
    "usage": "Invalid command line: an unknown option, a repeated option, no action.",
    "invalid-input": "A value of a wrong type, range or format. The message begins with the field, option or key.",
    "invalid-json": "Text that is not valid JSON, or that is ambiguous (duplicate keys, NaN). The message contains the position.",
    "invalid-line": "One line of a batch is invalid, so none of the batch was added. With `--stream` only that line is skipped.",
    "invalid-lines": "`enqueue --stream --json`: several lines were invalid and skipped; the others were added.",
    "invalid-item": "One element of a JSON array is invalid, so none of the array was added.",
    "unknown-name": "A command, field, key, state or sort key that does not exist. The hint names the closest match.",
    "needs-confirmation": "Jobs would be removed, or many selected jobs changed, without `--yes`, and there is no terminal for confirmation.",
    "not-found": "The object does not exist, such as the run of `logs --run`.",
    "job-not-found": "No job has that ID or prefix.",
    "schedule-not-found": "No schedule has that name.",
    "parent-not-found": "A parent of a job is neither in the database nor in the same batch.",
    "worker-not-found": "No worker of the database has that name.",
    "conflict": "Never raised itself: the base class of conflicts with the current state.",
    "ambiguous-id": "Several IDs have that prefix. The hint names up to five.",
    "duplicate-id": "A job with that ID exists, or a batch contains it twice.",
    "alert-not-found": "No alert has that name.",
    "alert-exists": "`alert add`: an alert with that name exists.",
    "batch-not-found": "No batch has that name.",
    "batch-complete": "All jobs of the batch have ended and its `--on-complete` job is queued: it accepts no more jobs.",
    "batch-differs": "The batch has another `--on-complete` job.",
    "idempotency-key-reused": "HTTP API: another request of the last 24 hours had the same `Idempotency-Key`. Nothing was added.",
    "key-taken": "Another job with that unique key waits or runs. Raised by `--if-exists error`, by `--if-exists replace` if that job runs, by `retry` and by `import`.",
    "not-fired": "`cron run`: another job has the unique key of the schedule, so none was added.",
    "schedule-exists": "`cron add`: a schedule with that name exists. `--replace` replaces it.",
    "parent-ended": "A parent of a job has already ended in another way, so the job would never run.",
    "wrong-state": "The state of the job does not allow the action.",
    "not-movable": "`queue move`: the job does not wait in the source queue.",
    "stale-edit": "`edit`: the job was changed since the editor was opened or, over HTTP, since the given `as_of`. Nothing was changed, and the text of the editor is kept.",
    "not-confirmed": "The confirmation on the terminal was declined.",
    "worker-name-taken": "A worker with that name is running.",
    "workers-alive": "`reset`, `restore` and `copy` are refused while a worker may run a job.",
    "store-not-found": "There is no database at the address of `copy --from`, nothing to `backup`, or no such file to `restore`. None is created.",
    "file-in-use": "`restore` names the database itself, not a backup of it.",
    "editor-failed": "`edit`: the editor could not be started, or exited with an error. Nothing was changed.",
    "store-not-empty": "`copy --to` names a database that contains jobs, settings or history.",
    "same-store": "`copy --from` and `--to` are the same database, even if the addresses differ.",
    "jobs-running": "`copy`: jobs are running in the source. With `--force` they are pending in the copy.",
    "copy-differs": "`copy` compared the counts of both databases, and they differ. Nothing was copied.",
    "file-exists": "`export` or `backup` names an existing file. Files are never overwritten.",
    "rule-differs": "`import`: another schedule or queue with that name has other settings. Nothing was imported.",
    "job-differs": "`import`: another job has one of the IDs. Nothing was imported.",
    "invalid-row": "`import`: one row of the SQLite file of another tool is invalid, so nothing was imported.",
    "unknown-layout": "`import`: the file is neither JSON nor SQLite with a known layout.",
    "refused": "Some of several IDs were refused. The others were processed.",
    "extra-missing": "`dashboard`, `top`: required packages are not installed. The hint shows how to install them.",
    "cannot-listen": "`dashboard`: the port is in use, or the address does not belong to this host.",
    "unavailable": "A required file cannot be read, such as the log of a job of another user.",
    "supervisor-gone": "The supervisor of a worker died, or could not be started. The worker exits.",
    "call-refused": "A webhook was not called: its name has no address, or a job set the URL and its address is private.",
    "call-unanswered": "The receiver of a webhook did not respond with 2xx. Redirects are not followed.",
    "command-refused": "`alert test`, `alert check`: the policy of this host refuses the command of an alert. Nothing was run.",
    "command-failed": "`alert test`, `alert check`: the command of an alert failed, did not exit within a minute, or could not be started.",
    "home-unusable": "The data directory is not a directory, or cannot be created or written.",
    "not-trusted": "Another user owns the data directory or the database, or can write to it.",
    "file-unreadable": "The file of `--file`, or of `import`, cannot be read.",
    "file-unwritable": "The file of `export` or `backup` cannot be created or written.",
    "output-failed": "The output cannot be written: the disk behind stdout is full. The action was completed; for `enqueue` the message contains the IDs.",
    "store-locked": "Another program held the lock of the database for longer than 30 s, the timeout of a command.",
    "store-unreachable": "The database server does not respond, or the connection was lost. If it is unknown whether jobs were added, the hint shows how to find out. Workers retry without limit, and `wait`, `run`, `logs --follow` and `status --watch` for 10 s.",
    "store-refused": "The database server refused the connection (user, password, database), or a privilege is missing. The message names it.",
    "driver-missing": "The driver for PostgreSQL is not installed. The hint contains the command that installs it.",
    "store-full": "No space is left for the database.",
    "store-read-only": "The user or the file system does not allow writing to the database.",
    "store-failed": "The database failed for another reason. The message comes from the database.",
    "store-damaged": "The database file is damaged. It is never replaced by an empty one.",
    "store-foreign": "The file is not a database of queuectl, and was not changed.",
    "store-too-new": "A newer queuectl has upgraded the schema of this database. A running worker finishes its jobs and exits.",
    "store-gone": "The database was removed or replaced while it was in use.",
    "store-unsupported": "The kind of database address is not supported by this version.",
    "sqlite-too-old": "The SQLite library of this Python is older than 3.37.",
    "policy-unusable": "The policy of a worker is missing, or another user could change it. The worker does not start; a running one keeps its policy.",
    "secret-not-found": "There is no such secret in this data directory, and no provider command for it.",
    "secret-unusable": "Other users could read a secret or change its provider, its value cannot be a variable, or the provider command failed.",
    "zones-missing": "A schedule has another time zone than UTC, and this host has no time zone database.",
    "system-unsupported": "Workers cannot run on this system: it cannot identify processes.",
    "system-refused": "A system call failed: no file descriptor is left, or the disk is full or read-only. A worker prints the error and retries.",
    "too-many-slots": "The hard limit of open files (`ulimit -Hn`) does not allow a worker this many slots: each needs two files.",
    "no-service-manager": "`service`: systemd or launchd is missing, or this user cannot access it.",
    "service-failed": "`service`: systemd or launchd failed. The message comes from the service manager.",
    "worker-failed": "A worker started with `--detach` did not start. The message comes from the worker.",
    "wait-timeout": "`wait --timeout`: the timeout has expired, and the jobs continue. In Python also a `TimeoutError`.",
    "interrupted": "`run --json` was interrupted with Ctrl-C. The job continues, and the message names it.",
    "internal": "A bug or an unexpected failure of the host. `QUEUECTL_DEBUG=1` prints the traceback. Please report it.",
}

# ── the life of a job ───────────────────────────────────────────────────────────────────────────────────────────────

STATES = {
    "blocked": "waits for its parents",
    "pending": "runs as soon as its `run_at` has passed and a slot is free",
    "processing": "a worker has claimed it",
    "failed": "the last run failed; the retry is due at `run_at`",
    "completed": "exit code 0",
    "dead": "failed permanently: the dead letter queue",
    "cancelled": "cancelled by a user or by a dependency",
}

COUNTS = """
    ## Counters

    | field | counts | reset by |
    | --- | --- | --- |
    | `runs` | runs started, with any result | never |
    | `attempts` | failed runs: nonzero exit code, killed by a signal, timeout, could not start | `retry` of a dead or cancelled job |
    | `crashes` | runs whose worker died | `retry` of a dead or cancelled job |

    - A failed run makes a job `dead` when `attempts` reaches `max_retries`. 0 counts as 1. With
      [`first-attempt-is-free`](configuration.md#first-attempt-is-free), the job has one more attempt.
    - Otherwise the job is `failed`, with `run_at` = now + `backoff_base ** attempts` seconds, at most `backoff-max`. See
      [retries](../guides/retries.md).
    - A cancel that is recorded before the end of a run wins, whatever the exit code, and does not count as an attempt.
    - A job that the [policy](../guides/policy.md) of its worker's host refuses is `dead` immediately. The job does not run, and no attempt is counted.
    - A worker that is stopped immediately releases its jobs. They become `pending`, and the run does not count as an attempt.
    - The death of a worker counts as a crash, not as an attempt. The job becomes `pending`, or `dead` when `crashes` reaches `max-crashes`.
    - `retry` makes a job due now. It keeps its position in the queue, its runs and its history. Completed, pending,
      processing and blocked jobs cannot be retried. `dlq retry` accepts only dead jobs.

    ## Order of jobs

    Due jobs run by priority, highest first, then in the order of enqueue. This includes delayed and retried jobs.
    With [`ageing`](configuration.md#ageing), the priority of waiting jobs rises: see [priorities](../guides/priorities.md).
"""

# ── HTTP: errors that no command has ────────────────────────────────────────────────────────────────────────────

REFUSALS = {
    "cut-off": (400, "The request body is incomplete."),
    "no-token": (401, "The token is missing, invalid or expired."),
    "read-only": (403, "The token is read-only."),
    "foreign-origin": (403, "The request comes from a page of another origin."),
    "alert-commands-off": (
        403,
        "The alert has a command, and the server was not started with `--allow-alert-commands`.",
    ),
    "not-found": (
        404,
        "The path does not exist. A missing object has the code of the command line, such as `job-not-found`.",
    ),
    "method-not-allowed": (405, "The path supports other methods: see `Allow`."),
    "too-slow": (408, "The request body took more than 30 s."),
    "too-large": (413, "The request body is larger than 16 MiB."),
    "not-json": (415, "The request body is not `application/json`."),
    "no-such-range": (416, "`Range` begins after the end of the log: see `Content-Range`."),
    "foreign-host": (421, "The `Host` header is not allowed: see `--allow-host`."),
    "head-too-large": (431, "Request line and headers are larger than 32 KiB."),
    "internal-error": (500, "A bug in queuectl; the server log contains the details."),
    "ending": (503, "The server is shutting down."),
    "too-many-waiting": (503, "Too many clients wait or follow logs: see `Retry-After`."),
    "too-many-listeners": (503, "More than 256 clients watch `/events`."),
}

# What the command line can do and the API does not, and why.
NOT_OVER_HTTP = {
    "db backup": "it writes a file on the server; run it there, or on a schedule",
    "db restore": "it replaces the whole database; run it on the host",
    "db reset": "it replaces the whole database; run it on the host",
    "db copy": "it needs the addresses and passwords of two databases",
    "db import": "it reads files of the server; send jobs to `/jobs/many` instead",
    "run": "use `POST /jobs` and then `/jobs/{id}/logs?follow=true`",
    "worker start": "the server starts no workers",
    "alert check": "the server evaluates alerts itself",
    "service install": "it changes the host on which it runs",
    "service status": "it belongs to the host on which it runs",
    "service uninstall": "it belongs to the host on which it runs",
    "policy check": "a policy belongs to the host that runs the job, which may not be the server",
    "policy show": "a policy belongs to the host that runs the job, which may not be the server",
    "secret list": "secrets belong to the host that runs the job",
    "secret set": "secrets belong to the host that runs the job",
    "secret remove": "secrets belong to the host that runs the job",
    "secret check": "secrets belong to the host that runs the job",
    "dashboard": "it is the server itself",
    "top": "it needs a terminal",
    "demo": "it needs a terminal",
    "completion": "it is used by a shell",
    "help": "`/api/v1/docs` is the documentation of the API",
}
