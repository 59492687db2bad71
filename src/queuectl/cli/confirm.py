"""Asking before something is gone for good."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.app import App
from queuectl.errors import Conflict, NeedsConfirmation

yes_option: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


class NotConfirmed(Conflict):
    code = "not-confirmed"


def confirm(app: App, question: str, *, yes: bool) -> None:
    """Return if `yes` was given or a person on a terminal agrees; raise else."""
    if yes:
        return
    if app.flags.json or not (app.stdin.isatty() and app.stderr_is_terminal):
        raise NeedsConfirmation(f"{question} There is nobody to ask", hint="add --yes to do it without being asked")
    app.stdout.flush()
    app.stderr.write(f"{question} [y/N] ")
    app.stderr.flush()
    if app.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed("not done", hint="answer y, or add --yes")
