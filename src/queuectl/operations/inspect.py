"""The values that the command line, the API and the dashboard show: job details, status and metrics, the dependency graph
of a job, the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from queuectl.cron.schedule import format_time
from queuectl.jobs.audit import Entry
from queuectl.jobs.model import Job, Run, Worker
from queuectl.jobs.states import State
from queuectl.jobs.stats import Spread, Throughput
from queuectl.operations.bulk import BULK_BATCH_SIZE, find_jobs
from queuectl.operations.explain import running_of_key, with_reason
from queuectl.operations.logs import read_output_tail
from queuectl.operations.query import parse_count, parse_since
from queuectl.store.reads import Reads
from queuectl.store.types import Link
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import to_json

States = dict[str, int]  # by state, including zeros

T = TypeVar("T")


class JobDetails(NamedTuple):
    """A job with its runs and the end of its output."""

    job: Job
    history: list[Run]
    output: str | None  # the end of the output of the last run; None if unknown
    gone: int = 0  # bytes of earlier output that are not kept

    def to_dict(self, *, show_env: bool = False) -> dict[str, Any]:
        history = [run.to_dict() for run in self.history]
        return {**self.job.to_dict(show_env=show_env), "history": history, "output": self.output}


class WorkerCount(NamedTuple):
    live: int
    slots: int
    busy: int


class QueueCount(NamedTuple):
    name: str
    paused: bool
    states: States


class Status(NamedTuple):
    total: int
    states: States
    workers: WorkerCount
    queues: list[QueueCount]
    oldest_waiting_ms: int | None
    lost: int = 0  # dead workers whose jobs are not rescued yet; not in JSON
    firing: tuple[str, ...] = ()  # alerts, by name; not in JSON

    def to_dict(self) -> dict[str, Any]:
        return {name: to_json(value) for name, value in self._asdict().items() if name not in ("lost", "firing")}


class Metrics(NamedTuple):
    total: int
    states: States
    queues: dict[str, States]
    success_rate: float | None
    average_attempts: float | None
    duration_ms: Spread
    wait_ms: Spread
    throughput: Throughput

    def to_dict(self) -> dict[str, Any]:
        return {
            name: asdict(value) if isinstance(value, Spread) else to_json(value)
            for name, value in self._asdict().items()
        }


def show(
    store: Reads, ref: str, *, host: str, output_limit: int, is_alive: Callable[[Worker], bool] = lambda _: True
) -> JobDetails:
    """The details of a job. `host` is this host. Raises JobNotFound or AmbiguousId."""
    # History first: the job must not be older than its history.
    job_id = store.resolve(ref)
    history = store.history(job_id)
    job = store.get(job_id)
    end = read_output_tail(store, job, history, host=host, limit=output_limit)
    alive = [worker for worker in store.workers() if is_alive(worker)]
    load = store.queues.loads().get(job.queue)
    job = with_reason(job, alive, store.now_ms(), load=load, of_key=running_of_key(store, job, load))
    if end is None:
        return JobDetails(job, history, None)
    return JobDetails(job, history, end.data.decode("utf-8", "replace"), end.gone)


def status(store: Reads, *, is_alive: Callable[[Worker], bool]) -> Status:
    tally = store.tally()
    of_jobs = without_webhook_queue(tally)
    rules = store.queues.rules()
    oldest = store.oldest_waiting_ms()
    workers = store.workers()
    alive = list(filter(is_alive, workers))
    return Status(
        total=sum(sum(states.values()) for states in of_jobs.values()),
        states=_sum_states(of_jobs),
        workers=count_workers(alive),
        queues=[
            QueueCount(name, name in rules and rules[name].paused, all_states(tally.get(name, {})))
            for name in sorted({*tally, *rules})
        ],
        oldest_waiting_ms=max(without_webhook_queue(oldest).values(), default=None),
        lost=len(workers) - len(alive),
        firing=tuple(alert.name for alert in store.alerts.all() if alert.is_firing),
    )


def count_workers(alive: Sequence[Worker]) -> WorkerCount:
    return WorkerCount(len(alive), sum(worker.slots for worker in alive), sum(worker.busy for worker in alive))


def metrics(store: Reads) -> Metrics:
    tally = store.tally()
    states = _sum_states(without_webhook_queue(tally))
    durations, waits = store.durations()
    completed, ended = states["completed"], states["completed"] + states["dead"]
    return Metrics(
        total=sum(states.values()),
        states=states,
        queues={name: all_states(counts) for name, counts in sorted(tally.items())},
        success_rate=completed / ended if ended else None,
        average_attempts=store.average_attempts(),
        duration_ms=durations,
        wait_ms=waits,
        throughput=store.throughput(),
    )


def without_webhook_queue(by_queue: Mapping[str, T]) -> dict[str, T]:
    """Without webhook deliveries, which count only in their own queue."""
    return {queue: value for queue, value in by_queue.items() if queue != WEBHOOK_QUEUE}


def all_states(counts: dict[State, int]) -> States:
    return {state.value: counts.get(state, 0) for state in State}


def _sum_states(tally: dict[str, dict[State, int]]) -> States:
    return {state.value: sum(counts.get(state, 0) for counts in tally.values()) for state in State}


# ── dependencies ────────────────────────────────────────────────────────────────────────────────────────────────────


MAX_DEPENDENCIES: Final = 10_000  # in each direction

Ask = Callable[[Sequence[str], int], list[Link]]


class Graph(NamedTuple):
    root: str
    nodes: dict[str, Job]  # in the order of enqueue
    links: list[Link]
    is_cut: bool  # truncated at MAX_DEPENDENCIES

    def parents(self, job_id: str) -> list[Link]:
        return [link for link in self.links if link.child == job_id]

    def to_dict(self) -> dict[str, Any]:
        nodes = ("id", "state", "queue", "command", "argv", "error")
        return {
            "id": self.root,
            "nodes": [{name: to_json(getattr(job, name)) for name in nodes} for job in self.nodes.values()],
            "edges": [
                {
                    "parent": link.parent,
                    "child": link.child,
                    "when": link.when.value,
                    "else": link.otherwise.value,
                    "state": link.state.value,
                }
                for link in self.links
            ],
            "more": self.is_cut,
        }


def graph(store: Reads, ref: str) -> Graph:
    """The graph of the job `ref`. Raises JobNotFound or AmbiguousId."""
    root = store.resolve(ref)
    above, cut_above = _follow(root, lambda ids, limit: store.parents(ids, limit=limit), lambda link: link.parent)
    below, cut_below = _follow(root, lambda ids, limit: store.children(ids, limit=limit), lambda link: link.child)
    links = [*above, *below]
    jobs = find_jobs(store, dict.fromkeys([root, *(id_ for link in links for id_ in (link.parent, link.child))]))
    if root not in jobs:
        store.get(root)  # raises JobNotFound if it was removed meanwhile
    nodes = {job.id: job for job in sorted(jobs.values(), key=lambda job: job.seq)}
    there = [link for link in links if link.parent in nodes and link.child in nodes]
    return Graph(root, nodes, there, cut_above or cut_below)


def _follow(root: str, ask: Ask, far: Callable[[Link], str]) -> tuple[list[Link], bool]:
    """Breadth first. Returns the dependencies, and whether there are more than MAX_DEPENDENCIES."""
    found: dict[tuple[str, str], Link] = {}
    seen, level = {root}, [root]
    while level:
        reached: list[str] = []
        for start in range(0, len(level), BULK_BATCH_SIZE):
            left = MAX_DEPENDENCIES - len(found)
            links = ask(level[start : start + BULK_BATCH_SIZE], left + 1)
            for link in links[:left]:
                found[link.parent, link.child] = link
                if (other := far(link)) not in seen:
                    seen.add(other)
                    reached.append(other)
            if len(links) > left:
                return list(found.values()), True
        level = reached
    return list(found.values()), False


# ── audit log ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Recorded(NamedTuple):
    """An entry as commands and the HTTP API show it."""

    seq: int
    at: int
    who: dict[str, Any]
    what: str
    subjects: list[str]
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @classmethod
    def of(cls, entry: Entry) -> Recorded:
        before, after = (None if text is None else json.loads(text) for text in (entry.before, entry.after))
        return cls(entry.seq, entry.at, json.loads(entry.actor), entry.action, json.loads(entry.targets), before, after)

    @property
    def by(self) -> str:
        token = self.who.get("token")
        name = f"{self.who.get('user') or self.who.get('uid')}@{self.who.get('host')}"
        return f"{name} ({token})" if token else name

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "at": format_time(self.at)}


def audit_records(
    reads: Reads,
    *,
    since: object = None,
    subject: str | None = None,
    who: str | None = None,
    what: str | None = None,
    before: int | None = None,
    limit: int | str | None = None,
    now_ms: Callable[[], int],
    dashes: str = "",
) -> Iterator[Recorded]:
    """The newest first. `subject`: of this job, queue, schedule, worker or setting. `who`: a user, uid, host, program or token.
    `what`: an action, or a group of actions, such as `queue` for `queue pause`. `before`: only those older than the entry with this number."""
    since_ms = 0 if since is None else parse_since(since, subject=f"{dashes}since", now_ms=now_ms)
    has = None if subject is None else json.dumps(subject, ensure_ascii=False)
    # The name that a list shows: user, host and token. The database looks for one of them.
    part = None if who is None else json.dumps(who.partition("@")[0], ensure_ascii=False).strip('"')
    entries = reads.audit.entries(since_ms=since_ms, has=has, who=part, what=what, newest=True, behind=before)
    found = map(Recorded.of, entries)
    chosen = (
        one
        for one in found
        if (subject is None or subject in one.subjects)
        and (who is None or who in {*map(str, one.who.values()), one.by})
        and (what is None or one.what == what or one.what.startswith(f"{what} "))
    )
    return islice(chosen, parse_count(limit, subject=f"{dashes}limit"))
