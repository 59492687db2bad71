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

    def comment(self, text: str) -> None:
        self._app.print(f"\n{self._app.paint(f'# {text}', 'cyan')}", flush=True)

    def type(self, line: str) -> None:
        """Print a command line and run it, with the same standard output."""
        self._app.print(f"{self._app.paint('$', 'dim')} {self._app.paint(line, 'bold')}", flush=True)
        code = self._run(line)
        if code:
            self._app.print(self._app.paint(f"(exit {code})", "dim"), flush=True)

    def type_uninterrupted(self, line: str) -> None:
        """As `type`, for a command that must not be interrupted: signals are handled after it."""
        self._defers_signals = True
        self.type(line)
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
        import shlex

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
        raise InvalidInput("--port", "goes with --dashboard", hint="give both, or neither")
    if dashboard:
        number = 0 if port is None else port_number(port)
        app.print(
            "Continuous traffic. Every line after a $ is a real command, run in a temporary data directory.", flush=True
        )
        with demo_directory(app) as on:
            _fill(on)
            on.comment("Open the URL. Ctrl-C stops the demo and removes everything.")
            on.type(f"queuectl dashboard --port {number}")
        return Nothing()
    app.print(
        "The life cycle of some jobs. Every line after a $ is a real command, run in a temporary data directory.",
        flush=True,
    )
    with demo_directory(app) as on:
        on.comment("A job is a shell command. It is stored durably when enqueue prints its ID.")
        on.type("""queuectl enqueue --id hello 'echo "hello from job $QUEUECTL_JOB_ID, run $QUEUECTL_RUN"'""")
        on.comment("Jobs with a higher priority run first. A delay sets the earliest start.")
        on.type("queuectl enqueue --id low --priority -5 'echo I can wait'")
        on.type("queuectl enqueue --id urgent --priority 10 'echo me first'")
        on.type("queuectl enqueue --id later --delay 4s 'echo it is time'")
        on.comment(
            "This job fails, is retried after 2 seconds, and is dead after the second failure. Its third run would succeed."
        )
        on.type(
            """queuectl enqueue --id flaky --max-attempts 2 'echo "try $QUEUECTL_RUN"; [ "$QUEUECTL_RUN" -ge 3 ]'"""
        )
        on.comment("A job with a time limit that starts a child process, and a job that would run for an hour.")
        on.type("queuectl enqueue --id tree --timeout 1s --max-attempts 1 'echo working; sleep 3600 & sleep 3600'")
        on.type("queuectl enqueue --id hour 'sleep 3600'")
        on.type("queuectl list --sort -created")

        on.comment("A worker runs three jobs at a time.")
        on.type_uninterrupted("queuectl worker start --detach --count 3 --idle-timeout 60 --name bee")
        on.type("queuectl wait hello low urgent")
        on.type("queuectl logs urgent hello low --no-markers")
        on.type("queuectl status")

        on.comment("Cancel terminates a running job with all of its processes.")
        on.type("queuectl cancel hour")
        on.comment("The time limit terminates the whole process tree.")
        on.type("queuectl wait tree")
        on.type("queuectl show tree")

        on.comment("Dead jobs are in the dead letter queue. wait exits with the exit code of the job.")
        on.type("queuectl wait flaky")
        on.type("queuectl dlq list")
        on.type("queuectl dlq retry flaky")
        on.type("queuectl wait flaky")
        on.type("queuectl logs flaky")

        on.comment("The delayed job has run, too.")
        on.type("queuectl wait later")
        on.type("queuectl list --sort -created")
        on.type("queuectl metrics")
        on.comment("The worker finishes its running jobs and stops.")
        on.type_uninterrupted("queuectl worker stop")
    app.print(f"\nDone; everything was removed. Your first job: {called(app.environ)} enqueue 'echo hello'")
    return Nothing()


def called(environ: Mapping[str, str], python: str = sys.executable) -> str:
    """The command for queuectl: its path if it is not on the PATH but beside the Python interpreter, as in a checkout."""
    path = os.path.normpath(os.path.join(os.path.dirname(python), PROGRAM))
    if shutil.which(PROGRAM, path=environ.get("PATH")) or not os.path.exists(path):
        return PROGRAM
    near = os.path.relpath(path)
    return shlex.quote(path if near.startswith(os.pardir) else near)


# The jobs of a web shop. The process id serves as a random number.
_TRAFFIC: Final = (
    ("mail", 2, "sleep 0.$(($$ % 9)); echo sent; [ $(($$ % 13)) -gt 0 ]"),
    ("images", 2, "echo scaling; sleep $(($$ % 3)); [ $(($$ % 7)) -gt 0 ] || exit 3"),
    ("images", 5, r'for i in 1 2 3 4; do printf "\033[32mtile $i\033[0m\n"; sleep 0.5; done'),
    ("reports", 6, "echo collecting; sleep $(($$ % 5)); echo done"),
    ("search", 1, "sleep 0.0$(($$ % 9)); echo indexed"),
)


def _fill(on: Demo) -> None:
    on.comment("Queues: one with limits, one paused.")
    on.type("queuectl queue set reports --concurrency 1 --timeout 30s")
    on.type("queuectl queue set mail --rate 60/m")
    on.type("queuectl queue pause newsletter")
    on.type("queuectl enqueue --queue newsletter 'echo dear reader'")
    on.comment("Dependencies, a batch, a job that dies, a job with continuous output, and a delayed job.")
    on.type("queuectl enqueue --id build --tag release 'echo building; sleep 3; echo built'")
    on.type("queuectl enqueue --id test --tag release --after build 'sleep 4; echo 120 passed'")
    on.type("queuectl enqueue --id docs --tag release --after build 'sleep 6; echo written'")
    on.type("queuectl enqueue --id release --tag release --after test --after docs 'echo released'")
    on.type("queuectl enqueue --array 1-24%3 --batch thumbnails --queue images 'sleep 1; echo $QUEUECTL_ARRAY_INDEX'")
    on.type("queuectl enqueue --id broken --max-attempts 2 'echo no such table >&2; exit 4'")
    on.type("queuectl enqueue --id talker 'i=0; while :; do i=$((i+1)); echo line $i; sleep 1; done'")
    on.type("queuectl enqueue --id tomorrow --delay 1d 'make report'")
    on.comment("Schedules: one for the night, and continuous traffic.")
    on.type("queuectl cron add nightly '0 2 * * *' 'make backup'")
    for number, (queue, seconds, script) in enumerate(_TRAFFIC, 1):
        job = f"--queue {queue} --overlap allow --max-attempts 2 '{script}'"
        on.type(f"queuectl cron add visitor-{number} 'every {seconds}s' {job}")
    on.comment("Two workers.")
    on.type_uninterrupted("queuectl worker start --detach --count 6 --name bee")
    on.type_uninterrupted("queuectl worker start --detach --count 3 --name wasp --queue mail --queue search")
