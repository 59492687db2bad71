"""Starting a worker in the background, and knowing that it is up before we say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from queuectl import errors
from queuectl.process.cgroups import leave_group
from queuectl.process.table import MARK


def detach(words: Sequence[str], *, environment: Mapping[str, str], home: str, log: str) -> int:
    """Start `queuectl WORDS --ready-fd N` in a session of its own and wait until it serves. Returns its pid. If a job does so, nothing of
    that job is in what it starts.

    Raises what kept it from coming up.
    """
    try:
        out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as exc:
        raise errors.HomeUnusable(home, f"{log}: {exc.strerror}") from exc
    leave_group()
    ready, ready_for_child = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "queuectl", *words, "--ready-fd", str(ready_for_child)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={name: value for name, value in environment.items() if name != MARK},
            start_new_session=True,
            pass_fds=(ready_for_child,),
        )
    finally:
        os.close(ready_for_child)
        os.close(out)
    with open(ready, "rb") as pipe:
        answer = pipe.read()  # to its end: the worker closes it, one way or the other
    if not answer:
        raise errors.WorkerFailed("the worker ended before it was up", hint=f"its last words are in {log}")
    said: dict[str, Any] = json.loads(answer)
    if "error" in said:
        process.wait()
        raise errors.WorkerFailed(said["error"]["message"], hint=said["error"]["hint"], code=said["error"]["code"])
    return process.pid


def say_ready(fd: int) -> None:
    _say(fd, {"ready": True})


def say_failed(fd: int, error: errors.QueuectlError) -> None:
    _say(fd, {"error": {"code": error.code, "message": error.message, "hint": error.hint}})


def _say(fd: int, message: dict[str, Any]) -> None:
    if fd < 0:  # begun anew in place: nobody waits
        return
    try:
        os.write(fd, json.dumps(message).encode())
        os.close(fd)
    except OSError:
        pass  # whoever started us did not wait
