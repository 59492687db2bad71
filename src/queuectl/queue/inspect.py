"""Looking: one job, the whole queue, the figures. The values here are what every surface shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

from queuectl.job.lifecycle import State
from queuectl.job.model import Job, Run, Worker
from queuectl.job.names import WEBHOOKS
from queuectl.queue.cursor import place_of, read_cursor, write_cursor
from queuectl.queue.explain import running_of_key, with_reason
from queuectl.queue.ordering import MOST_SORTED, check_order
from queuectl.queue.printed import end_of_output
from queuectl.store.protocol import Filter, Reads, Sort, Spread, Throughput

States = dict[str, int]  # all seven, 0 included

T = TypeVar("T")


class Shown(NamedTuple):
    """Everything about one job."""

    job: Job
    history: list[Run]
    output: str | None  # the end of what the last run printed; None if it never ran or nobody knows any more
    gone: int = 0  # bytes that it printed before, and that are not kept

    def to_dict(self, *, show_env: bool = False) -> dict[str, Any]:
        history = [run.to_dict() for run in self.history]
        return {**self.job.to_dict(show_env=show_env), "history": history, "output": self.output}


class Page(NamedTuple):
    """Some jobs of a list. `next_cursor` leads to those behind them, None if there are none."""

    jobs: list[Job]
    next_cursor: str | None


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
    lost: int = 0  # workers that are gone and whose jobs nobody has dealt with yet; for people
    firing: tuple[str, ...] = ()  # alerts, by name; for people

    def to_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "states": self.states,
            "workers": self.workers._asdict(),
            "queues": [queue._asdict() for queue in self.queues],
            "oldest_waiting_ms": self.oldest_waiting_ms,
        }


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
            **self._asdict(),
            "duration_ms": asdict(self.duration_ms),
            "wait_ms": asdict(self.wait_ms),
            "throughput": self.throughput._asdict(),
        }


def show(
    store: Reads, ref: str, *, host: str, output_limit: int, is_alive: Callable[[Worker], bool] = lambda _: True
) -> Shown:
    """The job that `ref` names. `host` is where we are. Raises JobNotFound or AmbiguousId."""
    # History first: if the run ends in between, the job is newer than its history, never the other way round.
    job_id = store.resolve(ref)
    history = store.history(job_id)
    job = store.get(job_id)
    end = end_of_output(store, job, history, host=host, limit=output_limit)
    alive = [worker for worker in store.workers() if is_alive(worker)]
    brake = store.brakes().get(job.queue)
    job = with_reason(job, alive, store.now_ms(), brake=brake, of_key=running_of_key(store, job, brake))
    if end is None:
        return Shown(job, history, None)
    return Shown(job, history, end.data.decode("utf-8", "replace"), end.gone)


def page(
    store: Reads,
    where: Filter,
    *,
    sort: Sort,
    descending: bool,
    limit: int,
    cursor: str | None = None,
    most_sorted: int = MOST_SORTED,
) -> Page:
    """Up to `limit` jobs (1 or more) that match, from the cursor on. Raises InvalidInput for one that is not of this order, and
    for an order that no index has if more than `most_sorted` jobs would have to be sorted.

    Not by counting: a job that is there all the time, and whose key does not change, comes exactly once, whatever comes and goes
    between two pages.
    """
    after = None if cursor is None else read_cursor(cursor, sort, descending=descending)
    check_order(store, where, sort, most=most_sorted)
    found = list(store.jobs(where, sort=sort, descending=descending, limit=limit + 1, after=after))
    jobs = found[:limit]
    if len(found) == len(jobs):
        return Page(jobs, None)
    return Page(jobs, write_cursor(place_of(jobs[-1], sort), sort, descending=descending))


def status(store: Reads, *, is_alive: Callable[[Worker], bool]) -> Status:
    tally = store.tally()
    of_jobs = without_calls(tally)
    rules = store.rules()
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
        oldest_waiting_ms=max(without_calls(oldest).values(), default=None),
        lost=len(workers) - len(alive),
        firing=tuple(alert.name for alert in store.alerts() if alert.is_firing),
    )


def count_workers(alive: Sequence[Worker]) -> WorkerCount:
    return WorkerCount(len(alive), sum(worker.slots for worker in alive), sum(worker.busy for worker in alive))


def metrics(store: Reads) -> Metrics:
    tally = store.tally()
    states = _sum_states(without_calls(tally))
    durations, waits = store.durations()
    return Metrics(
        total=sum(states.values()),
        states=states,
        queues={name: all_states(counts) for name, counts in sorted(tally.items())},
        success_rate=_success_rate(states),
        average_attempts=store.average_attempts(),
        duration_ms=durations,
        wait_ms=waits,
        throughput=store.throughput(),
    )


def _success_rate(states: States) -> float | None:
    completed, dead = states["completed"], states["dead"]
    return completed / (completed + dead) if completed + dead else None


def without_calls(by_queue: Mapping[str, T]) -> dict[str, T]:
    """What people have enqueued. What tells of the ends of others is counted in its own queue only."""
    return {queue: value for queue, value in by_queue.items() if queue != WEBHOOKS}


def all_states(counts: dict[State, int]) -> States:
    return {state.value: counts.get(state, 0) for state in State}


def _sum_states(tally: dict[str, dict[State, int]]) -> States:
    return {state.value: sum(counts.get(state, 0) for counts in tally.values()) for state in State}
