"""Errors as people and programs see them: two lines, or one JSON object."""

from __future__ import annotations

from collections.abc import Sequence

import click

from queuectl.cli.app import App
from queuectl.cli.printable import printable, printable_json
from queuectl.cli.style import paint
from queuectl.errors import WANTS, QueuectlError, Refusals, SystemRefused, UsageError


class InternalError(QueuectlError):
    """A mistake of ours, or of the machine, that nobody foresaw."""

    code = "internal"


class InvalidLines(UsageError):
    """Several lines of a stream were refused, `count` in all: they were left out, and the others added."""

    code = "invalid-lines"

    def __init__(self, first: Sequence[QueuectlError], count: int) -> None:
        told = "; ".join(error.message for error in first)
        more = f"; and {count - len(first)} more" if count > len(first) else ""
        super().__init__(f"{count} lines refused: {told}{more}", hint="the other lines were added; give these again")


class Interrupted(QueuectlError):
    """Somebody stopped waiting for a job, which knows nothing of it."""

    code = "interrupted"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"{job_id} goes on", hint=f"to follow it again: queuectl logs -f {job_id}")


def report(app: App, error: QueuectlError, *, as_json: bool | None = None) -> None:
    """Print `error` on stderr; `as_json` overrides the flag when the words could not be read."""
    if app.flags.json if as_json is None else as_json:
        import json  # here, since most commands end without an error

        body = {"code": error.code, "message": error.message, "hint": error.hint}
        text = printable_json(json.dumps({"error": body}, ensure_ascii=False)) + "\n"
    else:
        colour = app.colour_on(app.stderr)
        text = (
            f"{paint('error:', 'bold red', colour=colour)} {printable(error.message)}\n"
            f"{paint('hint:', 'cyan', colour=colour)} {printable(error.hint)}\n"
        )
    try:
        app.stdout.flush()
    except OSError:
        pass  # said by whoever prints the result; here it must not hide the error itself
    try:
        app.stderr.write(text)
        app.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody is left to read it; the exit status still tells


def report_refusals(app: App, refused: Sequence[tuple[str, QueuectlError]], *, of: int) -> None:
    """What was refused `of` so many ids: one line each. Of a single id, and with --json, it is an error like any other."""
    if of == 1 or (app.flags.json and len(refused) == 1):
        for _, error in refused:
            report(app, error)
    elif app.flags.json and refused:
        report(app, Refusals(refused))
    else:
        mark = paint("error:", "bold red", colour=app.colour_on(app.stderr))
        for _, error in refused:
            app.warn(f"{mark} {printable(error.message)}")


def from_click(error: click.ClickException) -> QueuectlError:
    """click's way to say it, in ours."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "queuectl"
    message = (error.message or error.format_message()).strip()
    hint = f"{path} --help shows what is possible"
    if isinstance(error, click.NoSuchOption):
        message = f"no such option {error.option_name!r}"
        if error.possibilities:
            hint = f"did you mean {' or '.join(error.possibilities)}?"
    elif isinstance(error, click.MissingParameter):
        message = " ".join(error.format_message().split())  # of a choice, click gives each on a line of its own
        if ctx is not None:
            hint = " ".join(ctx.get_usage().replace("Usage:", "usage:").split())
    elif isinstance(error, click.BadParameter):
        message = error.format_message()
    elif isinstance(error, click.BadOptionUsage) and (metavar := _value_of(error)):
        hint = f"give it a value: {error.option_name} {metavar}"
    message = message.rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint=hint)


def _value_of(error: click.BadOptionUsage) -> str | None:
    """What stands for the value of the option, None if it takes none."""
    params = error.ctx.command.params if error.ctx is not None else []
    option = next((param for param in params if error.option_name in param.opts), None)
    if not isinstance(option, click.Option) or option.is_flag:
        return None
    return option.metavar or "VALUE"


def from_unexpected(error: BaseException) -> QueuectlError:
    if isinstance(error, OSError) and error.errno in WANTS:
        return SystemRefused(error)
    words = str(error).strip()
    kind = type(error).__name__
    return InternalError(
        f"unexpected {kind}: {words}" if words else f"unexpected {kind}",
        hint="this should not happen: QUEUECTL_DEBUG=1 shows where; please report it",
    )
