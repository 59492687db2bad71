"""The window of the list of jobs, on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl.client import Queue
from queuectl.clock import SystemClock
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.store.reads import Reads
from queuectl.store.types import Filter, Sort
from queuectl.tui.job_list import STEP, WINDOW_SIZE, JobFilter, ListOrder, Move, Window, anchor_at, read_window
from queuectl.tui.session import Session

PENDING, CANCELLED, LATER = 170, 260, 120


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    home = tmp_path_factory.mktemp("many") / "home"
    with Queue(home) as queue:
        queue.enqueue_many([{"command": f"echo {number}", "priority": number % 3} for number in range(PENDING)])
        gone = queue.enqueue_many([{"command": "true", "queue": "gone"}] * CANCELLED)
        queue.select(queue="gone").cancel()
        assert len(gone) == CANCELLED
        queue.enqueue_many([{"command": "later", "delay": "1h", "queue": f"q{number % 2}"} for number in range(LATER)])
    with Session(str(home), None, clock=SystemClock(), trust_home=True) as made:
        yield made


def down(session: Session, job_filter: JobFilter, order: ListOrder) -> list[str]:
    """The IDs of all jobs, as the window moves down."""
    window = read_window(session, job_filter, order, Move())
    ids = [job.id for job in window.jobs]
    while window.has_more:
        assert window.first is not None
        window = read_window(session, job_filter, order, Move(anchor_at(window, STEP - 1), window.first + STEP))
        assert ids[window.first :] == [job.id for job in window.jobs[: len(ids) - window.first]], "the windows overlap"
        ids += [job.id for job in window.jobs[len(ids) - window.first :]]
    return ids


def up(session: Session, job_filter: JobFilter, order: ListOrder) -> list[str]:
    """The IDs of all jobs, as the window moves up from the end."""
    window = read_window(session, job_filter, order, Move(to_end=True))
    assert not window.has_more
    ids = [job.id for job in window.jobs]
    while window.anchor is not None:
        window = read_window(session, job_filter, order, Move(window.anchor, window.first, up_from=window.jobs[0]))
        above = [job.id for job in window.jobs]
        ids = above[: above.index(ids[0])] + ids
    assert window.first == 0
    return ids


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sort", [None, Sort.CREATED, Sort.PRIORITY, Sort.RUN_AT, Sort.QUEUE, Sort.FINISHED])
def test_each_order_has_every_job_once_in_both_directions(session: Session, sort: Sort | None, reverse: bool) -> None:
    ids = down(session, JobFilter(), ListOrder(sort, reverse))
    assert len(set(ids)) == len(ids) == PENDING + CANCELLED + LATER
    assert up(session, JobFilter(), ListOrder(sort, reverse)) == ids


@pytest.mark.parametrize(
    "job_filter, count",
    [
        (JobFilter(State.CANCELLED), CANCELLED),
        (JobFilter(State.PENDING), PENDING + LATER),
        (JobFilter(query="queue:q1"), LATER // 2),
        (JobFilter(State.DEAD), 0),
        (JobFilter(query="state:pending,cancelled -queue:gone LATER"), LATER),
    ],
)
def test_a_filter_restricts_both_directions(session: Session, job_filter: JobFilter, count: int) -> None:
    ids = down(session, job_filter, ListOrder())
    assert len(ids) == count
    assert up(session, job_filter, ListOrder()) == ids


def test_memory_is_bounded_by_the_window(session: Session) -> None:
    window: Window = read_window(session, JobFilter(), ListOrder(), Move())
    assert len(window.jobs) == WINDOW_SIZE
    assert window.total == PENDING + CANCELLED + LATER


def test_a_job_whose_state_changes_while_the_window_is_read_is_in_it_once(tmp_path: Path) -> None:
    class Changing:
        """Cancels the job before its second query."""

        def __init__(self, reads: Reads) -> None:
            self._reads, self._queries = reads, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reads, name)

        def jobs(self, where: Filter, **options: Any) -> Iterator[Job]:
            self._queries += 1
            if self._queries == 2:
                queue.cancel("moves")
            yield from self._reads.jobs(where, **options)

    class ChangingSession(Session):
        def find(self) -> Any:
            return Changing(self.reads)

    with Queue(tmp_path / "home") as queue:
        for id_ in ("moves", "stays", "gone"):
            queue.enqueue("true", id=id_)
        queue.cancel("gone")
        with ChangingSession(str(tmp_path / "home"), None, clock=SystemClock(), trust_home=True) as session:
            window = read_window(session, JobFilter(), ListOrder(), Move())
    states = [(job.id, job.state) for job in window.jobs]
    assert sorted(states) == [("gone", "cancelled"), ("moves", "cancelled"), ("stays", "pending")]
