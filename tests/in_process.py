"""Run a command in the process of the tests: an eighth of the time of a process, which most commands do not need.

A command gets streams, an environment and a directory as a process would have them, and is run by `queuectl.cli.main.run`. Commands
that wait, handle signals, start processes or read a terminal always get a process: see tests/program.py.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from tests.warm import Ended, of_the_start

# They read or write the database once, and end.
COMMANDS: Final = frozenset(
    {
        "alert",
        "audit",
        "batch",
        "cancel",
        "config",
        "cron",
        "dlq",
        "edit",
        "enqueue",
        "explain",
        "graph",
        "hold",
        "import",
    }
    | {"list", "metrics", "policy", "queue", "release", "retry", "secret", "show", "status"}
)
MAX_INPUT: Final = 32 << 10  # fits into a pipe, so that it can be written before the command reads it

_START: Final = of_the_start(os.environ)
_one_at_a_time: Final = threading.Lock()


def run(words: Sequence[str], *, input: bytes | None, env: Mapping[str, str], cwd: Path | None) -> Ended | None:
    """None: this command needs a process."""
    is_possible = (
        bool(words)
        and words[0] in COMMANDS
        and not any(word.startswith(("--watch", "--wait", "--follow")) for word in words)
        and len(input or b"") <= MAX_INPUT
        and of_the_start(env) == _START
        and threading.current_thread() is threading.main_thread()
    )
    if not is_possible or not _one_at_a_time.acquire(blocking=False):
        return None
    try:
        return _run(words, input, env, cwd)
    finally:
        _one_at_a_time.release()


def _run(words: Sequence[str], input: bytes | None, env: Mapping[str, str], cwd: Path | None) -> Ended:
    from queuectl.cli.main import run

    out, err = io.BytesIO(), io.BytesIO()
    errors = "strict" if sys.__stdin__ is None else sys.__stdin__.errors
    with (
        _environment(env),
        _directory(cwd),
        open(_source(input), encoding="utf-8", errors=errors) as stdin,
        io.TextIOWrapper(out, encoding="utf-8", errors=errors) as stdout,
        io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", line_buffering=True) as stderr,
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        code = run(words, stdin=stdin, stdout=stdout, stderr=stderr)
        stdout.flush()
        stderr.flush()
        return Ended(code, out.getvalue(), err.getvalue())


def _source(input: bytes | None) -> int:
    """Return a descriptor to read this from."""
    if input is None:
        return os.open(os.devnull, os.O_RDONLY)
    source, feed = os.pipe()
    os.write(feed, input)
    os.close(feed)
    return source


@contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    """Only what differs is changed: a test may have threads."""
    before = dict(os.environ)
    _change(before, env)
    try:
        yield
    finally:
        _change(dict(os.environ), before)


def _change(now: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for name in now.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if now.get(name) != value:
            os.environ[name] = value


@contextmanager
def _directory(cwd: Path | None) -> Iterator[None]:
    if cwd is None:
        yield
        return
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(cwd)
        yield
    finally:
        os.fchdir(before)
        os.close(before)
