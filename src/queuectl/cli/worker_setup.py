"""Composes a worker from its store, processes, maintenance tasks and log, in this process or in the background."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, NoReturn

from queuectl import paths
from queuectl.alerts.evaluator import AlertTask
from queuectl.cli.app import App
from queuectl.cli.commands.worker import WorkerOptions
from queuectl.cli.worker_log import WorkerLog
from queuectl.config import actor, job_environment_base, load_settings
from queuectl.cron.scheduler import Scheduler
from queuectl.errors import QueuectlError
from queuectl.events import Event, Sink, StoppedProcessKilled
from queuectl.jobs.states import State
from queuectl.maintenance.adoption import Adopter
from queuectl.maintenance.lock_breaker import LockBreaker
from queuectl.maintenance.pruner import PruneTask
from queuectl.maintenance.rescuer import RescueTask, rescue_namesake
from queuectl.maintenance.store_tasks import BatchCompletionTask, SampleTask
from queuectl.operations.inspect import without_webhook_queue
from queuectl.policy.gate import PolicyReloadTask, open_gate
from queuectl.process.adopted import Adoption
from queuectl.process.client import StartedSupervisor, SupervisorClient
from queuectl.process.helper_command import HelperRunner
from queuectl.secrets.resolver import SecretResolver
from queuectl.service.sd_notify import Notifier
from queuectl.settings import Settings
from queuectl.store.open import open_reads, open_store, store_path
from queuectl.store.store import Store
from queuectl.webhooks.delivery import WebhookTask
from queuectl.worker.config import MaintenanceTask, WorkerConfig, WorkerContext
from queuectl.worker.daemonize import report_failure, report_ready, start_daemon
from queuectl.worker.main import run_worker
from queuectl.worker.store_retry import Standby, wait_for_any

# A worker does not wait long for the store: meanwhile jobs may end, or have to be terminated.
STORE_PATIENCE: Final = 0.25
# A job leaves no reference cycles behind, so garbage collection may be rare. By default it takes a twentieth of a worker's time.
OBJECTS_BETWEEN_COLLECTIONS: Final = 20_000
READY_FD, NO_FD = "--ready-fd", "-1"
LEFT: Final = "--left="
UNFINISHED: Final = (State.PENDING, State.FAILED, State.PROCESSING)


class StartedWorker(NamedTuple):
    id: str
    pid: int
    log: str


def start_in_foreground(
    app: App,
    options: WorkerOptions,
    name: str,
    *,
    ready_fd: int | None = None,
    left: Sequence[int] = (),
    supervisor: StartedSupervisor | None = None,
) -> int:
    """Be a worker until it is done, and return the exit status. `left`: children of this process from before it restarted in place.
    `supervisor`: started early."""
    try:
        return _run(app, options, name, ready_fd, SupervisorClient(left, started=supervisor))
    except QueuectlError as error:
        if ready_fd is not None:
            report_failure(ready_fd, error)
        raise


def _run(app: App, options: WorkerOptions, name: str, ready_fd: int | None, processes: SupervisorClient) -> int:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    where = app.here
    queues = tuple(options.weights) or None
    _check_settings(app)
    gate = open_gate(app.home, options.policy, app.environ, inherited=_trust(app))
    # With the patience of a command: this is only the start, and two workers may start at the same time.
    opening = open_store(app.home, app.db, app.clock, on_wait=app.on_locked)
    _make_data_directory(app, opening)

    def settings() -> Settings:
        return load_settings(store.config(), app.environ)

    store = opening
    breaker = LockBreaker(
        app.environ, app.clock, on_kill=lambda killed: sink(StoppedProcessKilled(killed.pid, killed.message))
    )
    store = open_store(
        app.home, app.db, app.clock, patience=STORE_PATIENCE, on_wait=lambda path, _, stored: breaker(path, stored)
    )
    config = WorkerConfig(
        id=name,
        host=where.host,
        machine=where.machine,
        pid=os.getpid(),
        home=app.home,
        slots=options.slots,
        queues=queues,
        weights=tuple(weight or 1 for weight in options.weights.values()) if any(options.weights.values()) else None,
        drain=options.drain,
        idle_timeout=None if options.idle_timeout_ms is None else options.idle_timeout_ms / 1000,
        actor=actor(app.environ),
    )
    standby = Standby(app.clock)
    remaining = _remaining(store, queues, standby) if options.drain else None
    log = WorkerLog(app, remaining=remaining, json_for=config.id if options.log_format == "json" else None)
    notifier = Notifier(app.environ, app.clock)

    def emit(event: Event) -> None:
        log(event)
        notifier(event)

    # Without systemd, nothing is between the worker and its log.
    sink: Sink = emit if notifier.is_wanted else log
    adoptions: deque[Adoption] = deque()
    adopter = Adopter(config.id, config.home, adoptions)
    policy = gate.policy
    policy_reload = PolicyReloadTask(policy, home=app.home, emit=sink)
    tasks: list[MaintenanceTask] = [
        RescueTask(adopter, where, store=store, clock=app.clock, settings=settings, emit=sink),
        BatchCompletionTask(store, settings, by=actor(app.environ)),
        WebhookTask(store),
        AlertTask(store=store, here=where, settings=settings, emit=sink),
        PruneTask(config.id, where.host, store=store, home=app.home, settings=settings, emit=sink),
        SampleTask(store=store, emit=sink),
        Scheduler(store=store, settings=settings, chance=random.random, emit=sink),
        policy_reload,
    ]
    if ready_fd is not None:
        os.chdir(app.home)  # a worker in the background does not keep a directory of others busy

    def flush_and_notify() -> float | None:
        log.flush()
        return notifier.turn()

    helpers = HelperRunner()
    processes.reap_commands = helpers.reap
    secrets = SecretResolver(app.home, user=os.geteuid(), runner=helpers, gate=gate)
    context = WorkerContext(
        store,
        processes,
        app.clock,
        random.random,
        settings,
        sink,
        wait_for_any,
        adoptions,
        secrets,
        standby,
        flush_and_notify if notifier.is_wanted else log.flush,
    )

    def rescue() -> None:
        rescue_namesake(opening, adopter, clock=app.clock, settings=settings(), emit=sink)
        opening.close()

    def on_ready() -> None:
        if policy.evaluator is not None and policy.path is not None:
            policy_reload.begin(policy.path)
        if ready_fd is not None:
            report_ready(ready_fd)
        notifier.ready()

    try:
        signal = run_worker(
            config,
            context,
            # Absolute: a job that calls queuectl does so in its own directory.
            db=None if app.db is None else store_path(app.home, app.db),
            gate=gate,
            tasks=tasks,
            detached=ready_fd is not None,
            rescue_namesake=rescue,
            on_ready=on_ready,
        )
    finally:
        secrets.close()
        log.close()
    store.close()
    if signal is None:
        _restart_in_place(config.id, left=processes.left)
    return 128 + signal if signal else 0


def _restart_in_place(name: str, *, left: Iterable[int]) -> NoReturn:
    """Execute the same command in the same process, with the queuectl that is installed now."""
    words = [word for word in sys.orig_argv if not word.startswith(LEFT)]
    words += [f"{LEFT}{pid}" for pid in left]
    if READY_FD in words:  # no process waits any more, and another descriptor may have its number
        words[words.index(READY_FD) + 1] = NO_FD
    if not any(word == "--name" or word.startswith("--name=") for word in words):
        words += ["--name", name]
    os.execv(sys.executable, words)  # noqa: S606 - ourselves


def start_in_background(app: App, options: WorkerOptions, name: str) -> StartedWorker:
    """Start a worker in the background and return once it serves."""
    _check_settings(app)
    open_gate(app.home, options.policy, app.environ)
    _make_data_directory(app, app.open_store())  # report here what the worker would only report in its log
    log = paths.worker_log(app.home, name)
    words = ["worker", "start", "--name", name, *options.arguments()]
    environment = {**job_environment_base(app.environ), **_trust(app), "QUEUECTL_HOME": app.home}
    if app.db is not None:
        environment["QUEUECTL_DB"] = app.db
    pid = start_daemon(words, environment=environment, home=app.home, log=log)
    return StartedWorker(name, pid, log)


def _trust(app: App) -> dict[str, str]:
    """A job that runs queuectl uses the same data directory, and trusts it as the worker does."""
    return {paths.TRUST_VARIABLE: app.home} if app.trusts_home else {}


def _make_data_directory(app: App, store: Store) -> None:
    """Also if the database is elsewhere: a worker keeps its lock and the logs of its jobs there."""
    if store.is_shared:
        # Of no worker: a role that may not write is rejected now, and not after long retries.
        store.claims.heartbeat("", slots=0, stopping=True)
    if not app.trusts_home:
        paths.check_trusted(app.home)
    paths.check_links(app.home)
    paths.make_home(app.home)
    paths.make_folders(app.home)


def _check_settings(app: App) -> None:
    """Reject invalid settings before anything is created."""
    reads = open_reads(app.home, app.db, app.clock, on_wait=app.on_locked)
    try:
        load_settings(reads.config(), app.environ)
    finally:
        reads.close()


def _remaining(store: Store, queues: tuple[str, ...] | None, standby: Standby) -> Callable[[], int]:
    """For the progress bar: the number of unfinished jobs."""

    def remaining() -> int:
        with contextlib.suppress(QueuectlError):  # the bar is not worth an error
            with standby.away():
                tally = store.tally()
            return sum(
                tally[queue][state]
                for queue in without_webhook_queue(tally)
                if queues is None or queue in queues
                for state in UNFINISHED
            )
        return 0

    return remaining
