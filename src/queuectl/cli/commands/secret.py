"""queuectl secret: secrets for jobs of this host."""

from __future__ import annotations

import os

import click

from queuectl.cli.app import App
from queuectl.cli.command import group
from queuectl.cli.completion import complete_secrets
from queuectl.cli.render import Details, Done, Result, Table
from queuectl.cli.tables import Column
from queuectl.errors import SecretUnusable, UsageError
from queuectl.policy.gate import open_gate
from queuectl.secrets import files
from queuectl.secrets.resolver import resolve_secret
from queuectl.secrets.rules import MAX_TOTAL_BYTES, parse_entry
from queuectl.text import escape_control

secret = group(
    "secret",
    "Manage secrets of this host. A job names a secret (enqueue --secret), and its worker reads the value.",
    examples="""
        pass show db | queuectl secret set db-password
        queuectl enqueue 'psql -f report.sql' --secret PGPASSWORD=db-password
        queuectl secret check db-password
    """,
)

_name = click.argument("name", metavar="NAME", shell_complete=complete_secrets)


@secret.subcommand("list", "List the names of secrets.", examples="queuectl secret list")
def secret_list(app: App) -> Result:
    """List the names of secrets in this data directory, and whether jobs can use them. Values are never shown."""
    problems = {name: error.message for name, error in files.unusable(app.home, user=os.geteuid())}
    columns: list[Column[str]] = [
        Column("NAME", lambda name: name),
        Column("USABLE", lambda name: "no" if name in problems else "yes"),
        Column("WHY NOT", lambda name: escape_control(problems.get(name, "")), flexible=True, optional=True),
    ]
    return Table(
        files.names(app.home),
        columns,
        to_json=lambda name: {"name": name, "usable": name not in problems, "problem": problems.get(name)},
        to_id=str,
        empty="No secrets.",
    )


@secret.subcommand("set", "Store a secret, from stdin or a prompt.")
@_name
def secret_set(app: App, name: str) -> Result:
    """Store a secret in a file that only you can read. The next run of each job uses the new value.

    The value comes from stdin or from a prompt without echo. It cannot be an argument, because other users can read
    arguments in the list of processes. One newline at the end of the value is removed.

    Examples:
        # from a prompt without echo
        queuectl secret set db-password
        openssl rand -hex 32 | queuectl secret set api-token
    """
    parse_entry(name, "NAME")
    value = _typed(app, name) if app.stdin.isatty() else app.stdin_bytes.read(MAX_TOTAL_BYTES + 2)
    value = files.check_value(name, value)
    if not value:
        raise SecretUnusable(name, "it is empty", hint="pipe it to stdin, or enter it at the prompt")
    files.write(app.home, name, value)
    return Done([name], verb="set")


@secret.subcommand("remove", "Remove a secret.", examples="queuectl secret remove db-password")
@_name
def secret_remove(app: App, name: str) -> Result:
    """Remove a secret from this data directory. Jobs that use it fail, unless the provider command has the secret."""
    files.remove(app.home, parse_entry(name, "NAME"))
    return Done([name], verb="removed")


@secret.subcommand("check", "Check that a worker can read a secret.", examples="queuectl secret check db-password")
@_name
def secret_check(app: App, name: str) -> Result:
    """Check that a worker of this data directory and user can read a secret. The value is not shown.

    The worker reads the file of the secret, or runs the provider command of secrets.toml. If the secret cannot be read,
    the exit status is 1.
    """
    gate = open_gate(app.home, None, app.environ)
    value = resolve_secret(app.home, parse_entry(name, "NAME"), user=os.geteuid(), gate=gate, clock=app.clock)
    source = "file" if name in files.names(app.home) else "command"
    fields = {"name": name, "source": source, "bytes": len(value)}
    return Details(fields, text=lambda: [f"{escape_control(name)}: {len(value):,} bytes, from a {source}"], id=name)


def _typed(app: App, name: str) -> bytes:
    if app.flags.json:
        raise UsageError(
            "the prompt needs a terminal and no --json", hint=f"write it to stdin: … | queuectl secret set {name}"
        )
    import getpass

    try:
        first = getpass.getpass(f"{name}: ", stream=app.stderr)
        second = getpass.getpass("again: ", stream=app.stderr)
    except EOFError as error:
        raise UsageError("no value was entered", hint=f"write it to stdin: … | queuectl secret set {name}") from error
    if first != second:
        raise UsageError("the two values differ", hint="enter the same value twice")
    return first.encode("utf-8", "surrogateescape")
