"""queuectl demo"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.numbers import port_number
from queuectl.cli.result import Nothing, Result
from queuectl.cli.stage import PROGRAM, Stage, stage
from queuectl.errors import InvalidInput


@command(
    "demo",
    any_home=True,
    examples="""
        queuectl demo
        # with living traffic, in a browser, until Ctrl-C
        queuectl demo --dashboard
    """,
)
@click.option("--dashboard", is_flag=True, help="Fill a home with living traffic and show it in the dashboard.")
@click.option("--port", metavar="N", help="Of the dashboard; any that is free unless told otherwise.")
def demo(app: App, dashboard: bool, port: str | None) -> Result:
    """See the whole life of some jobs in less than 20 seconds, in a home of its own.

    Every line after a $ is a real command. Nothing is left behind, also after Ctrl-C.
    """
    if port is not None and not dashboard:
        raise InvalidInput("--port", "goes with --dashboard", hint="give both, or neither")
    if dashboard:
        number = 0 if port is None else port_number(port)
        app.print("Living traffic. Every line after a $ is a real command, run in a home of its own.", flush=True)
        with stage(app) as on:
            _fill(on)
            on.tell("Open the address. Ctrl-C ends it, and nothing of it is left.")
            on.type(f"queuectl dashboard --port {number}")
        return Nothing()
    app.print("The life of some jobs. Every line after a $ is a real command, run in a home of its own.", flush=True)
    with stage(app) as on:
        on.tell("A job is a shell command. It is safe on disk when enqueue has printed its id.")
        on.type("""queuectl enqueue --id hello 'echo "hello from job $QUEUECTL_JOB_ID, run $QUEUECTL_RUN"'""")
        on.tell("A higher priority goes first; a delay keeps a job for later.")
        on.type("queuectl enqueue --id low --priority -5 'echo I can wait'")
        on.type("queuectl enqueue --id urgent --priority 10 'echo me first'")
        on.type("queuectl enqueue --id later --delay 4s 'echo it is time'")
        on.tell("This one fails, is tried again after 2 seconds, and fails for good. It would work the third time.")
        on.type("""queuectl enqueue --id flaky --max-retries 2 'echo "try $QUEUECTL_RUN"; [ "$QUEUECTL_RUN" -ge 3 ]'""")
        on.tell("One with a time limit, which starts a child; one that would run for an hour.")
        on.type("queuectl enqueue --id tree --timeout 1s --max-retries 1 'echo working; sleep 3600 & sleep 3600'")
        on.type("queuectl enqueue --id hour 'sleep 3600'")
        on.type("queuectl list --sort -created")

        on.tell("A worker runs them, three at a time.")
        on.type_deaf("queuectl worker start --detach --count 3 --idle-timeout 60 --name bee")
        on.type("queuectl wait hello low urgent")
        on.type("queuectl logs urgent hello low --no-markers")
        on.type("queuectl status")

        on.tell("Enough: a running job is ended with all that it started.")
        on.type("queuectl cancel hour")
        on.tell("The time limit ends the whole tree of processes.")
        on.type("queuectl wait tree")
        on.type("queuectl show tree")

        on.tell("Failed for good: the dead letter queue. wait hands on the exit code of the job.")
        on.type("queuectl wait flaky")
        on.type("queuectl dlq list")
        on.type("queuectl dlq retry flaky")
        on.type("queuectl wait flaky")
        on.type("queuectl logs flaky")

        on.tell("The delayed one has run at its time, too.")
        on.type("queuectl wait later")
        on.type("queuectl list --sort -created")
        on.type("queuectl metrics")
        on.tell("The worker finishes what it runs, and ends.")
        on.type_deaf("queuectl worker stop")
    app.print(f"\nThat was all; nothing of it is left. Now yours: {called(app.environ)} enqueue 'echo hello'")
    return Nothing()


def called(environ: Mapping[str, str], python: str = sys.executable) -> str:
    """What to type for queuectl here: in a checkout it is not on the PATH, but beside the Python that runs this."""
    path = os.path.normpath(os.path.join(os.path.dirname(python), PROGRAM))
    if shutil.which(PROGRAM, path=environ.get("PATH")) or not os.path.exists(path):
        return PROGRAM
    near = os.path.relpath(path)
    return shlex.quote(path if near.startswith(os.pardir) else near)


# What the visitors of a shop would cause. The number of a process is as good as chance here.
_TRAFFIC: Final = (
    ("mail", 2, "sleep 0.$(($$ % 9)); echo sent; [ $(($$ % 13)) -gt 0 ]"),
    ("images", 2, "echo scaling; sleep $(($$ % 3)); [ $(($$ % 7)) -gt 0 ] || exit 3"),
    ("images", 5, r'for i in 1 2 3 4; do printf "\033[32mtile $i\033[0m\n"; sleep 0.5; done'),
    ("reports", 6, "echo collecting; sleep $(($$ % 5)); echo done"),
    ("search", 1, "sleep 0.0$(($$ % 9)); echo indexed"),
)


def _fill(on: Stage) -> None:
    on.tell("Some queues, one of them with limits, one of them paused.")
    on.type("queuectl queue set reports --concurrency 1 --timeout 30s")
    on.type("queuectl queue set mail --rate 60/m")
    on.type("queuectl queue pause newsletter")
    on.type("queuectl enqueue --queue newsletter 'echo dear reader'")
    on.tell("Jobs that wait for each other, a batch, one that fails for good, one that talks, and one for later.")
    on.type("queuectl enqueue --id build --tag release 'echo building; sleep 3; echo built'")
    on.type("queuectl enqueue --id test --tag release --after build 'sleep 4; echo 120 passed'")
    on.type("queuectl enqueue --id docs --tag release --after build 'sleep 6; echo written'")
    on.type("queuectl enqueue --id release --tag release --after test --after docs 'echo released'")
    on.type("queuectl enqueue --array 1-24%3 --batch thumbnails --queue images 'sleep 1; echo $QUEUECTL_ARRAY_INDEX'")
    on.type("queuectl enqueue --id broken --max-retries 2 'echo no such table >&2; exit 4'")
    on.type("queuectl enqueue --id talker 'i=0; while :; do i=$((i+1)); echo line $i; sleep 1; done'")
    on.type("queuectl enqueue --id tomorrow --delay 1d 'make report'")
    on.tell("Schedules: one for the night, and visitors who come and go.")
    on.type("queuectl cron add nightly '0 2 * * *' 'make backup'")
    for number, (queue, seconds, script) in enumerate(_TRAFFIC, 1):
        job = f"--queue {queue} --overlap allow --max-retries 2 '{script}'"
        on.type(f"queuectl cron add visitor-{number} 'every {seconds}s' {job}")
    on.tell("Two workers.")
    on.type_deaf("queuectl worker start --detach --count 6 --name bee")
    on.type_deaf("queuectl worker start --detach --count 3 --name wasp --queue mail --queue search")
