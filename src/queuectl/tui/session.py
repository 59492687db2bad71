"""The sessions of the view: threads for database access, and what they read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Final, NamedTuple, TypeVar

from queuectl.client_bulk import BulkContext, Selection
from queuectl.config import host_name
from queuectl.cron import operations as cron
from queuectl.cron.operations import ScheduleDetails
from queuectl.errors import AmbiguousId, JobNotFound, StoreGone
from queuectl.jobs.model import Job, Run, Worker
from queuectl.operations import inspect
from queuectl.operations.inspect import Status
from queuectl.operations.queues import QueueView, list_queues
from queuectl.operations.wait import Progress, all_progress
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

    def selection(self, where: Filter) -> Selection:
        return Selection(where, BulkContext(self._open_reads, self._open_store, self._clock, self._rescue, self._home))

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


class Snapshot(NamedTuple):
    store: str
    status: Status
    queues: list[QueueView]
    workers: list[Worker]
    completed: int  # in total, without webhook deliveries
    now_ms: int


class Detail(NamedTuple):
    job: Job
    history: list[Run]
    output: str | None  # the end of what the last run has printed, if it was requested
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


def read_detail(session: Session, job_id: str, *, output: int = 1) -> Detail:
    """`output`: how many bytes of its output to read. Raises JobNotFound."""
    reads = session.find()
    if reads is None:
        raise JobNotFound(job_id)
    try:
        shown = inspect.show(reads, job_id, host=host_name(), output_limit=output, is_alive=session.is_serving())
    except AmbiguousId:  # it was removed, and its ID is a prefix of others
        raise JobNotFound(job_id) from None
    if shown.job.id != job_id:
        raise JobNotFound(job_id)
    return Detail(shown.job, shown.history, shown.output, reads.now_ms())


def read_schedules(session: Session) -> list[ScheduleDetails]:
    reads = session.find()
    return [] if reads is None else cron.list_schedules(reads)


def read_batches(session: Session) -> list[Progress]:
    reads = session.find()
    return [] if reads is None else all_progress(reads)
