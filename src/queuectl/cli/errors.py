"""Errors as the user sees them: two lines or one JSON object, what the user may have meant, and the exit status; and the
question before data is removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import click

from queuectl.cli.app import App, paint
from queuectl.errors import (
    WANTS,
    Conflict,
    NeedsConfirmation,
    QueuectlError,
    Refusals,
    SystemRefused,
    UnknownName,
    UsageError,
    WaitTimeout,
)
from queuectl.text import escape_control, escape_json, truncate


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
    app.write_stderr(f"{question} [y/N] ")
    if app.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed("not confirmed", hint="answer y, or add --yes")


# ── suggestions for unknown commands and options ────────────────────────────────────────────────────────────────────

COMMAND_CUTOFF: Final = 0.7
OPTION_CUTOFF: Final = 0.75
# Group -> what to run here -> names of it in other tools.
_COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "queuectl": {
        "queuectl cancel ID": "abort",
        "queuectl logs -f ID": "attach follow tail",
        "queuectl logs ID": "cat output",
        "queuectl enqueue COMMAND": "create new push send submit",
        "queuectl worker start": "daemon start work",
        "queuectl db prune ID, or: queuectl dlq purge ID": "delete remove rm",
        "queuectl show ID": "describe info inspect",
        "queuectl run COMMAND": "exec",
        "queuectl show ID, or: queuectl audit": "history",
        "queuectl enqueue COMMAND, which creates the database": "init",
        "queuectl list": "job jobs",
        "queuectl top": "monitor tui",
        "queuectl queue pause QUEUE, or: queuectl hold ID": "pause",
        "queuectl list, or: queuectl worker list": "ps",
        "queuectl queue list": "queues",
        "queuectl retry ID": "requeue",
        "queuectl retry ID, or: queuectl worker restart": "restart",
        "queuectl queue resume QUEUE, or: queuectl release ID": "resume",
        "queuectl cron list": "schedules",
        "queuectl dashboard": "serve server ui web",
        "queuectl config set KEY VALUE": "set",
        "queuectl config list": "settings",
        "queuectl hold ID": "stash",
        "queuectl status": "stat",
        "queuectl metrics": "stats",
        "queuectl cancel ID, or: queuectl worker stop": "stop",
        "queuectl --version": "version",
        "queuectl status --watch": "watch",
        "queuectl worker list": "workers",
    },
    "queuectl worker": {
        "queuectl worker stop --now": "kill",
        "queuectl worker list": "ls ps status",
        "queuectl worker restart": "reload",
        "queuectl worker start": "run",
    },
    "queuectl queue": {
        "queuectl enqueue --queue QUEUE COMMAND, which creates the queue": "add create",
        "queuectl queue list": "ls show",
        "queuectl queue resume QUEUE": "start unpause",
        "queuectl queue pause QUEUE": "stop",
    },
    "queuectl dlq": {
        "queuectl dlq purge --all": "clear",
        "queuectl dlq list": "ls",
        "queuectl dlq purge ID": "remove rm",
        "queuectl dlq retry ID": "requeue",
    },
    "queuectl cron": {
        "queuectl cron add NAME SCHEDULE COMMAND": "create",
        "queuectl cron remove NAME": "delete rm",
        "queuectl cron list": "ls",
        "queuectl cron run NAME": "trigger",
    },
    "queuectl config": {"queuectl config list": "ls", "queuectl config unset KEY": "remove"},
    "queuectl db": {
        "queuectl db backup FILE, or: queuectl db export FILE": "dump",
        "queuectl enqueue COMMAND, which creates the database": "init",
        "queuectl db import FILE": "load",
        "queuectl db copy --from ADDRESS --to ADDRESS": "migrate",
        "queuectl db prune": "vacuum",
    },
}
COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    group: {name: target for target, names in targets.items() for name in names.split()}
    for group, targets in _COMMANDS.items()
}
# Option -> command, or "" for every one -> what to use here.
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "--all": {"cancel": "--state pending,failed,processing", "list": "--limit 1000000000"},
    "--background": {"worker start": "--detach"},
    "--daemon": {"worker start": "--detach", "run": "queuectl enqueue COMMAND"},
    "--database": {"": "--db"},
    "--depends": {"": "--after"},
    "--depends-on": {"": "--after"},
    "--detach": {"run": "queuectl enqueue COMMAND"},
    "--dir": {"": "--cwd"},
    "--directory": {"": "--cwd"},
    "--follow": {"enqueue": "queuectl run COMMAND"},
    "--force": {"cancel": "--yes"},
    "--jobs": {"worker start": "--count"},
    "--label": {"": "--tag"},
    "--name": {"enqueue": "--id"},
    "--status": {"": "--state"},
    "--threads": {"worker start": "--count"},
    "--wait": {"enqueue": "queuectl run COMMAND", "clone": "queuectl wait ID"},
    "--workers": {"worker start": "--count"},
    "--working-directory": {"": "--cwd"},
}


OLD_NAMES: Final[Mapping[str, str]] = {"--retries": "--max-attempts", "--max-retries": "--max-attempts"}


class UnknownCommand(UnknownName):
    """`group` is the path of the group, such as `queuectl worker`."""

    def __init__(self, name: str, *, group: str, known: Sequence[str], what: str = "command") -> None:
        super().__init__(what, name, nearest=None, known=known)
        synonym = COMMANDS.get(group.replace("queuectl schedule", "queuectl cron"), {}).get(name.lower())
        nearest = closest(name.lower(), known, cutoff=COMMAND_CUTOFF)
        listed = "queuectl help lists all of them" if what == "topic" else f"{group} --help lists the commands"
        if synonym is not None:
            self.hint = f"use: {synonym}"
        else:
            self.hint = f"did you mean {nearest!r}? {listed}" if nearest else listed


def option_hint(name: str, command_path: str, known: Sequence[str]) -> str | None:
    """What to use instead of an unknown option; None if no option is similar."""
    command = command_path.partition(" ")[2]
    by_command = OPTIONS.get(name, {})
    if meant := by_command.get(command, by_command.get("")):
        return f"use: {meant}" if meant.startswith("queuectl") or meant.partition(" ")[0] in known else None
    longer = [one for one in known if one.startswith(name)]
    nearest = longer[0] if len(longer) == 1 else closest(name, known, cutoff=OPTION_CUTOFF)
    return f"did you mean {OLD_NAMES.get(nearest, nearest)}?" if nearest else None


def closest(name: str, known: Iterable[str], *, cutoff: float) -> str | None:
    from difflib import get_close_matches  # slow to import, and needed only for a mistyped name

    found = get_close_matches(truncate(name), list(known), n=1, cutoff=cutoff)
    return found[0] if found else None
