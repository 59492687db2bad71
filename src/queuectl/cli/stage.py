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

    @property
    def was_cut_off(self) -> bool:
        return self._heard is not None

    def hear(self, number: int, _: FrameType | None) -> None:
        """The first signal ends the demo; what comes while it is being swept away changes nothing any more."""
        self._heard = number
        if not self._is_deaf:
            self._listen()

    def _listen(self) -> None:
        self._is_deaf = self._heard is not None
        if self._heard is not None:
            raise click.exceptions.Exit(128 + self._heard)

    def _run(self, line: str, *, stdout: int | None = None, stderr: int | None = None) -> int:
        import shlex

        words = shlex.split(line)
        assert words[0] == PROGRAM
        stays_deaf, self._is_deaf = self._is_deaf, True
        # Deaf until we hold the process: cut off within Popen, we would leave a child that nobody waits for. What stays deaf
        # gets a session of its own, since a Ctrl-C goes to the whole group of the terminal.
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", PROGRAM, *words[1:]],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=stays_deaf,
        )
        try:
            if not stays_deaf:
                self._listen()
            return process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise


@contextlib.contextmanager
def stage(app: App) -> Iterator[Stage]:
    made = Stage(app)
    # Under nohup a SIGHUP stays ignored.
    heard = [number for number in _ENDING if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, made.hear) for number in heard}
    home = tempfile.mkdtemp(prefix="queuectl-demo-")
    try:
        made.open(home)
        yield made
    finally:
        made.sweep()
        shutil.rmtree(home, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)
        if made.was_cut_off:
            app.say("\nended early; nothing of it is left")
