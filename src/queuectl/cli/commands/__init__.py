"""The table of commands. A command's module is imported when the command is called."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.command import Entry, group, print_version

_START: Final = "Start here"
_JOBS: Final = "Jobs"
_QUEUES: Final = "Queues, batches and schedules"
_MONITOR: Final = "Monitor"
_ADMIN: Final = "Administer"
_UNLISTED: Final = ""

# For the group `db`; also at the top level, hidden.
DATABASE_COMMANDS: Final = {
    "backup": Entry("transfer", "backup", "Copy the database into a file, while workers run."),
    "restore": Entry("transfer", "restore", "Replace the database with a backup."),
    "copy": Entry("transfer", "copy", "Copy a whole database into another one."),
    "export": Entry("transfer", "export", "Write jobs as JSON, with or without history."),
    "import": Entry("transfer", "import_jobs", "Import jobs of export, or of another tool."),
    "prune": Entry("admin", "prune", "Remove finished jobs with history and logs, by age."),
    "reset": Entry("admin", "reset", "Remove all jobs; keep settings and a backup.", alias="clear"),
}
COMMANDS: Final = {
    "demo": Entry("demo", "demo", "Watch a guided demo in 20 seconds.", _START),
    "enqueue": Entry("enqueue", "enqueue", "Add jobs.", _START, alias="add"),
    "run": Entry("wait", "run", "Add a job, follow its output, exit with its exit code.", _START),
    "worker": Entry("worker", "worker", "Start, stop, restart and list workers.", _START),
    "status": Entry("inspect", "status", "Show job counts, queues and workers.", _START),
    "top": Entry("dashboard", "top", "Open the interactive terminal dashboard.", _START),
    "dashboard": Entry("dashboard", "dashboard", "Serve the web dashboard and the HTTP API.", _START),
    "list": Entry("list", "list_jobs", "List jobs.", _JOBS, alias="ls"),
    "show": Entry("inspect", "show", "Show a job and its runs.", _JOBS),
    "logs": Entry("logs", "logs", "Print or follow the output of jobs.", _JOBS, alias="log"),
    "wait": Entry("wait", "wait", "Wait for jobs to finish.", _JOBS),
    "cancel": Entry("control", "cancel", "Cancel waiting or running jobs.", _JOBS, alias="kill"),
    "retry": Entry("control", "retry", "Retry failed, dead or cancelled jobs.", _JOBS),
    "edit": Entry("control", "edit", "Change waiting jobs: command, queue, priority, time.", _JOBS),
    "hold": Entry("control", "hold", "Hold waiting jobs until you release them.", _JOBS),
    "release": Entry("control", "release", "Release held jobs.", _UNLISTED),
    "priority": Entry("control", "priority", "Change the priority of waiting jobs.", _UNLISTED),
    "run-now": Entry("control", "run_now", "Make delayed and failed jobs due now.", _UNLISTED),
    "clone": Entry("enqueue", "clone", "Add a copy of a job.", _JOBS),
    "explain": Entry("inspect", "explain", "Explain why a job is not running.", _JOBS),
    "graph": Entry("inspect", "graph", "Draw the dependencies of a job.", _JOBS),
    "dlq": Entry("control", "dlq", "List, retry and purge dead jobs.", _JOBS),
    "queue": Entry("queue", "queue", "Pause, limit and configure queues.", _QUEUES),
    "batch": Entry("wait", "batch", "Show the progress of batches.", _QUEUES),
    "cron": Entry("cron", "cron", "Run jobs on a schedule.", _QUEUES, alias="schedule"),
    "metrics": Entry("inspect", "metrics", "Show success rate, latency and throughput.", _MONITOR),
    "alert": Entry("alert", "alert", "Alert on dead jobs, long waits, or missing workers.", _MONITOR),
    "audit": Entry("admin", "audit", "Show the audit log.", _MONITOR),
    "doctor": Entry("admin", "doctor", "Check the installation and fix common problems.", _MONITOR),
    "config": Entry("admin", "config", "Show and change settings.", _ADMIN),
    "service": Entry("service", "service", "Run a worker under systemd or launchd.", _ADMIN),
    "secret": Entry("secret", "secret", "Manage secrets for jobs on this host.", _ADMIN),
    "policy": Entry("policy", "policy", "Restrict what jobs may run on this host.", _ADMIN),
    "db": Entry("transfer", "db", "Back up, restore, copy, export, import, prune, reset.", _ADMIN),
    **{name: entry._replace(section=_UNLISTED, hidden=True) for name, entry in DATABASE_COMMANDS.items()},
    "deliver": Entry("deliver", "deliver", "Deliver a webhook, as a job.", _UNLISTED, hidden=True),
    "help": Entry("help", "help_topic", "Print the help of a command or a topic.", _UNLISTED),
    "completion": Entry("help", "completion", "Print the completion script for a shell.", _UNLISTED),
}


root = group(
    "queuectl",
    "Run shell commands in the background, with retries, schedules and logs.\n\n"
    "No server needed: jobs are stored in a SQLite file, or in PostgreSQL.",
    COMMANDS,
    examples="""
        queuectl enqueue 'make report'
        queuectl worker start --detach
        queuectl run --timeout 10m 'make test'
        queuectl logs -f last
    """,
    params=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=print_version,
            help="Show the version.",
        )
    ],
)
