"""Why a process could not be made, in words for the job's owner."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from itertools import chain
from typing import Final

from queuectl.process.between import Step
from queuectl.process.protocol import Order

LONGEST_SHOWN: Final = 200

# What it could not do to itself, see between.py.
_UNDONE: Final = {
    Step.BEGINNING: "the system has no room for another process",
    Step.GROUP: "its control group cannot be joined",
    Step.NICE: "its nice value cannot be set",
    Step.USER: "its user cannot be set",
    Step.LIMITS: "its limits cannot be set",
}


def places(order: Order) -> Sequence[bytes]:
    """Where a program may be: looked for on the PATH that the job will have, not on ours."""
    program = order.argv[0]
    if order.program is not None:
        return (order.program,)
    if b"/" in program:
        return (program,)
    words = chain(order.base.words, order.env)
    path = next((word[5:] for word in words if word.startswith(b"PATH=")), os.fsencode(os.defpath))
    return [os.path.join(folder, program) for folder in path.split(b":")]  # an empty entry is the working directory


def why(order: Order, failures: Sequence[int], step: Step) -> str:
    """In words, why none of the programs could be run. The kernel gives a number for all there is to do in between."""
    cwd, name = order.cwd.encode(), _shown(order.argv[0])
    if step in _UNDONE:
        return f"{_UNDONE[step]}: {os.strerror(failures[0]).lower()}"
    try:
        os.stat(os.path.join(cwd, b"."))
    except (OSError, ValueError) as exc:
        return f"the working directory {_shown(cwd)} cannot be entered: {_words(exc)}"
    if step is Step.DIRECTORY and errno.ESTALE not in failures:  # we may go there, but not whoever it runs as
        return f"the working directory {_shown(cwd)} cannot be entered: {os.strerror(failures[0]).lower()}"
    if errno.ESTALE in failures:
        return f"the working directory {_shown(cwd)} was replaced while it was looked at"
    for program, error in zip(places(order), failures, strict=True):
        if error == errno.ENOENT and os.path.exists(os.path.join(cwd, program)):  # so it was not the program
            return f"{_shown(program)}: its interpreter is missing (see its first line)"
    error = max(failures, key=lambda error: error not in (errno.ENOENT, errno.ENOTDIR))
    match error:
        case errno.ENOENT | errno.ENOTDIR:
            return f"no such program: {name}"
        case errno.EACCES:
            return f"not executable: {name}"
        case errno.E2BIG:
            return "the command and its environment are too long for this system"
        case errno.EAGAIN | errno.ENOMEM | errno.EMFILE | errno.ENFILE:
            return f"the system has no room for another process: {os.strerror(error).lower()}"
        case _:
            return f"{name}: {os.strerror(error).lower()}"


def _shown(path: bytes) -> str:
    """On one line, and not for ever: an error is read by people."""
    text = path.decode("utf-8", "replace")
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:LONGEST_SHOWN])
    return line if len(text) <= LONGEST_SHOWN else line + "…"


def _words(exc: Exception) -> str:
    return (getattr(exc, "strerror", None) or str(exc)).lower()
