"""The program on a pseudo-terminal, with its colors."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path

from tests.program import COMMAND, environment
from tests.warm import warm


class Terminal:
    """`shown` has everything that was printed so far."""

    def __init__(self, home: Path, *args: str, columns: int = 80, env: Mapping[str, str | None] | None = None) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        its = environment(home, env)
        self.process = warm.start(args, streams=[slave] * 3, env=its, cwd=None, leads=True) or subprocess.Popen(
            [*COMMAND, *args], stdin=slave, stdout=slave, stderr=slave, env=its, start_new_session=True
        )
        os.close(slave)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read(self, timeout: float = 30) -> bool:
        """Wait for more output. Return False once the program has closed the terminal."""
        assert select.select([self._master], [], [], timeout)[0], f"nothing more after {timeout} s: {self.shown}"
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: the other side is closed
            data = b""
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            assert self.read(), f"it ended without {text!r}: {self.shown}"

    def close(self) -> None:
        """Close it. The program gets no signal: this is not its controlling terminal."""
        os.close(self._master)

    def end(self) -> int:
        """Read to the end, and return the exit status."""
        while self.read():
            pass
        with contextlib.suppress(OSError):
            os.close(self._master)
        return self.process.wait(timeout=30)


def plain(text: str) -> str:
    """Return `text` without colors."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
