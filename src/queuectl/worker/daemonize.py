"""Start a worker in the background, and wait until it serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from queuectl import errors
from queuectl.process.cgroups import leave_group
from queuectl.process.model import TOKEN_VARIABLE


def start_daemon(words: Sequence[str], *, environment: Mapping[str, str], home: str, log: str) -> int:
    """Start `queuectl WORDS --ready-fd N` in its own session and wait until it serves. Returns its PID. If a job does this, the worker does not
    belong to that job.

    Raises what prevented it from starting.
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
            env={name: value for name, value in environment.items() if name != TOKEN_VARIABLE},
            start_new_session=True,
            pass_fds=(ready_for_child,),
        )
    finally:
        os.close(ready_for_child)
        os.close(out)
    with open(ready, "rb") as pipe:
        answer = pipe.read()  # to its end: the worker closes it in any case
    if not answer:
        raise errors.WorkerFailed("the worker exited before it was ready", hint=f"its last output is in {log}")
    message: dict[str, Any] = json.loads(answer)
    if "error" in message:
        process.wait()
        error = message["error"]
        raise errors.WorkerFailed(error["message"], hint=error["hint"], code=error["code"])
    return process.pid


def report_ready(fd: int) -> None:
    _report(fd, {"ready": True})


def report_failure(fd: int, error: errors.QueuectlError) -> None:
    _report(fd, {"error": {"code": error.code, "message": error.message, "hint": error.hint}})


def _report(fd: int, message: dict[str, Any]) -> None:
    if fd < 0:  # restarted in place: no process waits
        return
    try:
        os.write(fd, json.dumps(message).encode())
        os.close(fd)
    except OSError:
        pass  # the process that started us has not waited
