"""Errors as the user sees them: two lines or one JSON object, the exit status, and the question before data is removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.tables import paint
from queuectl.errors import (
    WANTS,
    Conflict,
    NeedsConfirmation,
    QueuectlError,
    Refusals,
    SystemRefused,
    UsageError,
    WaitTimeout,
)
from queuectl.text import escape_control, escape_json


class InternalError(QueuectlError):
    """An unexpected exception: a bug, or a fault of the machine."""

    code = "internal"


class InvalidLines(UsageError):
    """`count` lines of a stream were refused and skipped; the others were added."""

    code = "invalid-lines"

    def __init__(self, first: Sequence[QueuectlError], count: int) -> None:
        listed = "; ".join(error.message for error in first)
        more = f"; and {count - len(first)} more" if count > len(first) else ""
        super().__init__(f"{count} lines refused: {listed}{more}", hint="the other lines were added; give these again")


class Interrupted(QueuectlError):
    """The user stopped waiting for a job, which keeps running."""

    code = "interrupted"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"{job_id} keeps running", hint=f"to follow it: queuectl logs -f {job_id}")


def report(app: App, error: QueuectlError, *, as_json: bool | None = None) -> None:
    """Print `error` on stderr; `as_json` overrides the flag if the arguments could not be parsed."""
    if app.flags.json if as_json is None else as_json:
        import json  # on use: most commands end without an error

        body = {"code": error.code, "message": error.message, "hint": error.hint}
        text = escape_json(json.dumps({"error": body}, ensure_ascii=False)) + "\n"
    else:
        color = app.color_on(app.stderr)
        text = (
            f"{paint('error:', 'bold red', color=color)} {escape_control(error.message)}\n"
            f"{paint('hint:', 'cyan', color=color)} {escape_control(error.hint)}\n"
        )
    try:
        app.stdout.flush()
    except OSError:
        pass  # reported where the result is printed; here it must not hide the error itself
    try:
        app.stderr.write(text)
        app.stderr.flush()
    except (OSError, ValueError):
        pass  # stderr is closed; the exit status remains


def report_refusals(app: App, refused: Sequence[tuple[str, QueuectlError]], *, of: int) -> None:
    """Print one line for each refused id, `of` being the number of all ids. A single id, and --json, give one error."""
    if of == 1 or (app.flags.json and len(refused) == 1):
        for _, error in refused:
            report(app, error)
    elif app.flags.json and refused:
        report(app, Refusals(refused))
    else:
        mark = paint("error:", "bold red", color=app.color_on(app.stderr))
        for _, error in refused:
            app.warn(f"{mark} {escape_control(error.message)}")


def from_click(error: click.ClickException) -> QueuectlError:
    """Translate an error of click."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "queuectl"
    message = (error.message or error.format_message()).strip()
    hint = f"{path} --help lists the options"
    if isinstance(error, click.NoSuchOption):
        message = f"no such option {error.option_name!r}"
        hint = meant_option(error) or hint
    elif isinstance(error, click.MissingParameter):
        message = " ".join(error.format_message().split())  # click prints each value of a choice on its own line
        if ctx is not None:
            hint = " ".join(ctx.get_usage().replace("Usage:", "usage:").split())
    elif isinstance(error, click.BadParameter):
        message = error.format_message()
    elif isinstance(error, click.BadOptionUsage) and (metavar := _value_of(error)):
        hint = f"give it a value: {error.option_name} {metavar}"
    message = message.rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint=hint)


def meant_option(error: click.NoSuchOption) -> str | None:
    """A hint about the option that the user meant; None if none is similar."""
    if error.ctx is None:
        return None
    from queuectl.cli.suggest import option_hint

    known = [
        name
        for param in error.ctx.command.params
        if not (isinstance(param, click.Option) and param.hidden)
        for name in param.opts
        if name.startswith("--")
    ]
    return option_hint(error.option_name, error.ctx.command_path, known)


def _value_of(error: click.BadOptionUsage) -> str | None:
    """The metavar of the option; None if it takes no value."""
    params = error.ctx.command.params if error.ctx is not None else []
    option = next((param for param in params if error.option_name in param.opts), None)
    if not isinstance(option, click.Option) or option.is_flag:
        return None
    return option.metavar or "VALUE"


def from_unexpected(error: BaseException) -> QueuectlError:
    if isinstance(error, OSError) and error.errno in WANTS:
        return SystemRefused(error)
    text = str(error).strip()
    kind = type(error).__name__
    return InternalError(
        f"unexpected {kind}: {text}" if text else f"unexpected {kind}",
        hint="this should not happen: QUEUECTL_DEBUG=1 shows where; please report it",
    )


DONE = 0
REFUSED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports a program that the signal killed


def exit_status(error: QueuectlError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, WaitTimeout):
        return TIMED_OUT
    if isinstance(error, Interrupted):
        return INTERRUPTED
    return REFUSED


yes_option: Final = click.option("--yes", "-y", is_flag=True, help="Skip the confirmation.")


class NotConfirmed(Conflict):
    code = "not-confirmed"


def confirm(app: App, question: str, *, yes: bool) -> None:
    """Return if `yes` was given or the user agrees on the terminal; raise otherwise."""
    if yes:
        return
    if app.flags.json or not (app.stdin.isatty() and app.stderr_is_terminal):
        raise NeedsConfirmation(
            f"{question} Confirmation needs a terminal", hint="add --yes to confirm without a question"
        )
    app.stdout.flush()
    app.stderr.write(f"{question} [y/N] ")
    app.stderr.flush()
    if app.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed("not done", hint="answer y, or add --yes")
