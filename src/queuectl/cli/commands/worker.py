"""queuectl worker: the processes that run jobs."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_workers
from queuectl.cli.numbers import integer
from queuectl.cli.printable import printable
from queuectl.cli.result import Column, Done, Lines, Nothing, Result, Sheet, Table
from queuectl.cli.stopping import named_workers, stop_and_wait
from queuectl.cli.style import age
from queuectl.cli.workers import is_alive, is_serving, store_line
from queuectl.cli.workerwords import queues_and_weights, serving_options, slot_count, worker_name
from queuectl.config import file_path
from queuectl.job.duration import parse_duration_ms
from queuectl.job.model import Worker, to_ms
from queuectl.queue.restart import restart_workers
from queuectl.store.protocol import StopMode

_HERE: Final = "queuectl.cli.commands.worker"
RESTART: Final = 30.0  # seconds, as long as any command waits for a locked store

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
        # only what a policy allows
        queuectl worker start --policy /etc/queuectl/policy.toml
        # five of the one for one of the other, as long as both have some
        queuectl worker start -q high=5 -q low=1
    """,
)
@serving_options
@click.option("--name", metavar="NAME", help="The worker's id; else one is made.")
@click.option("--detach", "-d", is_flag=True, help="In the background; returns once it serves.")
@click.option("--ready-fd", type=integer, hidden=True)
@click.option("--left", type=integer, multiple=True, hidden=True)
def worker_start(
    app: App,
    count: str | None,
    queues: tuple[str, ...],
    detach: bool,
    drain: bool,
    idle_timeout: str | None,
    log_format: str,
    name: str | None,
    policy: str | None,
    ready_fd: int | None,
    left: tuple[int, ...],
) -> Result:
    """Run jobs.

    The first TERM or Ctrl-C: finish what runs, then end. The second: end it now, the jobs go back to the line uncharged.
    """
    name = None if name is None else worker_name(name)
    slots = None if count is None else slot_count(count)
    named = queues_and_weights(queues)
    patience = None if idle_timeout is None else parse_duration_ms(idle_timeout, subject="--idle-timeout") / 1000
    policy = None if policy is None else file_path(policy, spelled="--policy")
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
        log_format=log_format,
        policy=policy,
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
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=complete_workers)
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
    targets, refused = named_workers(app, registered, ids, everywhere=everywhere)
    if not targets and not refused:
        nobody = "no worker is running"
        if registered:
            nobody = f"no worker of this home is running; {len(registered)} elsewhere: queuectl worker stop --all"
        return Lines([nobody], {"done": [], "refused": []})
    mode = StopMode.NOW if now else StopMode.FINISH
    stopped = stop_and_wait(app, targets, mode=mode, timeout=patience)
    return Done(stopped, refused=refused, verb="stopped")


@command(
    "restart",
    examples="""
        # after an upgrade of queuectl
        queuectl worker restart
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=complete_workers)
def worker_restart(app: App, ids: tuple[str, ...]) -> Result:
    """Let workers begin anew, in place: the same process, options and terminal, and the queuectl that is installed now.

    The jobs that run go on and notice nothing. Without ids: every worker of this home.
    """
    targets, refused = named_workers(app, app.open_reads().workers(), ids, everywhere=False)
    if not targets and not refused:
        return Lines(["no worker of this home is running"], {"done": [], "refused": []})
    patience = RESTART + 2 * app.settings.heartbeat_ms / 1000
    answer = restart_workers(app.open_store(), app.clock, targets, is_alive=is_alive(app), patience=patience)
    return Done(answer.done, refused=[*refused, *answer.refused], verb="restarted")


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
