"""Every command, with where it lives and what it does; nothing here is loaded before it is called."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, group

_HERE = "queuectl.cli.commands"
_WORK, _LOOK, _STEER, _HOUSE = "Put work in", "Look", "Steer", "Keep house"

COMMANDS: Final = {
    "enqueue": Entry(f"{_HERE}.enqueue", "enqueue", "Add jobs: a command, JSON, or a file of many.", _WORK),
    "run": Entry(f"{_HERE}.run", "run", "Add a job, follow its output, exit as it does.", _WORK),
    "clone": Entry(f"{_HERE}.clone", "clone", "Add a job with the same fields as another one.", _WORK),
    "status": Entry(f"{_HERE}.status", "status", "How many jobs are in each state, and who works.", _LOOK),
    "list": Entry(f"{_HERE}.list", "list_jobs", "The jobs, newest first.", _LOOK),
    "show": Entry(f"{_HERE}.show", "show", "Everything about one job.", _LOOK),
    "explain": Entry(f"{_HERE}.explain", "explain", "Why a job is not running.", _LOOK),
    "graph": Entry(f"{_HERE}.graph", "graph", "What a job waits for, and what waits for it.", _LOOK),
    "logs": Entry(f"{_HERE}.logs", "logs", "What jobs printed.", _LOOK),
    "audit": Entry(f"{_HERE}.audit", "audit", "Who changed what.", _LOOK),
    "metrics": Entry(f"{_HERE}.metrics", "metrics", "Success, durations, waiting times, throughput.", _LOOK),
    "batch": Entry(f"{_HERE}.batch", "batch", "Jobs under one name, and how far they are.", _LOOK),
    "dashboard": Entry(f"{_HERE}.dashboard", "dashboard", "A web page to look and act, and the HTTP API.", _LOOK),
    "top": Entry(f"{_HERE}.top", "top", "All of it live in the terminal, with actions on keys.", _LOOK),
    "worker": Entry(f"{_HERE}.worker", "worker", "Start, stop and list the processes that run jobs.", _STEER),
    "service": Entry(f"{_HERE}.service", "service", "A worker that is always there: systemd, launchd.", _STEER),
    "queue": Entry(f"{_HERE}.queue", "queue", "Pause and limit queues, and what their jobs get.", _STEER),
    "wait": Entry(f"{_HERE}.wait", "wait", "Wait until jobs have ended.", _STEER),
    "cancel": Entry(f"{_HERE}.cancel", "cancel", "Call off jobs; running ones are ended.", _STEER),
    "retry": Entry(f"{_HERE}.retry", "retry", "Give failed, dead or cancelled jobs another chance.", _STEER),
    "edit": Entry(f"{_HERE}.edit", "edit", "Change jobs that wait, in your editor or by options.", _STEER),
    "priority": Entry(f"{_HERE}.hold", "priority", "Let jobs go sooner or later.", _STEER),
    "hold": Entry(f"{_HERE}.hold", "hold", "Keep jobs from being run until they are released.", _STEER),
    "release": Entry(f"{_HERE}.hold", "release", "Let go jobs that are held.", _STEER),
    "run-now": Entry(f"{_HERE}.hold", "run_now", "Make delayed and failed jobs due now.", _STEER),
    "cron": Entry(f"{_HERE}.cron", "cron", "Add jobs by the clock: every night, every 90 seconds.", _STEER),
    "alert": Entry(f"{_HERE}.alert", "alert", "Be told when jobs die, wait too long, or nobody works.", _STEER),
    "dlq": Entry(f"{_HERE}.dlq", "dlq", "The dead letter queue: jobs that failed for good.", _STEER),
    "doctor": Entry(f"{_HERE}.doctor", "doctor", "What is wrong here, and what to do about it.", _HOUSE),
    "policy": Entry(f"{_HERE}.policy", "policy", "What may run on this host, and by which rule.", _HOUSE),
    "secret": Entry(f"{_HERE}.secret", "secret", "What jobs of this host may be given, and nobody sees.", _HOUSE),
    "config": Entry(f"{_HERE}.config", "config", "Look at and change the settings.", _HOUSE),
    "prune": Entry(f"{_HERE}.prune", "prune", "Remove ended jobs with history and logs, by age.", _HOUSE),
    "backup": Entry(f"{_HERE}.backup", "backup", "A copy of the store in a file, while workers run.", _HOUSE),
    "restore": Entry(f"{_HERE}.backup", "restore", "Put a backup in the place of the store.", _HOUSE),
    "copy": Entry(f"{_HERE}.copy", "copy", "Copy a whole store into another one.", _HOUSE),
    "export": Entry(f"{_HERE}.export", "export", "Write jobs as JSON, with or without history.", _HOUSE),
    "import": Entry(f"{_HERE}.importing", "import_jobs", "Take in what export wrote, or another tool.", _HOUSE),
    "reset": Entry(f"{_HERE}.reset", "reset", "Remove all jobs, keep the settings and a backup.", _HOUSE),
    "demo": Entry(f"{_HERE}.demo", "demo", "See the whole life of some jobs, in 20 seconds.", _HOUSE),
    "deliver": Entry(f"{_HERE}.deliver", "deliver", "Call a webhook, as a job.", _HOUSE, hidden=True),
    "help": Entry(f"{_HERE}.help", "help_topic", "Read about a topic, or a command.", _HOUSE),
    "completion": Entry(f"{_HERE}.completion", "completion", "Completion for your shell.", _HOUSE),
}


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.obj, App) and not ctx.resilient_parsing:
        from queuectl import __version__

        ctx.obj.print(f"queuectl {__version__}")
        ctx.exit()


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
            callback=_version,
            help="Show the version.",
        )
    ],
)
