"""One command, for an alert that no worker is there to run it for."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Final

from queuectl.errors import CommandFailed

SECONDS: Final = 60.0
MOST: Final = 64 * 1024  # bytes of what it prints that are looked at


def run(command: str, *, alert: str, cwd: str, env: Mapping[str, str], seconds: float = SECONDS) -> str:
    """The last line that it printed. Raises CommandFailed unless it ends with 0 in time."""
    guard = ["--"] if command[:1] in ("-", "+") else []  # which a shell would take for options of its own
    try:
        child = subprocess.Popen(  # noqa: S603 - what an operator wants to have run
            ["/bin/sh", "-c", *guard, command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        raise CommandFailed(alert, f"it cannot be run: {exc}") from exc
    with child:
        try:
            printed, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as exc:
            raise CommandFailed(alert, f"it took more than {seconds:g} s") from exc
        finally:
            # Whatever it has left running, with it: before it is reaped its number is certainly that of its group.
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
    lines = printed[-MOST:].decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    if child.returncode != 0:
        how = f"exit code {child.returncode}" if child.returncode > 0 else f"killed by signal {-child.returncode}"
        raise CommandFailed(alert, f"{how}: {last}" if last else how)
    return last
