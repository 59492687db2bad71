"""Reading a file of variables, for the environment of jobs."""

from __future__ import annotations

import os

from queuectl.errors import FileUnreadable
from queuectl.job.envfile import LARGEST, parse_env_file


def read_env_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The variables of a file of `NAME=value`, as `enqueue --env-file` reads it: for `env` of a job. Nothing is expanded.

    Raises FileUnreadable, or InvalidInput, which names the line.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise FileUnreadable(name, getattr(error, "strerror", None) or str(error)) from error
    return parse_env_file(data, subject=name)
