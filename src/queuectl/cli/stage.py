"""The stage of the demo: a home of its own where real commands run as a person would type them. Nothing is left of it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from types import FrameType
from typing import Final

import click

from queuectl.cli.app import App

PROGRAM: Final = "queuectl"
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stage:
    def __init__(self, app: App) -> None:
        self._app = app
        self._environ: dict[str, str] = {}
        self._is_deaf = True  # until there is something to sweep
        self._heard: int | None = None

    def open(self, home: str) -> None:
        kept = {name: value for name, value in self._app.environ.items() if not name.startswith("QUEUECTL_")}
        self._environ = {**kept, "QUEUECTL_HOME": home}
        self._listen()

    def tell(self, text: str) -> None:
        self._app.print(f"\n{self._app.paint(f'# {text}', 'cyan')}", flush=True)

    def type(self, line: str) -> None:
        """Show a command line and run it; its output goes where ours goes."""
        self._app.print(f"{self._app.paint('$', 'dim')} {self._app.paint(line, 'bold')}", flush=True)
        code = self._run(line)
        if code:
            self._app.print(self._app.paint(f"(exit {code})", "dim"), flush=True)

    def type_deaf(self, line: str) -> None:
        """The same for what must not be cut off half-way: a signal is heard when it is done."""
        self._is_deaf = True
        self.type(line)
        self._listen()

    def sweep(self) -> None:
        """End what runs, whoever signals meanwhile."""
        self._is_deaf = True
        self._run(f"{PROGRAM} worker stop --now", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def hear(self, number: int, _: FrameType | None) -> None:
        if self._is_deaf:
            self._heard = number
        else:
            raise click.exceptions.Exit(128 + number)

    def _listen(self) -> None:
        self._is_deaf = False
        if self._heard is not None:
            raise click.exceptions.Exit(128 + self._heard)

    def _run(self, line: str, *, stdout: int | None = None, stderr: int | None = None) -> int:
        import shlex

        words = shlex.split(line)
        assert words[0] == PROGRAM
        # What is deaf gets a session of its own: a Ctrl-C goes to the whole group of the terminal.
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", PROGRAM, *words[1:]],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=self._is_deaf,
            check=False,
        )
        return done.returncode


@contextlib.contextmanager
def stage(app: App) -> Iterator[Stage]:
    made = Stage(app)
    before = {number: signal.signal(number, made.hear) for number in _ENDING}
    home = tempfile.mkdtemp(prefix="queuectl-demo-")
    try:
        made.open(home)
        yield made
    finally:
        made.sweep()
        shutil.rmtree(home, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)
