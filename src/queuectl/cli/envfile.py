"""What --env-file brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from queuectl.cli.app import App
from queuectl.errors import FileUnreadable, InvalidInput, UsageError
from queuectl.job.envfile import LARGEST, parse_env_file
from queuectl.queue.envfile import read_env_file

STDIN = "-"


def read_env_files(paths: Sequence[str], app: App, options: Mapping[str, Any]) -> dict[str, str]:
    """The variables of all of them; of two the later one counts. `options`: what else may want to read stdin."""
    variables: dict[str, str] = {}
    _refuse_two_readers(paths, options)
    for path in paths:
        variables |= _of_stdin(app) if path == STDIN else read_env_file(path)
    return variables


def _refuse_two_readers(paths: Sequence[str], options: Mapping[str, Any]) -> None:
    if "" in paths:
        raise InvalidInput("--env-file", "the name is empty", hint="give the name of a file, or - for stdin")
    readers = ["--env-file"] * paths.count(STDIN)
    readers += [f"--{name.replace('_', '-')}" for name in ("file", "for_each") if options.get(name) == STDIN]
    if STDIN in paths and len(readers) > 1:
        raise UsageError(f"{readers[0]} and {readers[-1]} both read stdin", hint="give one of them a file")


def _of_stdin(app: App) -> dict[str, str]:
    try:
        data = app.stdin_bytes.read(LARGEST + 1)
    except OSError as error:
        raise FileUnreadable("stdin", error.strerror or str(error), or_stdin=True) from error
    return parse_env_file(data, subject="stdin")
