"""The table of commands. A command's module is imported when the command is called."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.command import Entry, group, print_version

_ADD, _INSPECT, _CONTROL, _ADMIN = "Add jobs", "Inspect", "Control", "Administration"

COMMANDS: Final = {
    "enqueue": Entry("enqueue", "enqueue", "Add jobs: a command, JSON, or a file of many.", _ADD),
    "run": Entry("run", "run", "Add a job, follow its output, exit with its code.", _ADD),
    "clone": Entry("enqueue", "clone", "Add a job with the same fields as another one.", _ADD),
    "status": Entry("inspect", "status", "Show the number of jobs by state, and the workers.", _INSPECT),
    "list": Entry("inspect", "list_jobs", "List jobs, newest first.", _INSPECT),
    "show": Entry("inspect", "show", "Show a job with its history and output.", _INSPECT),
    "explain": Entry("inspect", "explain", "Explain why a job is not running.", _INSPECT),
    "graph": Entry("inspect", "graph", "Draw the dependencies of a job.", _INSPECT),
    "logs": Entry("logs", "logs", "Print the output of jobs.", _INSPECT),
    "audit": Entry("admin", "audit", "List changes and their actors.", _INSPECT),
    "metrics": Entry("inspect", "metrics", "Show success rate, durations, waiting times, throughput.", _INSPECT),
    "batch": Entry("wait", "batch", "Show batches and their progress.", _INSPECT),
    "dashboard": Entry("dashboard", "dashboard", "Serve the web dashboard and the HTTP API.", _INSPECT),
    "top": Entry("dashboard", "top", "Show a live view in the terminal, with actions on keys.", _INSPECT),
    "worker": Entry("worker", "worker", "Start, stop and list workers.", _CONTROL),
    "service": Entry("service", "service", "Run a worker under systemd or launchd.", _CONTROL),
    "queue": Entry("queue", "queue", "Pause and limit queues, set defaults for their jobs.", _CONTROL),
    "wait": Entry("wait", "wait", "Wait until jobs have ended.", _CONTROL),
    "cancel": Entry("control", "cancel", "Cancel jobs; running ones are stopped.", _CONTROL),
    "retry": Entry("control", "retry", "Retry failed, dead or cancelled jobs.", _CONTROL),
    "edit": Entry("edit", "edit", "Change waiting jobs, in your editor or by options.", _CONTROL),
    "priority": Entry("control", "priority", "Change the priority of waiting jobs.", _CONTROL),
    "hold": Entry("control", "hold", "Hold waiting jobs until they are released.", _CONTROL),
    "release": Entry("control", "release", "Release held jobs.", _CONTROL),
    "run-now": Entry("control", "run_now", "Make delayed and failed jobs due now.", _CONTROL),
    "cron": Entry("cron", "cron", "Schedule jobs: every night, every 90 seconds.", _CONTROL),
    "alert": Entry("alert", "alert", "Alert on dead jobs, long waits, or no live workers.", _CONTROL),
    "dlq": Entry("dlq", "dlq", "List, retry and purge dead jobs (dead letter queue).", _CONTROL),
    "doctor": Entry("admin", "doctor", "Find problems of this installation, and fix some.", _ADMIN),
    "policy": Entry("policy", "policy", "Check and show the rules for commands on this host.", _ADMIN),
    "secret": Entry("secret", "secret", "Manage secrets for jobs of this host.", _ADMIN),
    "config": Entry("admin", "config", "Show and change settings.", _ADMIN),
    "prune": Entry("admin", "prune", "Remove ended jobs with history and logs, by age.", _ADMIN),
    "backup": Entry("transfer", "backup", "Copy the database into a file, while workers run.", _ADMIN),
    "restore": Entry("transfer", "restore", "Replace the database by a backup.", _ADMIN),
    "copy": Entry("transfer", "copy", "Copy a whole database into another one.", _ADMIN),
    "export": Entry("transfer", "export", "Write jobs as JSON, with or without history.", _ADMIN),
    "import": Entry("transfer", "import_jobs", "Import jobs of export, or of another tool.", _ADMIN),
    "reset": Entry("admin", "reset", "Remove all jobs, keep the settings and a backup.", _ADMIN),
    "demo": Entry("demo", "demo", "Run a demonstration of 20 seconds.", _ADMIN),
    "deliver": Entry("deliver", "deliver", "Deliver a webhook, as a job.", _ADMIN, hidden=True),
    "help": Entry("help", "help_topic", "Read about a topic or a command.", _ADMIN),
    "completion": Entry("help", "completion", "Print the completion script for a shell.", _ADMIN),
}


root = group(
    "queuectl",
    "A durable background job queue for shell commands: one file and no server, or PostgreSQL for many machines.",
    COMMANDS,
    examples="""
        queuectl enqueue 'echo hello'
        queuectl worker start --count 4
        queuectl status
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
