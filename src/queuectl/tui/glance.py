"""What the view shows, read in one go and in bounded time: counts that cost the same at any number of jobs, and first pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from queuectl.errors import AmbiguousId, JobNotFound, NotFound
from queuectl.job.lifecycle import State
from queuectl.job.model import Job, Run, Worker
from queuectl.queue import inspect
from queuectl.queue.inspect import Status
from queuectl.queue.pick import find
from queuectl.queue.queues import QueueView, list_queues
from queuectl.store.protocol import Filter, Reads
from queuectl.tui.seat import Seat

# What is wanted first comes first, and of each no more than a person will look at. One state at a time: for several in one
# order no store has an index.
SHARES: Final = {
    State.PROCESSING: 100,
    State.FAILED: 20,
    State.PENDING: 40,
    State.BLOCKED: 10,
    State.DEAD: 20,
    State.COMPLETED: 20,
    State.CANCELLED: 10,
}
ALL_OF_ONE: Final = 200
# Of those the first in line are wanted, of all others the latest.
_OLDEST_FIRST: Final = frozenset({State.PROCESSING, State.FAILED, State.PENDING, State.BLOCKED})


class Wish(NamedTuple):
    """Which jobs somebody wants to see."""

    state: State | None = None
    queue: str | None = None
    text: str = ""  # in the command, or the beginning of an id


class Glance(NamedTuple):
    store: str
    status: Status
    queues: list[QueueView]
    workers: list[tuple[Worker, bool]]  # with whether it lives
    completed: int  # ever, without calls
    now_ms: int


class Page(NamedTuple):
    wish: Wish
    jobs: list[Job]
    now_ms: int


class Detail(NamedTuple):
    job: Job
    history: list[Run]
    now_ms: int


def has_changed(seat: Seat) -> bool:
    reads = seat.find()
    return reads is not None and reads.changed()


def look(seat: Seat) -> Glance | None:
    """None while there is no store."""
    reads = seat.find()
    if reads is None:
        return None
    serves = seat.is_serving()
    return Glance(
        seat.store_name,
        inspect.status(reads, is_alive=serves),
        list_queues(reads),
        [(worker, serves(worker)) for worker in reads.workers()],
        sum(of["completed"] for of in inspect.without_calls(reads.totals()).values()),
        reads.now_ms(),
    )


def page(seat: Seat, wish: Wish) -> Page:
    reads = seat.find()
    if reads is None:
        return Page(wish, [], 0)
    found = {job.id: job for job in _jobs(reads, wish)}
    return Page(wish, list(found.values()), reads.now_ms())


def detail(seat: Seat, job_id: str) -> Detail:
    reads = seat.find()
    if reads is None:
        raise JobNotFound(job_id)
    # Of the output nothing is wanted here: it is followed.
    try:
        shown = inspect.show(reads, job_id, host=seat.host, output_limit=1, is_alive=seat.is_serving())
    except AmbiguousId:  # it was removed, and others begin so
        raise JobNotFound(job_id) from None
    if shown.job.id != job_id:
        raise JobNotFound(job_id)
    return Detail(shown.job, shown.history, reads.now_ms())


def _jobs(reads: Reads, wish: Wish) -> Iterator[Job]:
    if wish.text:
        yield from _named(reads, wish)
    tally = reads.tally() if wish.queue is not None else inspect.without_calls(reads.tally())
    queues = frozenset() if wish.queue is None else frozenset({wish.queue})
    for state in SHARES if wish.state is None else [wish.state]:
        counted = tally if wish.queue is None else {wish.queue: tally.get(wish.queue, {})}
        if not any(states.get(state) for states in counted.values()):
            continue
        where = Filter(frozenset({state}), queues, match=wish.text or None, calls=wish.queue is not None)
        most = SHARES[state] if wish.state is None else ALL_OF_ONE
        yield from reads.jobs(where, descending=state not in _OLDEST_FIRST, limit=most)


def _named(reads: Reads, wish: Wish) -> list[Job]:
    try:
        ids = [reads.resolve(wish.text)]
    except AmbiguousId as error:
        ids = list(error.candidates)
    except NotFound:
        return []
    jobs = find(reads, ids).values()
    return [job for job in jobs if wish.state in (None, job.state) and wish.queue in (None, job.queue)]
