"""The entry points: `main` for the installed script, `run` for a command inside a running process (tests).

Imports are inside of functions: Ctrl-C during the 40 ms that they take must not print a traceback.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn, TextIO

if TYPE_CHECKING:
    from queuectl.cli.app import App
    from queuectl.cli.command import LazyGroup

PROGRAM: Final = "queuectl"
COMPLETION_VARIABLE: Final = "_QUEUECTL_COMPLETE"


def main() -> NoReturn:
    try:
        code = _main(sys.argv[1:])
    except KeyboardInterrupt:  # during imports
        code = 130
    _exit(code)


def _main(arguments: Sequence[str]) -> int:
    _fill_closed_streams()
    # Imports create tens of thousands of objects that stay: garbage collection would only take time.
    gc.disable()
    from queuectl.cli.app import App
    from queuectl.cli.commands import root

    gc.freeze()
    gc.enable()
    return _invoke(App(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr), root, arguments)


def run(
    arguments: Sequence[str],
    *,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run one command inside this process and return its exit status."""
    from queuectl.cli.app import App
    from queuectl.cli.commands import root

    app = App(stdin=stdin or sys.stdin, stdout=stdout or sys.stdout, stderr=stderr or sys.stderr)
    try:
        return _invoke(app, root, arguments)
    finally:
        app.close()


def _invoke(app: App, root: LazyGroup, arguments: Sequence[str]) -> int:
    """Run one command and flush the streams. Every exception becomes an exit status."""
    from queuectl.cli.errors import BROKEN_PIPE, exit_status, report
    from queuectl.errors import OutputFailed

    for stream in (app.stdout, app.stderr):
        # Print an escape for characters that the encoding of the terminal lacks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    # Searched for before parsing: they also apply to errors about arguments that cannot be parsed.
    app.flags.no_color = "--no-color" in options
    as_json = any(one == "--json" or one.startswith("--json=") for one in options)
    try:
        code = _attempt(app, root, arguments, as_json=as_json)
        app.write("", flush=True)
        return code
    except BrokenPipeError:
        _discard_output(app)
        return BROKEN_PIPE
    except OutputFailed as error:
        _discard_output(app)
        report(app, error, as_json=as_json)
        return exit_status(error)


def _attempt(app: App, root: LazyGroup, arguments: Sequence[str], *, as_json: bool) -> int:
    import click

    from queuectl.cli.errors import INTERRUPTED, exit_status, from_click, from_unexpected, report
    from queuectl.cli.render import print_result
    from queuectl.errors import OutputFailed, QueuectlError

    try:
        if COMPLETION_VARIABLE in app.environ:
            from click.shell_completion import shell_complete

            how = app.environ[COMPLETION_VARIABLE]
            return shell_complete(root, {"obj": app}, PROGRAM, COMPLETION_VARIABLE, how)
        with root.make_context(PROGRAM, list(arguments), obj=app) as ctx:
            return print_result(app, root.invoke(ctx))
    except (BrokenPipeError, OutputFailed):
        raise
    except click.exceptions.Exit as exiting:
        return exiting.exit_code
    except click.ClickException as error:
        failure = from_click(error)
    except QueuectlError as error:
        failure = error
    except (KeyboardInterrupt, click.Abort):
        app.say("")  # the terminal has printed ^C
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost handler: print an error, not a traceback
        if app.environ.get("QUEUECTL_DEBUG"):
            import traceback

            traceback.print_exc(file=app.stderr)
        failure = from_unexpected(error)
    report(app, failure, as_json=as_json)
    return exit_status(failure)


def _discard_output(app: App) -> None:
    try:
        app.discard_output()
    except (OSError, ValueError):
        pass  # a stream without a descriptor


def _fill_closed_streams() -> None:
    """For `queuectl … >&-`: otherwise the database could get descriptor 1, and output would be written into it."""
    if sys.stdin is not None and sys.stdout is not None and sys.stderr is not None:
        return
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _exit(code: int) -> NoReturn:
    # Everything is flushed and committed. Finalizing the interpreter and closing the database, which makes SQLite
    # checkpoint, would cost milliseconds of every command: a commit is durable when it returns.
    if os.environ.get("QUEUECTL_DEBUG"):
        sys.exit(code)  # for coverage and profilers, which work at exit
    os._exit(code)
