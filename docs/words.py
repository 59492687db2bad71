"""The words that the generated pages need and the code does not have. See generate.py."""

from __future__ import annotations

# ── settings: what a change of each holds for ───────────────────────────────────────────────────────────────────────

AT_ENQUEUE = "jobs enqueued from then on"
AT_BEAT = "running workers, within their heartbeat"
AT_FAILURE = f"runs that fail from then on; {AT_BEAT}"
AT_RETENTION = "running workers, within some seconds, and the next `prune`"
IN_FORCE = {
    "max-retries": AT_ENQUEUE,
    "backoff-base": AT_ENQUEUE,
    "backoff-max": AT_FAILURE,
    "backoff-jitter": AT_FAILURE,
    "first-attempt-is-free": AT_ENQUEUE,
    "max-crashes": f"workers that are found dead from then on; {AT_BEAT}",
    "timeout": AT_ENQUEUE,
    "kill-grace": f"runs that have to be ended from then on; {AT_BEAT}",
    "priority": AT_ENQUEUE,
    "ageing": "all that waits, at once",
    "worker-count": f"{AT_BEAT}, unless started with `--count`",
    "poll-interval": AT_BEAT,
    "heartbeat": AT_BEAT,
    "lease": f"{AT_BEAT}; at least twice the heartbeat",
    "log-limit": f"what jobs print from then on; {AT_BEAT}; a run that was adopted keeps the limit it had",
    "output-limit": "the next `show`; in PostgreSQL, what runs print from the next heartbeat on",
    "retain-completed": f"{AT_RETENTION}; cancelled jobs follow it, too",
    "retain-dead": AT_RETENTION,
    "retain-audit": "running workers, within an hour",
    "webhook-success": AT_ENQUEUE,
    "webhook-failure": AT_ENQUEUE,
    "webhook-dead": AT_ENQUEUE,
    "webhook-secret": "calls made from then on, also those that are tried again",
    "webhook-allow-private": "calls made from then on, also those that are tried again",
}

# ── errors: what each code means ────────────────────────────────────────────────────────────────────────────────────

ERRORS = {
    "error": "Never by itself: the root of the tree.",
    "usage": "The words cannot be understood: an unknown option, something said twice, nothing to do.",
    "invalid-input": "A value of a wrong type, range or form; the message begins with the field, option or key.",
    "invalid-json": "Text that is not JSON, or holds what would surprise later (duplicate keys, NaN); says where.",
    "invalid-line": "One line of a batch is wrong, so none of the batch was added. With `--stream` only that line is left out.",
    "invalid-lines": "`enqueue --stream --json`: several lines were wrong and left out; the others were added.",
    "invalid-item": "One element of a JSON array is wrong, so none of the array was added.",
    "unknown-name": "A command, field, key, state or sort key that does not exist; the hint has the nearest one.",
    "needs-confirmation": "Something would be removed, or many jobs changed that were chosen and not named; `--yes` was not given, and there is no terminal to ask on.",
    "not-found": "There is no such thing, such as the run of a job that `logs --run` names.",
    "job-not-found": "No job has that id, or begins with it.",
    "schedule-not-found": "No schedule has that name.",
    "parent-not-found": "A job is to wait for one that is neither in the store nor in its own batch.",
    "worker-not-found": "No worker of the store has that name.",
    "conflict": "Never by itself: all that is refused as things are.",
    "ambiguous-id": "Several ids begin like that; the hint names up to five.",
    "duplicate-id": "There is a job of that id already, or a batch has it twice.",
    "alert-not-found": "No alert has that name.",
    "alert-exists": "`alert add`: there is an alert of that name.",
    "batch-not-found": "No batch has that name.",
    "batch-complete": "All jobs of the batch have ended and its `--on-complete` is queued: it takes no more.",
    "batch-differs": "The batch has another `--on-complete` already.",
    "idempotency-key-reused": "HTTP API: a request of the last 24 hours had the same `Idempotency-Key` and was another one. Nothing was added.",
    "key-taken": "Another job with that unique key waits or runs, and `--if-exists error`, `replace` of a running one, `retry` or `import` would make a second one.",
    "not-fired": "`cron run`: another job has the unique key of the schedule, so none was added.",
    "schedule-exists": "`cron add`: there is a schedule of that name. `--replace` takes its place.",
    "parent-ended": "A job is to wait for another that has ended in another way already, so that it would wait for ever.",
    "wrong-state": "The job is in a state in which that cannot be done to it.",
    "not-movable": "`queue move`: the job does not wait in the queue it is to be moved from.",
    "editor-failed": "`edit`: the editor could not be started, or ended with an error. Nothing was changed.",
    "stale-edit": "`edit`: somebody has changed the job since the editor was opened, or, over HTTP, since the `as_of` that was given. Nothing was changed, and the text of the editor is kept.",
    "not-confirmed": "Asked on a terminal, somebody did not say yes.",
    "worker-name-taken": "A worker of that name is running.",
    "workers-alive": "`reset`, `restore` and `copy` are refused while somebody may run a job.",
    "store-not-found": "There is no store at the address that `copy --from` names, nothing to `backup`, or no such file to `restore`; none is made there.",
    "file-in-use": "`restore` names the store itself, not a backup of it.",
    "store-not-empty": "`copy --to` names a store that has jobs, settings or history.",
    "same-store": "`copy --from` and `--to` are one and the same store, whatever the addresses are.",
    "jobs-running": "`copy`: jobs run at the source. With `--force` they wait again in the copy.",
    "copy-differs": "`copy` has counted both sides and they are not the same. Nothing was copied.",
    "file-exists": "`export` or `backup` names a file that is there: nothing is ever written over.",
    "rule-differs": "`import`: there is another schedule of that name, or other rules of that queue. Nothing was imported.",
    "job-differs": "`import`: there is another job under one of the ids. Nothing was imported.",
    "invalid-row": "`import`: one row of the SQLite file of another tool is wrong, so nothing was imported.",
    "unknown-layout": "`import`: the file is neither JSON nor SQLite of a layout that is known.",
    "refused": "Several ids, some of them impossible: what could be done was done.",
    "extra-missing": "`dashboard`, `top`: the packages that it needs are not installed; the hint says how to get them.",
    "cannot-listen": "`dashboard`: the port is taken, or the address is not one of this machine.",
    "unavailable": "A file that is needed cannot be read, such as the log of a job of another user.",
    "keeper-gone": "The process that keeps the jobs of a worker is gone, or could not be started. The worker goes too.",
    "call-refused": "A webhook was not called: its name stands for no address, or a job named it and it leads to a private one.",
    "call-unanswered": "A webhook was called, and nobody answered with 2xx. A redirect is not followed, and is no such answer.",
    "command-refused": "`alert test`, `alert check`: the policy of this host refuses the command of an alert. Nothing was run.",
    "command-failed": "`alert test`, `alert check`: the command of an alert did not end with 0 within a minute, or could not be begun.",
    "home-unusable": "The home is not a directory, or cannot be made or written.",
    "not-trusted": "Another user owns the data directory or the database, or can write to it.",
    "file-unreadable": "The file of `--file`, or of `import`, cannot be read.",
    "file-unwritable": "The file that `export` or `backup` names cannot be made or written.",
    "output-failed": "What there is to say cannot be written: the disk behind stdout is full. What was done is done; of `enqueue` the message names the ids.",
    "store-locked": "Another program held the store for longer than a command waits, 30 s.",
    "store-unreachable": "The server of the store does not answer, or stopped to in the middle. Of jobs that may or may not have been queued, the hint says how to find out. Workers try again by themselves, and `wait`, `run`, `logs --follow` and `status --watch` for 10 s.",
    "store-refused": "The server answers, and does not let us in (user, password, database) or lacks a right that is needed; the message says which.",
    "driver-missing": "A PostgreSQL address was given and its driver is not installed; the hint is the command that installs it.",
    "store-full": "No space is left for the store.",
    "store-read-only": "The store may not be written by this user, or on this file system.",
    "store-failed": "The database refused for another reason, in its own words.",
    "store-damaged": "The store's file is damaged. It is never replaced by an empty one.",
    "store-foreign": "The file is not a store of queuectl, and was left as it is.",
    "store-too-new": "A newer queuectl has changed the schema of this store. A worker that is at work then finishes what it runs and goes.",
    "store-gone": "The store was removed or replaced while it was in use.",
    "store-unsupported": "An address of a kind that this version cannot use.",
    "sqlite-too-old": "This Python comes with a SQLite older than 3.37.",
    "policy-unusable": "The policy that a worker is to obey is not there, or somebody but its user and root could change it. It does not start; one that runs keeps the policy it has.",
    "secret-not-found": "There is no such secret in this home, and no command that would tell it.",
    "secret-unusable": "Others could read a secret or say whom to ask for it, it cannot be a variable, or the command that tells it failed.",
    "zones-missing": "A schedule is in another zone than UTC, and this machine has no time zone database.",
    "system-unsupported": "Workers cannot run on this system: it lacks what tells processes apart.",
    "system-refused": "The system did not do what it does every day: no descriptor is left, the disk is full or may only be read. A worker says so and tries again.",
    "no-service-manager": "`service`: systemd or launchd is not there, or cannot be asked by this user.",
    "service-failed": "`service`: systemd or launchd was asked and refused; the message has its words.",
    "worker-failed": "A worker started with `--detach` did not come up; the message is its own.",
    "wait-timeout": "`wait --timeout`: the time is over, the jobs go on. In Python also a `TimeoutError`.",
    "interrupted": "`run --json` was left with Ctrl-C: the job goes on, and the message names it.",
    "internal": "A mistake of ours, or of the machine, that nobody foresaw. `QUEUECTL_DEBUG=1` shows where; please report it.",
}

# ── the life of a job ───────────────────────────────────────────────────────────────────────────────────────────────

STATES = {
    "blocked": "waits for other jobs",
    "pending": "may run as soon as its `run_at` has come",
    "processing": "a worker runs it now",
    "failed": "the last run failed, the next waits for its `run_at`",
    "completed": "exit code 0",
    "dead": "failed for good: the dead letter queue",
    "cancelled": "a person or a rule called it off",
}

COUNTS = """
    ## What is counted

    | field | counts | goes back to 0 |
    | --- | --- | --- |
    | `runs` | runs started, of any end | never |
    | `attempts` | failed runs: exit code not 0, killed by a signal, timeout, could not start | `retry` of a dead or cancelled job |
    | `crashes` | runs whose worker died | `retry` of a dead or cancelled job |

    - A failed run makes a job `dead` when `attempts` reaches `max_retries` (0 counts as 1; one more with
      [`first-attempt-is-free`](configuration.md#first-attempt-is-free)), else `failed` with `run_at` = now +
      `backoff_base ** attempts` seconds, at most `backoff-max`. See [retry policy](../how-to/retry-policy.md).
    - A cancel that is recorded before the end of a run wins, whatever the exit code, and charges nothing.
    - A job that the [policy](../how-to/policy.md) of its worker's host is against is `dead` at once: nothing is charged, and there was no run.
    - A worker that is told to end at once gives its jobs back: `pending`, nothing charged.
    - A worker that dies costs a crash and no attempt: `pending`, or `dead` when `crashes` reaches `max-crashes`.
    - `retry` makes a job due now. It keeps its place in the line, its runs and its history. Completed, pending,
      processing and blocked jobs cannot be retried; `dlq retry` takes dead ones only.

    ## Who is next

    Of the jobs that are due: higher priority first, then in the order of enqueue, also for delayed and retried
    ones. With [`ageing`](configuration.md#ageing), waiting counts too:
    [priorities and ageing](../how-to/priorities-and-ageing.md).
"""

# ── HTTP: refusals that no command knows ────────────────────────────────────────────────────────────────────────────

REFUSALS = {
    "not-http": (400, "What was sent is not HTTP/1.1."),
    "cut-off": (400, "The body ended early."),
    "no-token": (401, "No token, or one that is not, or no longer, right."),
    "read-only": (403, "The token may look and change nothing."),
    "foreign-origin": (403, "A page of another origin has asked."),
    "alert-commands-off": (
        403,
        "An alert with a command, and the server was not started with `--allow-alert-commands`.",
    ),
    "not-found": (404, "There is no such path. Of a thing that there is not, the code is that of the command line."),
    "method-not-allowed": (405, "The path has other methods: see `Allow`."),
    "too-slow": (408, "The body took more than 30 s."),
    "too-large": (413, "The body has more than 16 MiB."),
    "not-json": (415, "The body is not `application/json`."),
    "no-such-range": (416, "`Range` begins behind the end of the log: see `Content-Range`."),
    "foreign-host": (421, "Meant for another host: see `--allow-host`."),
    "head-too-large": (431, "More than 32 KiB of request line and headers."),
    "internal-error": (500, "A fault of ours; the log of the server says more."),
    "ending": (503, "The server ends."),
    "too-many-waiting": (503, "Too many wait or read a log: see `Retry-After`."),
    "too-many-listeners": (503, "More than 256 watch `/events`."),
}

# What the command line can do and the API does not, and why.
NOT_OVER_HTTP = {
    "backup": "it writes a file on the server; run it there, or by a schedule",
    "restore": "it takes the place of everything; whoever does that should be at the machine",
    "reset": "as restore",
    "copy": "it needs the addresses and passwords of two stores",
    "import": "it reads files of the server; send jobs to `/jobs/many` instead",
    "run": "it is `POST /jobs` and then `/jobs/{id}/logs?follow=true`",
    "worker start": "the server starts no workers",
    "alert check": "the server looks at them by itself",
    "service install": "it belongs to the machine that it is done on",
    "service status": "as service install",
    "service uninstall": "as service install",
    "policy check": "a policy is of the host that runs the job, and the server may be another",
    "policy show": "as policy check",
    "secret list": "secrets are of the host that runs the job, and nobody else's business",
    "secret set": "as secret list",
    "secret remove": "as secret list",
    "secret check": "as secret list",
    "dashboard": "it is this",
    "top": "it is for a terminal",
    "demo": "it is for a terminal",
    "completion": "it is for a shell",
    "help": "`/api/v1/docs` is the same for it",
}
