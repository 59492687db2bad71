"""The sessions of the view: threads for database access, and what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Final, NamedTuple, TypeVar

from queuectl.config import host_name
from queuectl.errors import AmbiguousId, JobNotFound, NotFound, StoreGone
from queuectl.jobs.model import Job, Run, Worker
from queuectl.jobs.states import State
from queuectl.operations import inspect
from queuectl.operations.bulk import find_jobs
from queuectl.operations.inspect import Status
from queuectl.operations.queues import QueueView, list_queues
from queuectl.store.open import store_path, store_shown
from queuectl.store.reads import Reads
from queuectl.store.types import Filter
from queuectl.store_threads import StorePool, StoreSession

T = TypeVar("T")
SHUTDOWN_SECONDS: Final = 1.0  # how long quitting waits for work in progress


class Session(StoreSession):
    """The session of a thread of the view."""

    _was_there = False

    @property
    def store_name(self) -> str:
        """The address of the database, without its password."""
        return store_shown(self._home, self._db) or store_path(self._home, self._db)

    def find(self) -> Reads | None:
        """The database; None if it does not exist yet. Raises StoreGone if it existed before: an empty screen would be wrong."""
        if not self.has_store:
            if self._was_there:
                raise StoreGone(self.store_name)
            return None
        self._was_there = True
        return self.reads


class StoreThreads:
    """All threads of the view: one for reads, one for actions, and one for each long operation, such as following a log.

    Actions run in the order of the keys: two concurrent changes of a priority would both start from the same value.
    """

    def __init__(self, home: str, db: str | None) -> None:
        self._home, self._db = home, db
        self._open: set[StorePool[Session]] = set()
        self._closing: set[Future[None]] = set()
        self.reads, self.actions = self.open(), self.open()

    def open(self) -> StorePool[Session]:
        # The command has checked the data directory.
        thread = StorePool(lambda clock: Session(self._home, self._db, clock=clock, trust_home=True))
        self._open.add(thread)
        return thread

    def shut(self, thread: StorePool[Session]) -> None:
        self._open.discard(thread)
        done = thread.leave()
        self._closing.add(done)
        done.add_done_callback(self._closing.discard)

    async def act_apart(self, work: Callable[[Session], T]) -> T:
        """Run in a separate thread: other actions do not wait for it."""
        thread = self.open()
        try:
            return await thread.ask(work)
        finally:
            self.shut(thread)

    def close(self) -> None:
        for thread in list(self._open):
            self.shut(thread)
        wait(list(self._closing), timeout=SHUTDOWN_SECONDS)


# The most important states first, with a limit for each. One query per state: there is no index for several states in one order.
MAX_JOBS_BY_STATE: Final = {
    State.PROCESSING: 100,
    State.FAILED: 20,
    State.PENDING: 40,
    State.BLOCKED: 10,
    State.DEAD: 20,
    State.COMPLETED: 20,
    State.CANCELLED: 10,
}
MAX_JOBS_OF_STATE: Final = 200
# The oldest jobs of these states are shown, and the latest of all others.
_OLDEST_FIRST: Final = frozenset({State.PROCESSING, State.FAILED, State.PENDING, State.BLOCKED})


class JobFilter(NamedTuple):
    """The filter for the list of jobs."""

    state: State | None = None
    queue: str | None = None
    text: str = ""  # in the command, or the prefix of an ID


class Snapshot(NamedTuple):
    store: str
    status: Status
    queues: list[QueueView]
    workers: list[Worker]
    completed: int  # in total, without webhook deliveries
    now_ms: int


class Page(NamedTuple):
    filter: JobFilter
    jobs: list[Job]
    now_ms: int


class Detail(NamedTuple):
    job: Job
    history: list[Run]
    now_ms: int


def has_changed(session: Session) -> bool:
    reads = session.find()
    return reads is not None and reads.changed()


def read_snapshot(session: Session) -> Snapshot | None:
    """None if there is no database yet."""
    reads = session.find()
    if reads is None:
        return None
    return Snapshot(
        session.store_name,
        inspect.status(reads, is_alive=session.is_serving()),
        list_queues(reads),
        session.workers(),
        sum(of["completed"] for of in inspect.without_webhook_queue(reads.totals()).values()),
        reads.now_ms(),
    )


def read_page(session: Session, job_filter: JobFilter) -> Page:
    reads = session.find()
    if reads is None:
        return Page(job_filter, [], 0)
    found = {job.id: job for job in _jobs(reads, job_filter)}
    return Page(job_filter, list(found.values()), reads.now_ms())


def read_detail(session: Session, job_id: str) -> Detail:
    reads = session.find()
    if reads is None:
        raise JobNotFound(job_id)
    # Without output: the log pane shows it.
    try:
        shown = inspect.show(reads, job_id, host=host_name(), output_limit=1, is_alive=session.is_serving())
    except AmbiguousId:  # it was removed, and its ID is a prefix of others
        raise JobNotFound(job_id) from None
    if shown.job.id != job_id:
        raise JobNotFound(job_id)
    return Detail(shown.job, shown.history, reads.now_ms())


def _jobs(reads: Reads, job_filter: JobFilter) -> Iterator[Job]:
    if job_filter.text:
        yield from _named(reads, job_filter)
    tally, queue = reads.tally(), job_filter.queue
    names = inspect.without_webhook_queue(tally) if queue is None else [queue]
    for state in MAX_JOBS_BY_STATE if job_filter.state is None else [job_filter.state]:
        if any(tally.get(name, {}).get(state) for name in names):
            queues = frozenset(() if queue is None else (queue,))
            text, webhooks = job_filter.text or None, queue is not None
            where = Filter(frozenset({state}), queues, match=text, includes_webhooks=webhooks)
            most = MAX_JOBS_BY_STATE[state] if job_filter.state is None else MAX_JOBS_OF_STATE
            yield from reads.jobs(where, descending=state not in _OLDEST_FIRST, limit=most)


def _named(reads: Reads, job_filter: JobFilter) -> list[Job]:
    try:
        ids = [reads.resolve(job_filter.text)]
    except AmbiguousId as error:
        ids = list(error.candidates)
    except NotFound:
        return []
    jobs = find_jobs(reads, ids).values()
    return [job for job in jobs if job_filter.state in (None, job.state) and job_filter.queue in (None, job.queue)]
