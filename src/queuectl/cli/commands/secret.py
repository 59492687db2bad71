"""queuectl secret: what jobs of this host may be given, and nobody else."""

from __future__ import annotations

import os
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_secrets
from queuectl.cli.printable import printable
from queuectl.cli.result import Column, Done, Result, Sheet, Table
from queuectl.errors import SecretUnusable, UsageError
from queuectl.gate import open_gate
from queuectl.job.secrets import LARGEST, entry
from queuectl.secrets import files
from queuectl.secrets.known import KnownSecrets

_HERE: Final = "queuectl.cli.commands.secret"

secret = group(
    "secret",
    "Secrets of this host: a job names one (enqueue --secret), and its worker alone finds out what it is.",
    {
        "list": Entry(_HERE, "secret_list", "The names of those in this home."),
        "set": Entry(_HERE, "secret_set", "Keep one, from stdin or typed unseen."),
        "remove": Entry(_HERE, "secret_remove", "Remove one."),
        "check": Entry(_HERE, "secret_check", "Whether a worker of this home could have one."),
    },
    examples="""
        pass show db | queuectl secret set db-password
        queuectl enqueue 'psql -f report.sql' --secret PGPASSWORD=db-password
        queuectl secret check db-password
    """,
)

_name = click.argument("name", metavar="NAME", shell_complete=complete_secrets)


@command("list", examples="queuectl secret list")
def secret_list(app: App) -> Result:
    """The names of the secrets in this home, and whether jobs can have them. What they are is never shown."""
    problems = {name: error.message for name, error in files.unusable(app.home, user=os.geteuid())}
    columns: list[Column[str]] = [
        Column("NAME", lambda name: name),
        Column("USABLE", lambda name: "no" if name in problems else "yes"),
        Column("WHY NOT", lambda name: printable(problems.get(name, "")), flexible=True, optional=True),
    ]
    return Table(
        files.names(app.home),
        columns,
        to_json=lambda name: {"name": name, "usable": name not in problems, "problem": problems.get(name)},
        to_id=str,
        empty="no secrets",
    )


@command(
    "set",
    examples="""
        # typed, and not shown
        queuectl secret set db-password
        openssl rand -hex 32 | queuectl secret set api-token
    """,
)
@_name
def secret_set(app: App, name: str) -> Result:
    """Keep a secret in a file that only you can read. Jobs have it from their next run on.

    What it is comes from stdin, or is asked for on a terminal and not shown while it is typed: never from a word of the command, which
    others could see in the list of processes. One newline at its end does not count.
    """
    entry(name, "NAME")
    value = _typed(app, name) if app.stdin.isatty() else app.stdin_bytes.read(LARGEST + 2)
    value = files.checked(name, value)
    if not value:
        raise SecretUnusable(name, "it is empty", hint="write it to stdin, or type it")
    files.write(app.home, name, value)
    return Done([name], verb="set")


@command("remove", examples="queuectl secret remove db-password")
@_name
def secret_remove(app: App, name: str) -> Result:
    """Remove a secret from this home. Jobs that ask for it cannot start any more, unless a command tells it."""
    files.remove(app.home, entry(name, "NAME"))
    return Done([name], verb="removed")


@command("check", examples="queuectl secret check db-password")
@_name
def secret_check(app: App, name: str) -> Result:
    """Whether a worker of this home and user could have a secret: from its file, or from the command of secrets.toml. Exit 1 if not.

    It is not shown.
    """
    gate = open_gate(app.home, None, app.environ)
    known = KnownSecrets(app.home, user=os.geteuid(), gate=gate, clock=app.clock)
    value = known.find(entry(name, "NAME"))
    source = "file" if name in files.names(app.home) else "command"
    told = {"name": name, "source": source, "bytes": len(value)}
    return Sheet(told, people=lambda: [f"{printable(name)}: {len(value):,} bytes, from a {source}"], id=name)


def _typed(app: App, name: str) -> bytes:
    if app.flags.json:
        raise UsageError("there is nobody to ask", hint=f"write it to stdin: … | queuectl secret set {name}")
    import getpass

    try:
        first = getpass.getpass(f"{name}: ", stream=app.stderr)
        second = getpass.getpass("again: ", stream=app.stderr)
    except EOFError as error:
        raise UsageError("nothing was typed", hint=f"write it to stdin: … | queuectl secret set {name}") from error
    if first != second:
        raise UsageError("the two are not alike", hint="type the same again")
    return first.encode("utf-8", "surrogateescape")
