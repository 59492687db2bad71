"""queuectl worker: the processes that run jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.numbers import integer
from queuectl.cli.printable import printable
from queuectl.cli.progress import progress
from queuectl.cli.result import Column, Done, Lines, Nothing, Result, Sheet, Table
from queuectl.cli.style import age, took
from queuectl.cli.workers import hands, is_alive, is_serving, store_line
from queuectl.errors import InvalidInput, QueuectlError, WorkerNotFound
from queuectl.job.duration import parse_duration_ms
from queuectl.job.model import Worker, to_ms
from queuectl.queue.restart import restart_workers
from queuectl.queue.stop import Silent, stop_workers
from queuectl.store.protocol import StopMode

_HERE: Final = "queuectl.cli.commands.worker"
MOST_SLOTS: Final = 1000
HEAVIEST: Final = 1000
RESTART: Final = 30.0  # seconds, as long as any command waits for a locked store
FAREWELL: Final = 5.0  # what a worker that was woken to end gets beyond the kill-grace of its jobs, in seconds
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

worker = group(
    "worker",
    "The processes that run jobs.",
    {
        "start": Entry(_HERE, "worker_start", "Run jobs, here or in the background."),
        "stop": Entry(_HERE, "worker_stop", "Let workers finish and end."),
        "restart": Entry(_HERE, "worker_restart", "Let workers begin anew while their jobs run on."),
        "list": Entry(_HERE, "worker_list", "Who works, and on how much."),
    },
    examples="""
        queuectl worker start --count 4
        queuectl worker start --count 4 --detach
        queuectl worker stop
    """,
)


@command(
    "start",
    examples="""
        # in the foreground; Ctrl-C finishes what runs, a second one ends it
        queuectl worker start --count 4
        # in the background
        queuectl worker start --count 4 --detach
        # until all is done
        queuectl worker start --drain
        # urgent ones first
        queuectl worker start -q urgent -q default
        # five of the one for one of the other, as long as both have some
        queuectl worker start -q high=5 -q low=1
    """,
)
@click.option("--count", "-c", metavar="N", help="How many jobs at a time (1 to 1,000); else as worker-count says.")
@click.option(
    "--queue",
    "-q",
    "queues",
    multiple=True,
    metavar="NAME[=N]",
    help="Serve this queue; the first is first, or by weight.",
)
@click.option("--detach", "-d", is_flag=True, help="In the background; returns once it serves.")
@click.option("--drain", is_flag=True, help="End when nothing is due, running or waiting for a retry.")
@click.option("--idle-timeout", metavar="TIME", help="End when nothing ran here for this long: 90, 90s, 5m.")
@click.option("--name", metavar="NAME", help="The worker's id; else one is made.")
@click.option("--ready-fd", type=integer, hidden=True)
@click.option("--left", type=integer, multiple=True, hidden=True)
def worker_start(
    app: App,
    count: str | None,
    queues: tuple[str, ...],
    detach: bool,
    drain: bool,
    idle_timeout: str | None,
    name: str | None,
    ready_fd: int | None,
    left: tuple[int, ...],
) -> Result:
    """Run jobs.

    The first TERM or Ctrl-C: finish what runs, then end. The second: end it now, the jobs go back to the line uncharged.
    """
    name = None if name is None else _name(name)
    slots = None if count is None else _slots(count)
    named = dict(_queue(queue) for queue in queues)
    patience = None if idle_timeout is None else parse_duration_ms(idle_timeout, subject="--idle-timeout") / 1000
    raised = None
    if not detach:
        from queuectl.cli.early import early_keeper

        name, raised = early_keeper(app, name)  # before the rest is loaded, and after what may be refused
    from queuectl.cli import working

    order = working.Order(
        name=name,
        slots=slots,
        queues=tuple(named) or None,
        weights=tuple(weight or 1 for weight in named.values()) if any(named.values()) else None,
        drain=drain,
        idle_timeout=patience,
    )
    if not detach:
        return Nothing(exit_code=working.work(app, order, ready_fd=ready_fd, left=left, raised=raised))
    started = working.start_detached(app, order)
    line = f"worker {started.id} is up (pid {started.pid}); its log: {printable(started.log)}"
    return Sheet(started._asdict(), people=lambda: [line], id=started.id)


@command(
    "stop",
    examples="""
        queuectl worker stop
        # not longer than a minute, then at once
        queuectl worker stop --timeout 1m
        queuectl worker stop --now
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--timeout", metavar="TIME", help="End what still runs after this time: 90, 90s, 5m.")
@click.option("--now", is_flag=True, help="End what runs (TERM, kill-grace, KILL); the jobs go back to the line.")
@click.option("--all", "everywhere", is_flag=True, help="The workers of every home and host of the store.")
def worker_stop(app: App, ids: tuple[str, ...], timeout: str | None, now: bool, everywhere: bool) -> Result:
    """Let workers finish what they run and end; wait until they have.

    Without ids: the workers of this home. Of one that does not answer, because somebody has stopped its process (Ctrl-Z),
    a line is said; --now and --timeout wake it to end, and kill it if that does not help.
    """
    patience = None if timeout is None else parse_duration_ms(timeout, subject="--timeout") / 1000
    registered = app.open_reads().workers()
    targets, refused = _named(app, registered, ids, everywhere=everywhere)
    if not targets and not refused:
        nobody = "no worker is running"
        if registered:
            nobody = f"no worker of this home is running; {len(registered)} elsewhere: queuectl worker stop --all"
        return Lines([nobody], {"done": [], "refused": []})
    with progress(app, "finishing") as advance:
        most = sum(target.busy for target in targets)
        stopped = stop_workers(
            app.open_store(),
            app.clock,
            targets,
            mode=StopMode.NOW if now else StopMode.FINISH,
            timeout=patience,
            patience=app.settings.kill_grace_ms / 1000 + FAREWELL,
            lease=app.settings.lease_ms / 1000,
            hands=hands(app),
            on_progress=lambda left: advance(most - sum(target.busy for target in left), most),
            on_silent=lambda silent: app.warn(_silent_words(app, silent, ends=now or patience is not None)),
        )
    return Done(stopped, refused=refused, verb="stopped")


@command(
    "restart",
    examples="""
        # after an upgrade of queuectl
        queuectl worker restart
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
def worker_restart(app: App, ids: tuple[str, ...]) -> Result:
    """Let workers begin anew, in place: the same process, options and terminal, and the queuectl that is installed now.

    The jobs that run go on and notice nothing. Without ids: every worker of this home.
    """
    targets, refused = _named(app, app.open_reads().workers(), ids, everywhere=False)
    if not targets and not refused:
        return Lines(["no worker of this home is running"], {"done": [], "refused": []})
    patience = RESTART + 2 * app.settings.heartbeat_ms / 1000
    answer = restart_workers(app.open_store(), app.clock, targets, is_alive=is_alive(app), patience=patience)
    return Done(answer.done, refused=[*refused, *answer.refused], verb="restarted")


def _named(
    app: App, registered: Sequence[Worker], ids: Sequence[str], *, everywhere: bool
) -> tuple[list[Worker], list[tuple[str, QueuectlError]]]:
    """The workers that are meant, without ids those of this home; and the ids of which there is none."""
    if not ids:
        return [found for found in registered if everywhere or found.home == app.home], []
    known = {found.id: found for found in registered}
    refused: list[tuple[str, QueuectlError]] = [(name, WorkerNotFound(name)) for name in ids if name not in known]
    return [known[name] for name in dict.fromkeys(ids) if name in known], refused


def _silent_words(app: App, silent: Silent, *, ends: bool) -> str:
    name, pid = silent.worker.id, silent.worker.pid
    if not silent.is_stopped:
        return f"worker {name} does not answer: no sign of it for {took(app.settings.lease_ms)}; still waiting"
    more = "when it is time, it is woken to end" if ends else f"kill -CONT {pid} lets it go on, --now ends it"
    return f"worker {name} does not answer: its process {pid} is stopped; {more}"


@command("list", examples="queuectl worker list")
def worker_list(app: App) -> Result:
    """Who works, and on how much.

    A worker whose process is gone is lost until its jobs are dealt with: the next worker does that first. So is one that
    gives no sign for longer than the lease, because somebody stopped it (Ctrl-Z) or its machine is gone.
    """
    alive = is_serving(app)
    now_ms = app.open_reads().now_ms()

    def state(found: Worker) -> str:
        return found.state if alive(found) else "lost"

    columns: list[Column[Worker]] = [
        Column("WORKER", lambda found: found.id),
        Column("STATE", state, style=lambda found: "red" if state(found) == "lost" else "green"),
        Column("BUSY", lambda found: f"{found.busy}/{found.slots}", right=True),
        Column(
            "QUEUES", lambda found: "all" if found.queues is None else ",".join(found.queues), flexible=True, spare=3
        ),
        Column("DONE", lambda found: str(found.jobs_done), right=True, spare=4),
        Column("SINCE", lambda found: age(to_ms(found.started_at), now_ms), right=True, spare=5),
        Column("HEARTBEAT", lambda found: age(to_ms(found.heartbeat_at), now_ms), right=True, spare=2),
        Column("PID", lambda found: str(found.pid), right=True, spare=1),
        Column("HOST", lambda found: found.host, flexible=True, spare=6),
    ]
    found = app.open_reads().workers()
    return Table(
        found,
        columns,
        to_json=lambda one: {**one.to_dict(), "state": state(one)},
        to_id=lambda one: one.id,
        empty="no worker is running: queuectl worker start",
        footer=store_line(app) if app.stdout_is_terminal else None,
    )


def _slots(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST_SLOTS:
        return int(text)
    raise InvalidInput("--count", f"not a number from 1 to {MOST_SLOTS:,}: {text!r}", hint="like --count 4")


def _name(text: str) -> str:
    if NAME.fullmatch(text):
        return text
    raise InvalidInput(
        "--name", f"not a name: {text!r}", hint="up to 64 letters, digits, '.', '_' and '-', a letter or digit first"
    )


def _queue(text: str) -> tuple[str, int | None]:
    """The name, and the weight if one is given."""
    name, equals, weight = text.partition("=")
    if not NAME.fullmatch(name):
        raise InvalidInput("--queue", f"not the name of a queue: {name!r}", hint="like --queue default")
    if not equals:
        return name, None
    if not weight.isascii() or not weight.isdecimal() or not 1 <= int(weight[:9]) <= HEAVIEST:
        problem = f"expected a weight from 1 to {HEAVIEST:,}, got {weight!r}"
        raise InvalidInput("--queue", problem, hint="like --queue high=5 --queue low=1")
    return name, int(weight)
