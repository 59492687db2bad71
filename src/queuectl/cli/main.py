"""The program: the table of commands, and the way from the words to an exit status.

`main` is what the shell calls; `run` is the same inside a process that goes on (tests).
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO


def main() -> NoReturn:
    try:
        code = _main(sys.argv[1:])
    except KeyboardInterrupt:  # while modules were being loaded
        code = 130
    _leave(code)


def _main(words: Sequence[str]) -> int:
    _fill_closed_streams()
    # Loading makes tens of thousands of objects, all of them to stay: looking for garbage meanwhile only takes time.
    gc.disable()
    # Here and not above: a Ctrl-C in the 40 ms that this takes must not show a traceback.
    from queuectl.cli.app import App
    from queuectl.cli.invoke import invoke

    gc.freeze()
    gc.enable()
    return invoke(App(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr), words)


def run(
    words: Sequence[str],
    *,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run one command inside this process and return its exit status."""
    from queuectl.cli.app import App
    from queuectl.cli.invoke import invoke

    app = App(stdin=stdin or sys.stdin, stdout=stdout or sys.stdout, stderr=stderr or sys.stderr)
    try:
        return invoke(app, words)
    finally:
        app.close()


def _fill_closed_streams() -> None:
    """`queuectl … >&-`: without this the store itself could become descriptor 1, and output would go into it."""
    if sys.stdin is not None and sys.stdout is not None and sys.stderr is not None:
        return
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _leave(code: int) -> NoReturn:
    # Everything is flushed and committed by now. Taking the interpreter down and closing the store, which makes SQLite
    # checkpoint, would cost milliseconds of every command and change nothing: a commit is durable when it returns.
    if os.environ.get("QUEUECTL_DEBUG"):
        sys.exit(code)  # the slow way, for coverage and profilers, which work at exit
    os._exit(code)
