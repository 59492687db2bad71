"""queuectl demo: real commands in a temporary data directory, which is removed at the end."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.commands.dashboard import port_number
from queuectl.cli.render import Nothing, Result
from queuectl.errors import InvalidInput

PROGRAM: Final = "queuectl"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Demo:
    def __init__(self, app: App) -> None:
        self._app = app
        self._environ: dict[str, str] = {}
        self._defers_signals = True  # until there is something to clean up
        self._signal: int | None = None

    def open(self, home: str) -> None:
        kept = {name: value for name, value in self._app.environ.items() if not name.startswith("QUEUECTL_")}
        self._environ = {**kept, "QUEUECTL_HOME": home}
        self._handle_signal()

    def play(self, script: str) -> None:
        """Print comments and command lines, and run the commands, with the same standard output."""
        for line in script.strip().splitlines():
            if line.startswith("#"):
                self._app.print(f"\n{self._app.paint(line, 'cyan')}", flush=True)
                continue
            # The start and the stop of a worker are not interrupted: signals are handled after them.
            self._defers_signals = line.startswith(f"{PROGRAM} worker ")
            self._app.print(f"{self._app.paint('$', 'dim')} {self._app.paint(line, 'bold')}", flush=True)
            if code := self._run(line):
                self._app.print(self._app.paint(f"(exit {code})", "dim"), flush=True)
            self._handle_signal()

    def stop_workers(self) -> None:
        """Stop the workers, whatever signals arrive meanwhile."""
        self._defers_signals = True
        self._run(f"{PROGRAM} worker stop --now", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def was_interrupted(self) -> bool:
        return self._signal is not None

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """The first signal ends the demo; signals during the cleanup have no effect."""
        self._signal = number
        if not self._defers_signals:
            self._handle_signal()

    def _handle_signal(self) -> None:
        self._defers_signals = self._signal is not None
        if self._signal is not None:
            raise click.exceptions.Exit(128 + self._signal)

    def _run(self, line: str, *, stdout: int | None = None, stderr: int | None = None) -> int:
        arguments = shlex.split(line)
        assert arguments[0] == PROGRAM
        is_uninterrupted, self._defers_signals = self._defers_signals, True
        # Signals are deferred until Popen returns: an exception inside of it would leave a child without a parent. A command
        # that must not be interrupted gets its own session, since Ctrl-C is sent to the whole process group.
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", PROGRAM, *arguments[1:]],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=is_uninterrupted,
        )
        try:
            if not is_uninterrupted:
                self._handle_signal()
            return process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise


@contextlib.contextmanager
def demo_directory(app: App) -> Iterator[Demo]:
    made = Demo(app)
    # Under nohup SIGHUP stays ignored.
    handled = [
        number for number in _SIGNALS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, made.on_signal) for number in handled}
    home = tempfile.mkdtemp(prefix="queuectl-demo-")
    try:
        made.open(home)
        yield made
    finally:
        made.stop_workers()
        shutil.rmtree(home, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)
        if made.was_interrupted:
            app.say("\ninterrupted; everything was removed")


@command("demo", any_home=True)
@click.option("--dashboard", is_flag=True, help="Create continuous traffic and show it in the dashboard.")
@click.option("--port", metavar="N", help="Port of the dashboard (default: any free one).")
def demo(app: App, dashboard: bool, port: str | None) -> Result:
    """Run a demonstration in less than 20 seconds, in a temporary data directory.

    Every line after a $ is a real command. The data directory is removed at the end, also after Ctrl-C.

    Examples:
        queuectl demo
        # with continuous traffic, in a browser, until Ctrl-C
        queuectl demo --dashboard
    """
    if port is not None and not dashboard:
        raise InvalidInput("--port", "requires --dashboard", hint="add --dashboard, or omit --port")
    number = 0 if port is None else port_number(port)
    what = "Continuous traffic" if dashboard else "The life cycle of some jobs"
    app.print(f"{what}. Every line after a $ is a real command, run in a temporary data directory.", flush=True)
    with demo_directory(app) as demonstration:
        demonstration.play(f"{_TRAFFIC.rstrip()} {number}" if dashboard else _LIFE_CYCLE)
    if dashboard:
        return Nothing()
    app.print(f"\nDone; everything was removed. Your first job: {called(app.environ)} enqueue 'echo hello'")
    return Nothing()


def called(environ: Mapping[str, str], python: str = sys.executable) -> str:
    """The command for queuectl: its path if it is not on the PATH but beside the Python interpreter, as in a checkout."""
    path = os.path.normpath(os.path.join(os.path.dirname(python), PROGRAM))
    if shutil.which(PROGRAM, path=environ.get("PATH")) or not os.path.exists(path):
        return PROGRAM
    near = os.path.relpath(path)
    return shlex.quote(path if near.startswith(os.pardir) else near)


_LIFE_CYCLE: Final = r"""
# A job is a shell command. It is stored durably when enqueue prints its ID.
queuectl enqueue --id hello 'echo "hello from job $QUEUECTL_JOB_ID, run $QUEUECTL_RUN"'
# Jobs with a higher priority run first. A delay sets the earliest start.
queuectl enqueue --id low --priority -5 'echo I can wait'
queuectl enqueue --id urgent --priority 10 'echo me first'
queuectl enqueue --id later --delay 4s 'echo it is time'
# This job fails, is retried after 2 seconds, and is dead after the second failure. Its third run would succeed.
queuectl enqueue --id flaky --max-attempts 2 'echo "try $QUEUECTL_RUN"; [ "$QUEUECTL_RUN" -ge 3 ]'
# A job with a time limit that starts a child process, and a job that would run for an hour.
queuectl enqueue --id tree --timeout 1s --max-attempts 1 'echo working; sleep 3600 & sleep 3600'
queuectl enqueue --id hour 'sleep 3600'
queuectl list --sort -created
# A worker runs three jobs at a time.
queuectl worker start --detach --count 3 --idle-timeout 60 --name bee
queuectl wait hello low urgent
queuectl logs urgent hello low --no-markers
queuectl status
# Cancel terminates a running job with all of its processes.
queuectl cancel hour
# The time limit terminates the whole process tree.
queuectl wait tree
queuectl show tree
# Dead jobs are in the dead letter queue. wait exits with the exit code of the job.
queuectl wait flaky
queuectl dlq list
queuectl dlq retry flaky
queuectl wait flaky
queuectl logs flaky
# The delayed job has run, too.
queuectl wait later
queuectl list --sort -created
queuectl metrics
# The worker finishes its running jobs and stops.
queuectl worker stop
"""
# The jobs of a web shop. The process ID serves as a random number.
_TRAFFIC: Final = r"""
# Queues: one with limits, one paused.
queuectl queue set reports --concurrency 1 --timeout 30s
queuectl queue set mail --rate 60/m
queuectl queue pause newsletter
queuectl enqueue --queue newsletter 'echo dear reader'
# Dependencies, a batch, a job that dies, a job with continuous output, and a delayed job.
queuectl enqueue --id build --tag release 'echo building; sleep 3; echo built'
queuectl enqueue --id test --tag release --after build 'sleep 4; echo 120 passed'
queuectl enqueue --id docs --tag release --after build 'sleep 6; echo written'
queuectl enqueue --id release --tag release --after test --after docs 'echo released'
queuectl enqueue --array 1-24%3 --batch thumbnails --queue images 'sleep 1; echo $QUEUECTL_ARRAY_INDEX'
queuectl enqueue --id broken --max-attempts 2 'echo no such table >&2; exit 4'
queuectl enqueue --id talker 'i=0; while :; do i=$((i+1)); echo line $i; sleep 1; done'
queuectl enqueue --id tomorrow --delay 1d 'make report'
# Schedules: one for the night, and continuous traffic.
queuectl cron add nightly '0 2 * * *' 'make backup'
queuectl cron add visitor-1 'every 2s' --queue mail --overlap allow --max-attempts 2 'sleep 0.$(($$ % 9)); echo sent; [ $(($$ % 13)) -gt 0 ]'
queuectl cron add visitor-2 'every 2s' --queue images --overlap allow --max-attempts 2 'echo scaling; sleep $(($$ % 3)); [ $(($$ % 7)) -gt 0 ] || exit 3'
queuectl cron add visitor-3 'every 5s' --queue images --overlap allow --max-attempts 2 'for i in 1 2 3 4; do printf "\033[32mtile $i\033[0m\n"; sleep 0.5; done'
queuectl cron add visitor-4 'every 6s' --queue reports --overlap allow --max-attempts 2 'echo collecting; sleep $(($$ % 5)); echo done'
queuectl cron add visitor-5 'every 1s' --queue search --overlap allow --max-attempts 2 'sleep 0.0$(($$ % 9)); echo indexed'
# Two workers.
queuectl worker start --detach --count 6 --name bee
queuectl worker start --detach --count 3 --name wasp --queue mail --queue search
# Open the URL. Ctrl-C stops the demo and removes everything.
queuectl dashboard --port
"""
