"""queuectl worker: start, stop, restart and list the processes that run jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from queuectl import paths
from queuectl.cli.app import App
from queuectl.cli.command import Function, combine_options, group, integer, policy_option
from queuectl.cli.completion import complete_queues, complete_workers
from queuectl.cli.render import Details, Done, Lines, Nothing, Result, Table, progress
from queuectl.cli.tables import Column
from queuectl.errors import InvalidInput, QueuectlError, SupervisorGone, WorkerNotFound
from queuectl.jobs import fields
from queuectl.jobs.model import Worker
from queuectl.operations.workers import UnresponsiveWorker, WorkerProcesses, restart_workers, stop_workers
from queuectl.store.enqueue import new_worker_id
from queuectl.store.types import StopMode
from queuectl.text import escape_control, is_valid_queue
from queuectl.units import format_duration, humanize_elapsed, humanize_time, parse_duration_ms, to_ms

if TYPE_CHECKING:
    from queuectl.process.client import StartedSupervisor

RESTART_SECONDS: Final = 30.0  # as long as any command waits for a locked database

worker = group(
    "worker",
    "Start, stop, restart and list workers, the processes that run jobs.",
    examples="""
        queuectl worker start --count 4
        queuectl worker start --count 4 --detach
        queuectl worker stop
    """,
)


MAX_SLOTS: Final = 1000
MAX_WEIGHT: Final = 1000


class WorkerOptions(NamedTuple):
    """How a worker runs, as the options of `worker start` and `service install` say."""

    slots: int | None
    weights: Mapping[str, int | None]  # by queue, in their order; empty: all queues
    drain: bool
    idle_timeout_ms: int | None
    log_format: str
    policy: str | None  # an absolute path; None: that of the data directory, if there is one

    def arguments(self) -> Iterator[str]:
        """The same options for `worker start`."""
        if self.slots is not None:
            yield from ("--count", str(self.slots))
        for queue, weight in self.weights.items():
            yield from ("--queue", queue if weight is None else f"{queue}={weight}")
        if self.drain:
            yield "--drain"
        if self.idle_timeout_ms is not None:
            yield from ("--idle-timeout", format_duration(self.idle_timeout_ms))
        if self.log_format != "text":
            yield from ("--log-format", self.log_format)
        if self.policy is not None:
            yield from ("--policy", self.policy)


_options: Final = combine_options(
    click.option(
        "--count", "-c", "--concurrency", "-j", metavar="N", help="Concurrent jobs, 1 to 1,000 (default: worker-count)."
    ),
    click.option(
        "--queue",
        "-q",
        "queues",
        multiple=True,
        metavar="NAME[=N]",
        shell_complete=complete_queues,
        help="Queue to serve, in this order or by weight; repeatable.",
    ),
    click.option("--drain", is_flag=True, help="Exit when no job is due, running or waiting for a retry."),
    click.option("--idle-timeout", metavar="TIME", help="Exit after this time without a job: 90, 90s, 5m."),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of the log: text, or one JSON object per line.",
    ),
    policy_option,
)


def worker_options(function: Function) -> Function:
    """Add the options to a command, whose function gets them checked, as one parameter `options`."""

    @wraps(function)
    def called(
        app: App, count: str | None, queues: tuple[str, ...], drain: bool, idle_timeout: str | None, **rest: Any
    ) -> Any:
        slots = None if count is None else fields.integer(integer(count), "--count", low=1, high=MAX_SLOTS)
        idle_ms = None if idle_timeout is None else parse_duration_ms(idle_timeout, subject="--idle-timeout")
        form, policy = rest.pop("log_format"), rest.pop("policy")
        options = WorkerOptions(slots, _queues_and_weights(queues), drain, idle_ms, form, policy)
        return function(app, options=options, **rest)

    return _options(called)


def worker_name(text: str) -> str:
    if is_valid_queue(text):
        return text
    raise InvalidInput(
        "--name", f"not a name: {text!r}", hint="up to 64 letters, digits, '.', '_' and '-', a letter or digit first"
    )


def _queues_and_weights(texts: Sequence[str]) -> dict[str, int | None]:
    """The queues in their order, each with its weight, if there is one."""
    named: dict[str, int | None] = {}
    for name, weight in map(_queue_and_weight, texts):
        before = named.setdefault(name, weight)
        if before != weight:
            problem = f"two weights for {name!r}: {before or 'none'} and {weight or 'none'}"
            raise InvalidInput(
                "--queue", problem, hint="name each queue once, for example, --queue high=5 --queue low=1"
            )
    return named


def _queue_and_weight(text: str) -> tuple[str, int | None]:
    name, equals, weight = text.partition("=")
    if not is_valid_queue(name):
        raise InvalidInput("--queue", f"not the name of a queue: {name!r}", hint="for example, --queue default")
    if not equals:
        return name, None
    return name, fields.integer(integer(weight), f"--queue {name}=N", low=1, high=MAX_WEIGHT)


@worker.subcommand(
    "start",
    "Start a worker, here or in the background.",
    examples="""
        # in the foreground; Ctrl-C finishes running jobs, a second one stops them
        queuectl worker start --count 4
        # in the background
        queuectl worker start --count 4 --detach
        # exit when no job is left
        queuectl worker start --drain
        # serve the queue urgent before the queue default
        queuectl worker start -q urgent -q default
        # only commands that a policy allows
        queuectl worker start --policy /etc/queuectl/policy.toml
        # start five jobs of high for each job of low, while both have jobs
        queuectl worker start -q high=5 -q low=1
    """,
)
@worker_options
@click.option("--name", metavar="NAME", help="Name of the worker (default: generated).")
@click.option("--detach", "-d", is_flag=True, help="Run in the background; return when the worker is ready.")
@click.option("--ready-fd", type=int, hidden=True)
@click.option("--left", type=int, multiple=True, hidden=True)
def worker_start(
    app: App, options: WorkerOptions, name: str | None, detach: bool, ready_fd: int | None, left: tuple[int, ...]
) -> Result:
    """Start a worker, which runs jobs.

    On the first TERM or Ctrl-C, the worker finishes its running jobs and exits. On the second one, it stops and requeues
    them, which does not count as an attempt.
    """
    name = new_worker_id() if name is None else worker_name(name)
    # After all checks of options, and before the other imports.
    supervisor = None if detach else _start_supervisor(app, name)
    from queuectl.cli import worker_setup

    if not detach:
        code = worker_setup.start_in_foreground(app, options, name, ready_fd=ready_fd, left=left, supervisor=supervisor)
        return Nothing(exit_code=code)
    started = worker_setup.start_in_background(app, options, name)
    line = f"started worker {started.id} (pid {started.pid}); log: {escape_control(started.log)}"
    return Details(started._asdict(), text=lambda: [line], id=started.id)


def _start_supervisor(app: App, name: str) -> StartedSupervisor | None:
    """The supervisor of the worker, which starts while we import the rest. None: the worker tries again, and reports the error."""
    from queuectl.process.client import start_supervisor

    try:
        return start_supervisor(paths.runs_file(app.home, name), app.environ)
    except (SupervisorGone, OSError):
        return None


DEREGISTER_SECONDS: Final = 5.0  # for a worker that was continued to exit, in addition to the kill-grace of its jobs


def named_workers(
    app: App, registered: Sequence[Worker], ids: Sequence[str], *, everywhere: bool
) -> tuple[list[Worker], list[tuple[str, QueuectlError]]]:
    """The workers with these ids, without ids those of this data directory; and the unknown ids."""
    if not ids:
        return [found for found in registered if everywhere or found.home == app.home], []
    known = {found.id: found for found in registered}
    refused: list[tuple[str, QueuectlError]] = [(name, WorkerNotFound(name)) for name in ids if name not in known]
    return [known[name] for name in dict.fromkeys(ids) if name in known], refused


def stop_and_wait(app: App, targets: Sequence[Worker], *, mode: StopMode, timeout: float | None) -> list[str]:
    """Stop workers, and wait for all of them; return the ids of those that exited."""
    ends = mode is StopMode.NOW or timeout is not None
    with progress(app, "finishing") as advance:
        most = sum(target.busy for target in targets)
        return stop_workers(
            app.open_store(),
            app.clock,
            targets,
            mode=mode,
            timeout=timeout,
            patience=app.settings.kill_grace_ms / 1000 + DEREGISTER_SECONDS,
            lease=app.settings.lease_ms / 1000,
            processes=_worker_processes(app),
            on_progress=lambda left: advance(most - sum(target.busy for target in left), most),
            on_silent=lambda silent: app.warn(_silent_text(app, silent, ends=ends)),
        )


def _silent_text(app: App, silent: UnresponsiveWorker, *, ends: bool) -> str:
    name, pid = silent.worker.id, silent.worker.pid
    if not silent.is_stopped:
        return (
            f"worker {name} does not respond: no heartbeat for {humanize_elapsed(app.settings.lease_ms)}; still waiting"
        )
    more = "it is resumed when its time is up" if ends else f"kill -CONT {pid} resumes it, --now stops it"
    return f"worker {name} does not respond: its process {pid} is suspended; {more}"


@worker.subcommand(
    "stop",
    "Stop workers after their running jobs.",
    examples="""
        queuectl worker stop
        # stop running jobs after a minute
        queuectl worker stop --timeout 1m
        queuectl worker stop --now
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_workers)
@click.option("--timeout", metavar="TIME", help="Stop running jobs after this time: 90, 90s, 5m.")
@click.option("--now", is_flag=True, help="Stop running jobs now and return them to pending.")
@click.option("--all", "everywhere", is_flag=True, help="Include workers on other hosts.")
def worker_stop(app: App, ids: tuple[str, ...], timeout: str | None, now: bool, everywhere: bool) -> Result:
    """Stop workers after their running jobs, and wait until they have exited.

    Without IDs, the command stops all workers of this data directory. It reports workers whose process is suspended
    (Ctrl-Z). --now and --timeout resume such a worker, and kill it if it does not exit.
    """
    seconds = None if timeout is None else parse_duration_ms(timeout, subject="--timeout") / 1000
    registered = app.open_reads().workers()
    targets, refused = named_workers(app, registered, ids, everywhere=everywhere)
    if not targets and not refused:
        message = "no worker is running"
        if registered:
            message = (
                f"no worker of this data directory is running; {len(registered)} elsewhere: queuectl worker stop --all"
            )
        return Lines([message], {"done": [], "refused": []})
    mode = StopMode.NOW if now else StopMode.FINISH
    stopped = stop_and_wait(app, targets, mode=mode, timeout=seconds)
    return Done(stopped, refused=refused, verb="stopped")


@worker.subcommand(
    "restart",
    "Restart workers while their jobs keep running.",
    examples="""
        # after an upgrade of queuectl
        queuectl worker restart
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_workers)
def worker_restart(app: App, ids: tuple[str, ...]) -> Result:
    """Restart workers in place, with the same process, options and terminal, for example after an upgrade.

    Running jobs are not affected. Without IDs, the command restarts all workers of this data directory.
    """
    targets, refused = named_workers(app, app.open_reads().workers(), ids, everywhere=False)
    if not targets and not refused:
        return Lines(["no worker of this data directory is running"], {"done": [], "refused": []})
    patience = RESTART_SECONDS + 2 * app.settings.heartbeat_ms / 1000
    answer = restart_workers(app.open_store(), app.clock, targets, is_alive=app.is_alive, patience=patience)
    return Done(answer.done, refused=[*refused, *answer.refused], verb="restarted")


@worker.subcommand("list", "List workers.", examples="queuectl worker list")
def worker_list(app: App) -> Result:
    """List workers.

    A worker is lost if its process is dead or its last heartbeat is older than the lease. This happens, for example, if the
    process is suspended (Ctrl-Z) or the host is down. A dead worker is listed until its jobs are rescued.
    """
    now_ms = app.open_reads().now_ms()

    def state(found: Worker) -> str:
        return found.state if app.is_serving(found) else "lost"

    columns: list[Column[Worker]] = [
        Column("WORKER", lambda found: found.id),
        Column("STATE", state, style=lambda found: "red" if state(found) == "lost" else "green"),
        Column("BUSY", lambda found: f"{found.busy}/{found.slots}", right=True),
        Column(
            "QUEUES", lambda found: "all" if found.queues is None else ",".join(found.queues), flexible=True, spare=3
        ),
        Column("DONE", lambda found: str(found.jobs_done), right=True, spare=4),
        Column("SINCE", lambda found: humanize_time(to_ms(found.started_at), now_ms), right=True, spare=5),
        Column("HEARTBEAT", lambda found: humanize_time(to_ms(found.heartbeat_at), now_ms), right=True, spare=2),
        Column("PID", lambda found: str(found.pid), right=True, spare=1),
        Column("HOST", lambda found: found.host, flexible=True, spare=6),
    ]
    found = app.open_reads().workers()
    return Table(
        found,
        columns,
        to_json=lambda one: {**one.to_dict(), "state": state(one)},
        to_id=lambda one: one.id,
        empty="No workers.",
        footer=app.store_line if app.stdout_is_terminal else None,
    )


def _worker_processes(app: App) -> WorkerProcesses:
    """The checks and actions of `worker stop` on this host."""
    from queuectl.maintenance import liveness

    where, alive = app.here, app.is_alive
    return WorkerProcesses(
        # A process on another host cannot be checked: its deregistration counts.
        is_gone=lambda worker: worker.machine != where.machine or not alive(worker),
        is_dead=lambda worker: worker.machine == where.machine and not alive(worker),
        is_stopped=lambda worker: liveness.is_stopped(worker, here=where),
        wake=lambda worker: liveness.continue_stopped(worker, here=where),
        kill=lambda worker: liveness.kill(worker, here=where),
        rescue=lambda at_once: app.rescue(spare=not at_once),
    )
