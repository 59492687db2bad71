"""Looking at jobs for Python programs: what there is, how far it is, what it printed, and waiting for it. See client.py."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from queuectl.clock import Clock
from queuectl.config import Settings, environ, here, host_name
from queuectl.job.duration import parse_duration_ms
from queuectl.job.model import Job, Worker
from queuectl.output.marks import Known
from queuectl.queue import batches, inspect, logs
from queuectl.queue import graph as graphs
from queuectl.queue import queues as lines
from queuectl.queue import wait as waiting
from queuectl.queue.filters import parse_count, parse_filter, parse_sort
from queuectl.queue.pythonic import Names, names, plain, resolve
from queuectl.store.protocol import Filter, Reads

Duration = str | float | timedelta


class Looking(ABC):
    """What a Queue has for seeing what there is. Nothing here writes."""

    _clock: Clock
    _home: str

    def get(self, job_id: str) -> Job:
        """The job as it is now. Raises JobNotFound or AmbiguousId.

        >>> from queuectl import Queue
        >>> with Queue() as queue:
        ...     queue.get("no-such-job")
        Traceback (most recent call last):
        queuectl.errors.JobNotFound: no job 'no-such-job'
        """
        reads = self._look()
        return reads.get(resolve(reads, job_id))

    def jobs(
        self,
        *,
        state: Names = (),
        queue: Names = (),
        tag: Names = (),
        since: str | float | datetime | timedelta | None = None,
        match: str | None = None,
        batch: Names = (),
        sort: str = "created",
        limit: int | None = None,
        offset: int = 0,
    ) -> Iterator[Job]:
        """The jobs in one of these states, of one of these queues and batches, with all of these tags; newest first.

        `since`: enqueued then or later, a duration for so long ago; `match`: with this text in the command. In bounded
        memory, however many there are. `sort` is as on the command line.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue("true", queue="mail")
        ...     [job.command for job in queue.jobs(state="pending", queue="mail")]
        ['true']
        """
        where = self._where(state=state, queue=queue, tag=tag, batch=batch, since=since, match=match)
        key, is_descending = parse_sort(sort)
        limit = parse_count(limit, subject="limit")
        offset = parse_count(offset, subject="offset") or 0
        return self._look().jobs(where, sort=key, descending=is_descending, limit=limit, offset=offset)

    def batch(self, name: str) -> dict[str, Any]:
        """How far a batch is, as `batch show --json` has it. Raises BatchNotFound.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue_many(["true", "true"], batch="nightly")
        ...     queue.batch("nightly")["waiting"]
        2
        """
        return batches.progress(self._look(), name).to_dict()

    def batches(self) -> list[dict[str, Any]]:
        """All of them, the newest first, as `batch list --json` has them."""
        return [one.to_dict() for one in batches.all_progress(self._look())]

    def graph(self, job_id: str) -> dict[str, Any]:
        """What the job waits for and what waits for it, directly or not, as `graph --json` has it.

        >>> with Queue() as queue:
        ...     build = queue.enqueue("make build")
        ...     _ = queue.enqueue("make test", after=[build])
        ...     [edge["state"] for edge in queue.graph(build.id)["edges"]]
        ['waiting']
        """
        reads = self._look()
        return graphs.graph(reads, resolve(reads, job_id)).to_dict()

    def history(self, job_id: str) -> list[dict[str, Any]]:
        """Every run of the job, the first one first, as `show --json` has them."""
        reads = self._look()
        return [run.to_dict() for run in reads.history(resolve(reads, job_id))]

    def logs(
        self,
        job_id: str,
        *,
        run: int | None = None,
        tail: int | None = None,
        markers: bool = True,
        raw: bool = False,
    ) -> str:
        """What the job printed so far, in all its runs or one of them; U+FFFD for what is not UTF-8. `raw`: with the secrets that were
        taken out, as far as this process may know them, on the host that ran it."""
        reads = self._look()
        known = _known_secrets(self._home, self._clock) if raw else None
        view = logs.LogView(run=run, markers=markers, tail=parse_count(tail, subject="tail"), known=known)
        return b"".join(logs.read(reads, resolve(reads, job_id), view, host=host_name())).decode("utf-8", "replace")

    def follow(self, job_id: str, *, markers: bool = False) -> Iterator[bytes]:
        """What the job prints, as it prints it, until it has ended for good. May begin before the job does."""
        reads = self._look()
        view = logs.LogView(markers=markers)
        ids = [resolve(reads, job_id)]
        return (piece.data for piece in logs.follow(reads, self._clock, ids, view, host=host_name()))

    def status(self) -> dict[str, Any]:
        """How many jobs are in each state and who works, as `status --json` has it.

        >>> with Queue() as queue:
        ...     queue.status()["workers"]
        {'live': 0, 'slots': 0, 'busy': 0}
        """
        return inspect.status(self._look(), is_alive=self._is_serving()).to_dict()

    def queues(self) -> list[dict[str, Any]]:
        """Every queue: its jobs, whether it is paused, its limits and its rate now, as `queue list --json` has them."""
        return [one.to_dict() for one in lines.list_queues(self._look())]

    def wait(self, job_id: str, timeout: Duration | None = None) -> Job:
        """The job, once it is completed, dead or cancelled. Raises WaitTimeout, which is a TimeoutError.

        >>> with Queue() as queue:
        ...     queue.wait(queue.enqueue("true").id, timeout="10ms")
        Traceback (most recent call last):
        queuectl.errors.WaitTimeout: still not ended after 0.01 s: ...
        """
        reads = self._look()
        seconds = None if timeout is None else parse_duration_ms(plain(timeout), subject="timeout") / 1000
        return waiting.wait(reads, self._clock, [resolve(reads, job_id)], timeout=seconds)[0]

    def wait_batch(self, name: str, timeout: Duration | None = None) -> dict[str, Any]:
        """The batch, once none of its jobs waits or runs. Raises BatchNotFound or WaitTimeout."""
        seconds = None if timeout is None else parse_duration_ms(plain(timeout), subject="timeout") / 1000
        return batches.wait(self._look(), self._clock, name, timeout=seconds).to_dict()

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_serving(self) -> Callable[[Worker], bool]:
        """Whether a worker lives and gives signs of it, as of now."""
        from queuectl.upkeep.liveness import is_serving

        where, now_ms = here(), self._look().now_ms()
        return lambda worker: is_serving(worker, here=where, now_ms=now_ms, lease_ms=lambda: self._settings().lease_ms)

    @abstractmethod
    def _look(self) -> Reads: ...

    @abstractmethod
    def _settings(self) -> Settings: ...

    def _where(self, *, state: Names, queue: Names, tag: Names, batch: Names, since: object, match: object) -> Filter:
        return parse_filter(
            states=names(state),
            queues=names(queue),
            tags=names(tag),
            batches=names(batch),
            since=since,
            match=match,
            now_ms=lambda: self._look().now_ms(),
        )


def _known_secrets(home: str, clock: Clock) -> Known:
    from queuectl.gate import open_gate  # here, since it is seldom wanted
    from queuectl.secrets.known import KnownSecrets

    return KnownSecrets(home, user=os.geteuid(), gate=open_gate(home, None, environ()), clock=clock)
