"""A store composed of its parts. Both dialects have the same parts; each method of the interface belongs to one of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from queuectl.store.admin import AuditLog, JobAdmin, QueueAdmin
from queuectl.store.alerts import Alerts
from queuectl.store.batches import Batches
from queuectl.store.counters import Samples
from queuectl.store.dependencies import Resolver
from queuectl.store.enqueue import EnqueueSteps
from queuectl.store.protocol import Admin, Claims, Enqueuer, Maintenance, Reads, Transfer
from queuectl.store.reads import JobReads
from queuectl.store.schedules import Schedules
from queuectl.store.transactions import Transactions
from queuectl.store.transfer import ImportParts, Transfers

if TYPE_CHECKING:
    from queuectl.jobs.audit import Actor


P = ParamSpec("P")
R = TypeVar("R")


class Parts(NamedTuple):
    """The parts without a type differ between the dialects."""

    enqueuer: Any
    reads: Any
    claims: Any
    maintenance: Any
    transfers: Transfers
    jobs: JobAdmin
    queues: QueueAdmin
    schedules: Schedules
    alerts: Alerts
    batches: Batches
    samples: Samples
    audit: AuditLog
    tx: Transactions


def _delegate(part: str, method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Call the method of the same name of a part. `method` gives the signature; protocol.py has the contract."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: ComposedStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = getattr(getattr(self.parts, part), name)(*args, **kwargs)
        return result

    return call


class ComposedStore:
    """Base of the two dialects, which create the parts that differ."""

    parts: Parts

    def compose(
        self,
        tx: Transactions,
        enqueuer: EnqueueSteps,
        resolver: Resolver,
        reads: JobReads,
        *,
        claims: Any,
        maintenance: Any,
        transfers: Callable[[ImportParts], Transfers],
    ) -> None:
        queues, schedules = QueueAdmin(tx), Schedules(tx, enqueuer, resolver)
        alerts, batches = Alerts(tx, enqueuer), Batches(tx, enqueuer)
        imports = transfers(ImportParts(reads, queues, schedules, alerts, batches, resolver))
        jobs = JobAdmin(tx, resolver)
        of_records = (jobs, queues, schedules, alerts, batches, Samples(tx), AuditLog(tx))
        self.parts = Parts(enqueuer, reads, claims, maintenance, imports, *of_records, tx)

    @property
    def actor(self) -> Actor | None:
        return self.parts.tx.actor

    @actor.setter
    def actor(self, actor: Actor | None) -> None:
        self.parts.tx.actor = actor

    @property
    def shown(self) -> str:
        return str(self.parts.reads.shown)

    @property
    def is_shared(self) -> bool:
        return bool(self.parts.reads.is_shared)

    close = _delegate("tx", Transactions.close)
    config = _delegate("tx", Transactions.config)
    queue_defaults = _delegate("tx", Transactions.queue_defaults)
    enqueue = _delegate("enqueuer", Enqueuer.enqueue)

    now_ms = _delegate("reads", JobReads.now_ms)
    get = _delegate("reads", JobReads.get)
    resolve = _delegate("reads", JobReads.resolve)
    jobs = _delegate("reads", Reads.jobs)
    choose = _delegate("reads", JobReads.choose)
    count = _delegate("reads", JobReads.count)
    tally = _delegate("reads", JobReads.tally)
    totals = _delegate("reads", JobReads.totals)
    oldest_waiting_ms = _delegate("reads", JobReads.oldest_waiting_ms)
    history = _delegate("reads", JobReads.history)
    latest_runs = _delegate("reads", JobReads.latest_runs)
    running = _delegate("reads", JobReads.running)
    output = _delegate("reads", JobReads.output)
    durations = _delegate("reads", JobReads.durations)
    throughput = _delegate("reads", JobReads.throughput)
    average_attempts = _delegate("reads", JobReads.average_attempts)
    workers = _delegate("reads", JobReads.workers)
    is_drained = _delegate("reads", Reads.is_drained)
    changed = _delegate("reads", Reads.changed)
    backup = _delegate("reads", Reads.backup)
    dead_by_error = _delegate("reads", JobReads.dead_by_error)
    parents = _delegate("reads", JobReads.parents)
    children = _delegate("reads", JobReads.children)
    ahead = _delegate("reads", Reads.ahead)
    is_cancel_requested = _delegate("reads", JobReads.is_cancel_requested)
    examine = _delegate("reads", Reads.examine)
    export = _delegate("reads", JobReads.export)
    ended = _delegate("reads", Reads.ended)
    ended_of = _delegate("reads", JobReads.ended_of)
    count_ended = _delegate("reads", JobReads.count_ended)

    exchange = _delegate("claims", Claims.exchange)
    fence = _delegate("claims", Claims.fence)
    adopt = _delegate("claims", Claims.adopt)
    rescue = _delegate("claims", Claims.rescue)
    decide = _delegate("claims", Claims.decide)
    register = _delegate("claims", Claims.register)
    heartbeat = _delegate("claims", Claims.heartbeat)
    retire = _delegate("claims", Claims.retire)

    cancel = _delegate("jobs", JobAdmin.cancel)
    retry = _delegate("jobs", JobAdmin.retry)
    edit = _delegate("jobs", JobAdmin.edit)
    move = _delegate("jobs", JobAdmin.move)

    rules = _delegate("queues", QueueAdmin.rules)
    brakes = _delegate("queues", QueueAdmin.brakes)
    running_keys = _delegate("queues", QueueAdmin.running_keys)
    rates = _delegate("queues", QueueAdmin.rates)
    set_rules = _delegate("queues", QueueAdmin.set_rules)
    set_config = _delegate("queues", QueueAdmin.set_config)
    orders = _delegate("queues", QueueAdmin.orders)
    request_stop = _delegate("queues", QueueAdmin.request_stop)

    schedules = _delegate("schedules", Schedules.schedules)
    schedule = _delegate("schedules", Schedules.schedule)
    schedule_runs = _delegate("schedules", Schedules.schedule_runs)
    schedule_checks = _delegate("schedules", Schedules.schedule_checks)
    add_schedule = _delegate("schedules", Schedules.add_schedule)
    change_schedule = _delegate("schedules", Schedules.change_schedule)
    remove_schedule = _delegate("schedules", Schedules.remove_schedule)

    alerts = _delegate("alerts", Alerts.alerts)
    alert = _delegate("alerts", Alerts.alert)
    died_since = _delegate("alerts", Alerts.died_since)
    add_alert = _delegate("alerts", Alerts.add_alert)
    update_alert = _delegate("alerts", Alerts.update_alert)
    remove_alert = _delegate("alerts", Alerts.remove_alert)

    batch = _delegate("batches", Batches.batch)
    batches = _delegate("batches", Batches.batches)
    completion_jobs = _delegate("batches", Batches.completion_jobs)
    complete_batches = _delegate("batches", Batches.complete_batches)
    enqueue_webhooks = _delegate("batches", Batches.enqueue_webhooks)
    forget_batches = _delegate("batches", Batches.forget_batches)
    forget_requests = _delegate("batches", Batches.forget_requests)

    points = _delegate("samples", Samples.points)
    histograms = _delegate("samples", Samples.histograms)
    sample = _delegate("samples", Samples.sample)

    audit = _delegate("audit", AuditLog.audit)
    note = _delegate("audit", AuditLog.note)
    forget_audit = _delegate("audit", AuditLog.forget_audit)

    prune = _delegate("maintenance", Maintenance.prune)
    trim = _delegate("maintenance", Maintenance.trim)
    shrink = _delegate("maintenance", Maintenance.shrink)
    purge = _delegate("maintenance", Admin.purge)
    reset = _delegate("maintenance", Admin.reset)

    importer = _delegate("transfers", Transfer.importer)
    identity = _delegate("transfers", Transfer.identity)
    dump = _delegate("transfers", Transfer.dump)
    load = _delegate("transfers", Transfer.load)
