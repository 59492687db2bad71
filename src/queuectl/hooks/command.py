"""One command, for an alert that no worker is there to run it for."""

from __future__ import annotations

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
        done = subprocess.run(  # noqa: S603 - what an operator wants to have run
            ["/bin/sh", "-c", *guard, command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            timeout=seconds,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise CommandFailed(alert, f"it took more than {seconds:g} s") from exc
    except (OSError, ValueError) as exc:
        raise CommandFailed(alert, f"it cannot be run: {exc}") from exc
    lines = done.stdout[-MOST:].decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    if done.returncode != 0:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"killed by signal {-done.returncode}"
        raise CommandFailed(alert, f"{how}: {last}" if last else how)
    return last
