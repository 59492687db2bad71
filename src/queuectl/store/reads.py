"""The seam to the database for those who only look: every question that a store answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from queuectl.job.lifecycle import State
from queuectl.job.model import Job, Run, Worker
from queuectl.store.alerting import AlertReads
from queuectl.store.auditing import AuditReads
from queuectl.store.batches import BatchReads
from queuectl.store.choosing import After, Chosen, Filter, Sort
from queuectl.store.insight import Insight
from queuectl.store.measures import Histogram, Spread, Throughput
from queuectl.store.porting import Exports
from queuectl.store.pruning import EndedReads
from queuectl.store.queues import QueueReads
from queuectl.store.sampling import SampleReads
from queuectl.store.scheduling import ScheduleReads

OUTPUT_AT_ONCE: Final = 64


class Printed(NamedTuple):
    """What a run printed after its first `at` bytes."""

    at: int
    data: bytes


class LatestRun(NamedTuple):
    """The run of a job that was begun last, and the log of the job on the host of that run."""

    id: str
    log: str | None
    run: Run


class Reads(
    Exports, Insight, EndedReads, BatchReads, ScheduleReads, QueueReads, SampleReads, AlertReads, AuditReads, Protocol
):
    """Looking only: no method here writes or waits for a lock."""

    def now_ms(self) -> int:
        """What time it is by the clock that all times of this store go by: milliseconds since 1970-01-01 UTC."""
        ...

    def get(self, job_id: str) -> Job:
        """The job with exactly this id, or JobNotFound."""
        ...

    def resolve(self, ref: str) -> str:
        """The full id for an id, a unique beginning of one, or `last`. An exact id wins over longer ones.

        Raises JobNotFound, or AmbiguousId with up to five candidates.
        """
        ...

    def jobs(
        self,
        where: Filter = Filter(),
        *,
        sort: Sort = Sort.CREATED,
        descending: bool = True,
        limit: int | None = None,
        offset: int = 0,
        after: After | None = None,
    ) -> Iterator[Job]:
        """The jobs that match, in bounded memory. Ties and `created` go by the order of enqueue.

        Which jobs these are, and their order, is decided at one moment. A long list is read page by page without a transaction in between:
        each job is as it is when its page is read, and one that was removed or no longer matches by then is omitted. The caller may
        pause for any time, and may use the store. `after`: only those behind that place of this order.
        """
        ...

    def choose(self, where: Filter) -> list[Chosen]:
        """The jobs that match, in the order of enqueue, as they are at one moment: as much of them as a bulk change needs."""
        ...

    def count(self, where: Filter = Filter()) -> int: ...

    def tally(self) -> dict[str, dict[State, int]]:
        """For each queue that ever had a job, how many it has in each state. Costs the same at any number of jobs."""
        ...

    def totals(self) -> dict[str, dict[str, int]]:
        """For each queue, how often each of these ever happened: enqueued started completed failed dead retried
        rescued. They only grow, whatever is purged."""
        ...

    def oldest_waiting_ms(self) -> dict[str, int]:
        """For each queue with a job that is due now and waits: for how long its oldest has."""
        ...

    def history(self, job_id: str) -> list[Run]:
        """All runs in order, the one under way included."""
        ...

    def latest_runs(self, ids: Sequence[str]) -> list[LatestRun]:
        """Of those of these jobs that are there and have begun to run."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether workers of several hosts use it: then they bring what their jobs print."""
        ...

    def output(self, job_id: str, run: int, *, start: int = 0) -> list[Printed]:
        """What is kept of what a run printed, from byte `start` on, in order; the first piece may begin before it, and one
        before the end of another. At most OUTPUT_AT_ONCE pieces: fewer mean that there is no more yet."""
        ...

    def durations(self) -> tuple[Spread, Spread]:
        """Run time and waiting time of the completed jobs."""
        ...

    def histograms(self) -> dict[str, tuple[Histogram, Histogram]]:
        """For each queue: run time and waiting time of all jobs ever completed, in the buckets of job/buckets.py. They only
        grow, whatever is removed, and cost the same at any number of jobs. Without those that were written down too late, see
        store/sampling.py."""
        ...

    def throughput(self) -> Throughput:
        """How many jobs were completed in the last minute, hour and day."""
        ...

    def average_attempts(self) -> float | None: ...

    def workers(self, *, busy: bool = True) -> list[Worker]:
        """Everybody that registered and has not left. `busy`: also how many jobs each holds, which takes counting; else 0."""
        ...

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        """True when, in those of these queues (None: all) that are not paused, nothing is due, nothing runs anywhere and no
        retry waits, and when everybody has been told what became of their parents. What is held counts for nothing: nobody
        knows when it will be let go."""
        ...

    def config(self) -> dict[str, str]:
        """The stored settings, as they were written."""
        ...

    def changed(self) -> bool:
        """Whether another connection has written since the last call. Cheap enough to ask a hundred times a second.

        Raises StoreGone if the store was removed or replaced: there will never be a change to see. Raises StoreTooNew if a
        newer queuectl has changed its schema: what has begun may be ended, and nothing more may be begun.
        """
        ...

    def backup(self, path: str) -> None:
        """A consistent copy into a new file, while others go on working."""
        ...
