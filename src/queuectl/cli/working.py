"""Wiring a worker: the store, the processes, the duties of the house and the log lines, in this process or a new one."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn

from queuectl import paths as places
from queuectl.alerts.evaluator import AlertTask
from queuectl.cli.app import App
from queuectl.cli.worker_log import WorkerLog
from queuectl.config import actor, here, job_environment_base, load_settings
from queuectl.cron.scheduler import Scheduler
from queuectl.errors import QueuectlError
from queuectl.events import Event, Sink, StoppedProcessKilled
from queuectl.jobs.states import State
from queuectl.maintenance.adoption import Heir
from queuectl.maintenance.complete import CompleteDuty
from queuectl.maintenance.lock_breaker import LockBreaker
from queuectl.maintenance.prune import PruneDuty
from queuectl.maintenance.rescue import RescueDuty, rescue_namesake
from queuectl.maintenance.sample import SampleDuty
from queuectl.operations.inspect import without_webhook_queue
from queuectl.policy.gate import open_gate
from queuectl.policy.loader import PolicyReloadTask
from queuectl.process.asking import Asking
from queuectl.process.raising import Raised
from queuectl.process.spawn import SystemProcesses
from queuectl.process.watch import Adoption
from queuectl.secrets.resolver import SecretResolver
from queuectl.service.sd_notify import Notifier
from queuectl.settings import Settings
from queuectl.store.enqueue import new_worker_id
from queuectl.store.open import open_reads, open_store, store_path
from queuectl.store.protocol import Store
from queuectl.webhooks.delivery import WebhookTask
from queuectl.worker.detach import detach, say_failed, say_ready
from queuectl.worker.plan import Duty, Plan, World
from queuectl.worker.serve import serve
from queuectl.worker.standby import HasFileno, Standby, wait_for_any

# A worker never waits long for the store: meanwhile its jobs may end, or have to be ended.
PATIENCE = 0.25
# A job leaves no cycles behind: what looks for them may look rarely. By default it takes a twentieth of a worker's time.
OBJECTS_BETWEEN_LOOKS = 20_000
READY_FD, NOBODY = "--ready-fd", "-1"
LEFT = "--left="
UNFINISHED = (State.PENDING, State.FAILED, State.PROCESSING)


class Order(NamedTuple):
    """What `worker start` was asked for."""

    name: str | None
    slots: int | None
    queues: tuple[str, ...] | None
    weights: tuple[int, ...] | None
    drain: bool
    idle_timeout: float | None
    log_format: str = "text"
    policy: str | None = None  # an absolute path; None: that of the home, if there is one


class Started(NamedTuple):
    id: str
    pid: int
    log: str


def work(
    app: App, order: Order, *, ready_fd: int | None = None, left: Sequence[int] = (), raised: Raised | None = None
) -> int:
    """Be a worker until it is over, and return the exit status. `left`: children of ours, from before we began anew. `raised`: the
    keeper of our name, if it was started already."""
    try:
        return _work(app, order, ready_fd, SystemProcesses(left, raised=raised))
    except QueuectlError as error:
        if ready_fd is not None:
            say_failed(ready_fd, error)
        raise


def _work(app: App, order: Order, ready_fd: int | None, processes: SystemProcesses) -> int:
    gc.set_threshold(OBJECTS_BETWEEN_LOOKS)
    where = here(app.environ)
    _check_settings(app)
    gate = open_gate(app.home, order.policy, app.environ, inherited=_trust(app))
    # With the patience of a command: what follows is only begun, and two may well begin at once.
    opening = open_store(app.home, app.db, app.clock, on_wait=app.on_locked)
    _make_place(app, opening)

    def settings() -> Settings:
        return load_settings(store.config(), app.environ)

    store = opening
    breaker = LockBreaker(
        app.environ, app.clock, on_kill=lambda killed: sink(StoppedProcessKilled(killed.pid, killed.message))
    )
    store = open_store(
        app.home, app.db, app.clock, patience=PATIENCE, on_wait=lambda path, _, stored: breaker(path, stored)
    )
    plan = Plan(
        id=order.name or new_worker_id(),
        host=where.host,
        machine=where.machine,
        pid=os.getpid(),
        home=app.home,
        slots=order.slots,
        queues=order.queues,
        weights=order.weights,
        drain=order.drain,
        idle_timeout=order.idle_timeout,
        actor=actor(app.environ),
    )
    standby = Standby(app.clock)
    remaining = _remaining(store, order.queues, standby) if order.drain else None
    log = WorkerLog(app, remaining=remaining, json_for=plan.id if order.log_format == "json" else None)
    manager = Notifier(app.environ, app.clock)

    def emit(event: Event) -> None:
        log(event)
        manager(event)

    sink: Sink = emit if manager.is_wanted else log
    foundlings: deque[Adoption] = deque()
    heir = Heir(plan.id, plan.home, foundlings)
    policy = gate.policy
    rules = PolicyReloadTask(policy, home=app.home, emit=sink)
    duties: list[Duty] = [
        RescueDuty(heir, where, store=store, clock=app.clock, settings=settings, emit=sink),
        CompleteDuty(store, settings, by=actor(app.environ)),
        WebhookTask(store),
        AlertTask(store=store, here=where, settings=settings, emit=sink),
        PruneDuty(plan.id, where.host, store=store, home=app.home, settings=settings, emit=sink),
        SampleDuty(store=store, emit=sink),
        Scheduler(store=store, settings=settings, chance=random.random, emit=sink),
        rules,
    ]
    if ready_fd is not None:
        os.chdir(app.home)  # a worker in the background keeps no directory of somebody else busy

    def wait(sources: Sequence[HasFileno], seconds: float) -> None:
        log.flush()
        soon = manager.turn()
        wait_for_any(sources, seconds if soon is None else min(seconds, soon))

    asking = Asking()
    processes.bury_others = asking.bury
    secrets = SecretResolver(app.home, user=os.geteuid(), asking=asking, gate=gate)
    world = World(store, processes, app.clock, random.random, settings, sink, wait, foundlings, secrets, standby)

    def inherit() -> None:
        rescue_namesake(opening, heir, clock=app.clock, settings=settings(), emit=sink)
        opening.close()

    def on_ready() -> None:
        if policy.evaluator is not None and policy.path is not None:
            rules.begin(policy.path)
        if ready_fd is not None:
            say_ready(ready_fd)
        manager.ready()

    try:
        signal = serve(
            plan,
            world,
            # Absolute: a job that calls queuectl does so in its own directory.
            db=None if app.db is None else store_path(app.home, app.db),
            gate=gate,
            duties=duties,
            detached=ready_fd is not None,
            inherit=inherit,
            on_ready=on_ready,
        )
    finally:
        secrets.close()
        log.close()
    store.close()
    if signal is None:
        _begin_anew(plan.id, left=processes.left)
    return 128 + signal if signal else 0


def _begin_anew(name: str, *, left: Iterable[int]) -> NoReturn:
    """The same command in the same process, of the queuectl that is installed now."""
    words = [word for word in sys.orig_argv if not word.startswith(LEFT)]
    words += [f"{LEFT}{pid}" for pid in left]
    if READY_FD in words:  # nobody waits for it any more, and its number may be another's
        words[words.index(READY_FD) + 1] = NOBODY
    if not any(word == "--name" or word.startswith("--name=") for word in words):
        words += ["--name", name]
    os.execv(sys.executable, words)  # noqa: S606 - ourselves


def start_detached(app: App, order: Order) -> Started:
    """Start a worker in the background and return once it serves."""
    name = order.name or new_worker_id()
    _check_settings(app)
    open_gate(app.home, order.policy, app.environ)
    _make_place(app, app.open_store())  # refuse here, in words, what the worker would only refuse in its log
    log = places.worker_log(app.home, name)
    words = ["worker", "start", "--name", name]
    words += ["--count", str(order.slots)] if order.slots is not None else []
    for which, queue in enumerate(order.queues or ()):
        words += ["--queue", queue if order.weights is None else f"{queue}={order.weights[which]}"]
    words += ["--policy", order.policy] if order.policy is not None else []
    words += ["--drain"] if order.drain else []
    words += ["--log-format", order.log_format] if order.log_format != "text" else []
    words += ["--idle-timeout", f"{order.idle_timeout}s"] if order.idle_timeout is not None else []
    environment = {**job_environment_base(app.environ), **_trust(app), "QUEUECTL_HOME": app.home}
    if app.db is not None:
        environment["QUEUECTL_DB"] = app.db
    pid = detach(words, environment=environment, home=app.home, log=log)
    return Started(name, pid, log)


def _trust(app: App) -> dict[str, str]:
    """A job that runs queuectl uses the same data directory, and trusts it as the worker does."""
    return {places.TRUST_VARIABLE: app.home} if app.trusts_home else {}


def _make_place(app: App, store: Store) -> None:
    """The home, also where the store is elsewhere: a worker keeps its lock and the logs of its jobs there."""
    if store.is_shared:
        # Of nobody: a role that may not write is told so now, and not after it was tried again for long.
        store.heartbeat("", slots=0, stopping=True)
    if not app.trusts_home:  # also if the database is elsewhere: the worker keeps files there that it relies on
        places.check_trusted(app.home)
    places.check_links(app.home)
    places.make_home(app.home)
    places.make_folders(app.home)


def _check_settings(app: App) -> None:
    """Refuse what cannot be in force before anything is made."""
    looking = open_reads(app.home, app.db, app.clock, on_wait=app.on_locked)
    try:
        load_settings(looking.config(), app.environ)
    finally:
        looking.close()


def _remaining(store: Store, queues: tuple[str, ...] | None, standby: Standby) -> Callable[[], int]:
    def remaining() -> int:
        with contextlib.suppress(QueuectlError):  # a bar is no reason to fail
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
