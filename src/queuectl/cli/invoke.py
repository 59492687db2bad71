"""From words to an exit status: parse, run, render, and turn whatever goes wrong into two lines on stderr."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from queuectl.cli.app import App
from queuectl.cli.commands.table import root
from queuectl.cli.exits import BROKEN_PIPE, INTERRUPTED, exit_status
from queuectl.cli.failure import from_click, from_unexpected, report
from queuectl.cli.render import render
from queuectl.errors import OutputFailed, QueuectlError

PROGRAM = "queuectl"
COMPLETE = "_QUEUECTL_COMPLETE"


def invoke(app: App, words: Sequence[str]) -> int:
    """Run one command; every error, foreseen or not, becomes an exit status. Nothing is left in the streams."""
    for stream in (app.stdout, app.stderr):
        # A path or a command may hold what the terminal's encoding cannot say: print an escape, never fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = words[: words.index("--")] if "--" in words else words
    # Looked for before anything is parsed: errors obey them too, also those about words that cannot be parsed.
    app.flags.no_color = "--no-color" in options
    as_json = "--json" in options
    try:
        code = _attempt(app, words, as_json=as_json)
        app.write("", flush=True)
        return code
    except BrokenPipeError:
        _silence(app)
        return BROKEN_PIPE
    except OutputFailed as error:
        _silence(app)
        report(app, OutputFailed(error.problem, done=app.done), as_json=as_json)
        return exit_status(error)


def _attempt(app: App, words: Sequence[str], *, as_json: bool) -> int:
    try:
        if COMPLETE in app.environ:
            from click.shell_completion import shell_complete

            return shell_complete(root, {"obj": app}, PROGRAM, COMPLETE, app.environ[COMPLETE])
        with root.make_context(PROGRAM, list(words), obj=app) as ctx:
            return render(app, root.invoke(ctx))
    except (BrokenPipeError, OutputFailed):
        raise
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        failure = from_click(error)
    except QueuectlError as error:
        failure = error
    except (KeyboardInterrupt, click.Abort):
        app.say("")  # the terminal has printed ^C
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last one to catch it: a person gets a line, not a traceback
        if app.environ.get("QUEUECTL_DEBUG"):
            import traceback

            traceback.print_exc(file=app.stderr)
        failure = from_unexpected(error)
    report(app, failure, as_json=as_json)
    return exit_status(failure)


def _silence(app: App) -> None:
    """What is still buffered can go nowhere; unless it is thrown away, the interpreter complains at its end."""
    try:
        fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(fd, app.stdout.fileno())
        os.close(fd)
    except (OSError, ValueError):
        pass  # not a real descriptor: a stream of a test
