"""The hot statements stay on their indexes, and cost the same at any number of jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.edit import JobEdit
from queuectl.jobs.queue_limits import Rate
from queuectl.jobs.states import State
from queuectl.jobs.stats import Span
from queuectl.store.reads import Order, Range
from queuectl.store.sqlite.connection import SQL
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.types import After, Filter, Sort
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, Hands
from tests.swift import swift_folder

# Statement: how it has to find its jobs.
HOT: Final = {
    "ready": "jobs_ready (queue=?)",
    "ready_queues": "(queue>?)",
    "is_ready": "jobs_oldest (queue=?)",
    "promote": "jobs_due (run_at<?)",
    "next_due": "jobs_due",
    "outlook": "jobs_due",
    "archive": "INTEGER PRIMARY KEY (rowid=?)",
    "is_due": "jobs_due (run_at<?)",
    "oldest_waiting": "jobs_oldest (queue=?)",
    "claim": "INTEGER PRIMARY KEY (rowid=?)",
    "start": "INTEGER PRIMARY KEY (rowid=?)",
    "settle": "INTEGER PRIMARY KEY (rowid=?)",
    "unrun": "INTEGER PRIMARY KEY (rowid=?)",
    "is_cancelled": "INTEGER PRIMARY KEY (rowid=?)",
    "cancel_running": "INTEGER PRIMARY KEY (rowid=?)",
    "cancel_waiting": "INTEGER PRIMARY KEY (rowid=?)",
    "retry": "INTEGER PRIMARY KEY (rowid=?)",
    "purge": "INTEGER PRIMARY KEY (rowid=?)",
    "ended": "jobs_ended (state=? AND finished_at<?)",
    "ended_completed": "jobs_completed (finished_at<?)",
    "ended_of": "sqlite_autoindex_jobs_1 (id=?)",
    "count_ended": "jobs_ended (state=? AND finished_at<?)",
    "prune": "sqlite_autoindex_jobs_1 (id=?)",
    "trim_runs": "PRIMARY KEY (job=? AND number=?)",
    "trim_output": "sqlite_autoindex_output_1 (job=?)",
    "latest_run": "INTEGER PRIMARY KEY (rowid=?)",
    "latest_runs": "sqlite_autoindex_jobs_1 (id=?)",
    "history": "PRIMARY KEY (job=?)",
    "histories": "PRIMARY KEY (job=?)",
    "add_output": "INTEGER PRIMARY KEY (rowid=?)",
    "drop_output": "sqlite_autoindex_output_1 (job=? AND run=? AND at<?)",
    "output": "sqlite_autoindex_output_1 (job=? AND run=? AND at>?)",
    "running": "jobs_running (worker=?)",
    "adopt": "jobs_running (worker=?)",
    "cancel_orders": "jobs_running (worker=?)",
    "workers": "jobs_running (worker=?)",
    "retire": "jobs_running (worker=?)",
    "standing": "sqlite_autoindex_jobs_1 (id=?)",
    "ids_from": "COVERING INDEX sqlite_autoindex_jobs_1 (id>? AND id<?)",
    "completed_since": "jobs_completed (finished_at>?)",
    "rerank": "jobs_state (state=?)",
    "place": "sqlite_autoindex_jobs_1 (id=?)",
    "ahead": "jobs_ready (queue=? AND rank<?)",
    "late": "jobs_due (run_at<?)",
    "holders": "jobs_unique (unique_key=?)",
    "batch_due": "jobs_batch (batch=? AND state=?)",
    "batch_states": "COVERING INDEX jobs_batch (batch=?)",
    "batch_lately": "jobs_completed (finished_at>?)",
    "count_due": "jobs_oldest (queue=?)",
    "batches_lately": "jobs_completed (finished_at>?)",
    "forget_batches": "jobs_batch (batch=?)",
    "unfinished_jobs": "jobs_cron (cron=? AND state=?)",
    "schedule_runs": "sqlite_autoindex_jobs_1 (id=?)",
    "mark_scheduled": "sqlite_autoindex_jobs_1 (id=?)",
    "release_job": "sqlite_autoindex_jobs_1 (id=?)",
    "limits": "INTEGER PRIMARY KEY (rowid=?)",
    "earlier_starts": "INTEGER PRIMARY KEY (rowid=?)",
    "move": "jobs_state (state=?)",
    "edit": "INTEGER PRIMARY KEY (rowid=?)",
    "is_retrying": "jobs_state (state=?)",
    "ready_behind": "jobs_ready (queue=? AND rank>?)",
    "running_of_key": "jobs_running_key (queue=? AND key=?)",
    "running_keys": "jobs_running_key",
    "block_on_key": "INTEGER PRIMARY KEY (rowid=?)",
    "admit": "jobs_of_key (queue=? AND key=?)",
    "undecided": "INTEGER PRIMARY KEY (rowid=?)",
    "decidable": "edges_parent (parent=? AND state=?)",
    "decided": "undecided USING INTEGER PRIMARY KEY (rowid=?)",
    "mark_edge": "edges USING PRIMARY KEY (child=? AND parent=?)",
    "is_waiting": "edges USING PRIMARY KEY (child=?)",
    "cancelled_children": "edges USING PRIMARY KEY (child=? AND parent=?)",
    "wait_again": "edges USING PRIMARY KEY (child=?)",
    "unblock": "INTEGER PRIMARY KEY (rowid=?)",
    "orphan": "INTEGER PRIMARY KEY (rowid=?)",
    "reblock": "INTEGER PRIMARY KEY (rowid=?)",
    "block": "INTEGER PRIMARY KEY (rowid=?)",
    "new_parents": "sqlite_autoindex_jobs_1 (id=?)",
    "parents": "edges USING PRIMARY KEY (child=?)",
    "children": "edges_parent (parent=?)",
    "queues_with_key_limits": "jobs_key_limits (queue>?)",
    "measured": "jobs_completed (finished_at>? AND finished_at<?)",
    "failures": "COVERING INDEX jobs_failures (state=? AND fingerprint>?)",
    "died_since": "jobs_ended (state=? AND finished_at>?)",
}
# Who is in the hands of a worker may be looked through: they are few.
SCAN: Final = "SCAN (jobs(?! USING INDEX jobs_running)|runs|output|job_tags|edges)"
# These never look at jobs at all.
APART: Final = [
    "tally",
    "moves",
    "ageing",
    "last_seq",
    "worker_pipes",
    "stop_order",
    "heartbeat",
    "config",
    "worked",
    "join_batch",
    "set_on_complete",
    "take_batch",
    "complete_batch",
    "batch",
    "batch_page",
    "schedules",
    "schedule",
    "schedule_checks",
    "alerts",
    "alert",
    "update_alert",
    "remove_alert",
    "trim_schedule_runs",
    "rules",
    "queue_defaults",
    "set_rules",
    "unset_rules",
    "forget_starts",
    "add_start",
    "trim_starts",
    "correct_starts",
    "recent_starts",
    "per_key",
    "sampling",
    "note_sample",
    "note_removal",
    "buckets",
    "counters",
    "points",
    "points_of",
    "request",
    "keep_request",
    "forget_requests",
    "thin_points",
]


def plan(store: SqliteStore, name: str) -> list[str]:
    text = re.sub("--.*", "", SQL[name])
    parameters = (1,) * text.count("?") or dict.fromkeys(re.findall(":([a-z_]+)", text), 1)
    return [row[3] for row in store.db.all(f"explain query plan {SQL[name]}", parameters)]


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_uses_its_index_and_never_scans_the_jobs(store: SqliteStore, name: str) -> None:
    steps = plan(store, name)
    assert any(HOT[name] in step for step in steps), steps
    assert not [step for step in steps if re.match(SCAN, step)], steps


@pytest.mark.parametrize("states", [{State.DEAD}, {State.PROCESSING}, {State.DEAD, State.FAILED}, {*State}])
@pytest.mark.parametrize("narrow", [False, True])
def test_a_list_by_state_never_scans_the_jobs(store: SqliteStore, states: set[State], narrow: bool) -> None:
    where = Filter(states=frozenset(states))
    if narrow:
        where = where._replace(queues=frozenset({"q"}), since_ms=5, match="make")
    clause, values = store.where(where)
    steps = [row[3] for row in store.db.all(f"explain query plan select * from jobs{clause}", values)]
    assert not [step for step in steps if re.match(SCAN, step)], steps


@pytest.mark.parametrize("sort", [Sort.CREATED, Sort.FINISHED])
def test_a_list_of_one_kind_of_failure_is_in_the_order_of_an_index(store: SqliteStore, sort: Sort) -> None:
    where = Filter(frozenset({State.DEAD}), fingerprints=frozenset({"f"}))
    clause, values = store.where(where)
    text = f"from jobs{store.index_hint(where, sort)}{clause}{Order(sort, where, descending=True).clause}"
    (step, *rest) = [row[3] for row in store.db.all(f"explain query plan select * {text}", values)]
    assert re.search(r"INDEX jobs_(failures \(state=\? AND fingerprint=\?\)|fingerprint \(fingerprint=\?\))", step), (
        step
    )
    assert not [step for step in rest if step != "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"]  # of equal times


@pytest.mark.parametrize("name", [*HOT, *APART])
def test_no_hot_statement_sorts_jobs(store: SqliteStore, name: str) -> None:
    # They sort queues, workers and what is drawn, of which there are few, a handful, or what a person moves or removes.
    aside = {"oldest_waiting", "workers", "tally", "unfinished_jobs", "move", "running_keys", "parents", "children"}
    aside |= {"ended_of", "measured", "failures", "died_since", "batches_lately"}
    assert name in aside or not [step for step in plan(store, name) if "TEMP B-TREE" in step]


@pytest.mark.parametrize("name", APART)
def test_what_does_not_concern_jobs_does_not_touch_them(store: SqliteStore, name: str) -> None:
    assert not [step for step in plan(store, name) if re.search(r"\b(jobs|runs|job_tags)\b", step)]


# ── the work that is done ───────────────────────────────────────────────────────────────────────────────────────────

SIZES: Final = (1_000, 100_000)


class Crowd:
    """A store with so many waiting jobs, half of them delayed, and the work that a verb makes there."""

    def __init__(self, size: int, home: Path) -> None:
        self.size = size
        self.clock = FakeClock()
        self.store = SqliteStore(str(home / "queue.db"), clock=self.clock)
        self.store.set_config({"ageing": "1m"})
        queues = ("a", "b", "default")
        jobs = [
            new_job(f"j{n:06}", queue=queues[n % 3], priority=n % 7, delay_ms=3_600_000 * (n % 2)) for n in range(size)
        ]
        self.store.enqueue(jobs)
        self.worker = Hands(self.store, home)
        self.held = self.worker.claim(20)
        # Behind a parent that does not end meanwhile.
        self.store.enqueue([new_job(f"c{n:06}", depends_on=(Dependency("j000001"),)) for n in range(size // 10)])

    def steps(self, work: Callable[[Crowd], object]) -> int:
        """How many instructions of SQLite's machine `work` takes: the same on every computer, however busy."""
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return 0

        self.store.db._db.set_progress_handler(step, 1)
        try:
            work(self)
        finally:
            self.store.db._db.set_progress_handler(None, 1)
        return count


@pytest.fixture(scope="module")
def crowds() -> Iterator[list[Crowd]]:
    with swift_folder() as folder:
        made = []
        for size in SIZES:
            home = Path(folder) / str(size)
            (home / "workers").mkdir(parents=True)
            made.append(Crowd(size, home))
        yield made
        for crowd in made:
            crowd.worker.wakeup.close()
            crowd.store.close()


WORK: Final[dict[str, Callable[[Crowd], object]]] = {
    "claim": lambda crowd: crowd.worker.claim(8),
    "claim from one queue": lambda crowd: crowd.store.claims.exchange(
        "w1", claim=crowd.worker.request(8)._replace(queues=("b",))
    ),
    "settle": lambda crowd: crowd.worker.end(crowd.held.pop(), BAD),
    "settle and claim": lambda crowd: crowd.worker.run(),
    "enqueue": lambda crowd: crowd.store.enqueue([new_job(queue="b", priority=3)]),
    "cancel": lambda crowd: crowd.store.cancel(["j000101"]),
    "retry": lambda crowd: crowd.store.retry(["j000101"], states=frozenset(State)),
    "enqueue with a key": lambda crowd: crowd.store.enqueue([new_job(unique_key="k", if_exists="replace")]),
    "complete batches": lambda crowd: crowd.store.batches.complete_ended(),
    "edit": lambda crowd: crowd.store.edit(["j000501"], JobEdit(priority=3, delay_ms=0)),
    "get": lambda crowd: crowd.store.get("j000500"),
    "resolve": lambda crowd: crowd.store.resolve("j000500"),
    "tally": lambda crowd: crowd.store.tally(),
    "count": lambda crowd: crowd.store.count(Filter(states=frozenset({State.PENDING}))),
    "oldest waiting": lambda crowd: crowd.store.oldest_waiting_ms(),
    "drained": lambda crowd: crowd.store.is_drained(None),
    "running": lambda crowd: crowd.store.running("w1"),
    "orders": lambda crowd: crowd.store.claims.orders("w1"),
    "workers": lambda crowd: crowd.store.workers(),
    "first page": lambda crowd: list(crowd.store.jobs(limit=50)),
    "first page of a state": lambda crowd: list(crowd.store.jobs(Filter(states=frozenset({State.PENDING})), limit=50)),
    "deep page": lambda crowd: list(crowd.store.jobs(limit=50, within=Range(After(None, crowd.size // 2)))),
    "deep page of a state": lambda crowd: list(
        crowd.store.jobs(
            Filter(states=frozenset({State.PENDING})), limit=50, within=Range(After(None, crowd.size // 2))
        )
    ),
    "histograms": lambda crowd: crowd.store.samples.histograms(),
    "sample": lambda crowd: (crowd.clock.advance(60), crowd.store.samples.record()),
    "points": lambda crowd: crowd.store.samples.points(Span.MINUTE, since_ms=0),
    "heartbeat": lambda crowd: crowd.store.claims.heartbeat("w1", slots=1, stopping=False),
    "ahead": lambda crowd: crowd.store.ahead("j000500", queues=None, most=20),
    "enqueue behind a parent": lambda crowd: crowd.store.enqueue([new_job(depends_on=(Dependency("j000001"),))]),
    "cancel what is blocked": lambda crowd: crowd.store.cancel("c000050"),
    "nothing to decide": lambda crowd: crowd.store.dependencies.decide(),
    "is cancel requested": lambda crowd: crowd.store.is_cancel_requested("j000500"),
}


@pytest.mark.parametrize("state", [State.COMPLETED, State.DEAD, State.CANCELLED])
@pytest.mark.parametrize("descending", [True, False])
def test_a_page_of_what_has_ended_in_the_order_of_its_end_is_the_same_work_at_any_depth(
    state: State, descending: bool
) -> None:
    where, steps = Filter(states=frozenset({state})), []
    with swift_folder() as folder:
        (home := Path(folder) / "home").joinpath("workers").mkdir(parents=True)
        crowd = Crowd(0, home)
        crowd.store.enqueue([new_job() for _ in range(3000)])
        crowd.store.db.execute(
            "update jobs set state = ?, ready = 0, finished_at = 1000 + seq, updated_at = created_at", (state,)
        )

        def look(after: After | None) -> list[int]:
            found = crowd.store.jobs(where, sort=Sort.FINISHED, descending=descending, limit=20, within=Range(after))
            return [job.seq for job in found]

        for seq in (None, 1500):
            after = None if seq is None else After(1000 + seq, seq)
            assert len(look(after)) == 20
            steps.append(crowd.steps(lambda _, after=after: look(after)))
        crowd.worker.wakeup.close()
        crowd.store.close()
    assert max(steps) <= 1.5 * min(steps), steps
    assert max(steps) < 20_000


LIMITED: Final[dict[str, dict[str, object]]] = {
    "paused": {"paused": True},
    "full": {"concurrency": 1},
    "rate reached": {"rate": Rate(1, 3_600_000)},
    "rate with room": {"rate": Rate(50, 1)},
}


@pytest.mark.parametrize("what", LIMITED)
@pytest.mark.parametrize("queues", [None, ("a", "b", "default")])
def test_a_claim_past_a_limited_queue_is_the_same_work_at_any_number_of_jobs(
    crowds: list[Crowd], what: str, queues: tuple[str, ...] | None
) -> None:
    steps = []
    for crowd in crowds:
        for queue in ("a", "b"):
            crowd.store.queues.set_rules(queue, LIMITED[what])
        request = crowd.worker.request(8)._replace(queues=queues)
        crowd.store.claims.exchange("w1", claim=request)
        steps.append(crowd.steps(lambda crowd, request=request: crowd.store.claims.exchange("w1", claim=request)))
        for queue in ("a", "b"):
            crowd.store.queues.set_rules(queue, {"paused": False, "concurrency": None, "rate": None})
    assert steps[1] <= 1.5 * steps[0], steps


KEYED: Final[dict[str, Callable[[Crowd], object]]] = {
    "claim": lambda crowd: crowd.worker.claim(8),
    "claim from one queue": lambda crowd: crowd.store.claims.exchange(
        "w1", claim=crowd.worker.request(8)._replace(queues=("keyed",))
    ),
    "enqueue": lambda crowd: crowd.store.enqueue([new_job(queue="keyed", key="full", priority=9)]),
    "cancel": lambda crowd: crowd.store.cancel(["full9"]),
    "settle and claim": lambda crowd: crowd.worker.run(),
}


@pytest.mark.parametrize("what", KEYED)
def test_a_key_without_room_is_the_same_work_however_many_of_it_wait_at_the_head(what: str) -> None:
    """Nine tenths of all jobs, before all the others."""
    steps = []
    with swift_folder() as folder:
        for size in (50, 1_000):
            home = Path(folder) / str(size)
            (home / "workers").mkdir(parents=True)
            crowd = Crowd(0, home)
            crowd.store.queues.set_rules("keyed", {"per_key": 2})
            crowd.store.enqueue([new_job(f"full{n}", queue="keyed", key="full", priority=9) for n in range(9 * size)])
            crowd.store.enqueue([new_job(queue="keyed", key=f"k{n}") for n in range(size)])
            assert [claim.id for claim in crowd.worker.claim(2)] == ["full0", "full1"]
            crowd.worker.claim(2)
            steps.append(crowd.steps(KEYED[what]))
            crowd.worker.wakeup.close()
            crowd.store.close()
    assert steps[1] <= 1.5 * steps[0], steps


@pytest.mark.parametrize("what", WORK)
def test_a_hundred_times_the_jobs_is_the_same_work(crowds: list[Crowd], what: str) -> None:
    few, many = (crowd.steps(WORK[what]) for crowd in crowds)
    assert few > 0
    assert many <= 1.5 * few, f"{few} steps at {SIZES[0]} jobs, {many} at {SIZES[1]}"


def test_the_end_of_a_parent_costs_the_same_whatever_the_number_of_its_children() -> None:
    """What it tells its first children counts; the others are told later."""
    took = []
    for children in (300, 10_000):
        with swift_folder() as folder:
            (home := Path(folder) / "home").joinpath("workers").mkdir(parents=True)
            crowd = Crowd(1, home)
            crowd.store.enqueue(
                [new_job("p", queue="p"), *(new_job(depends_on=(Dependency("p"),)) for _ in range(children))]
            )
            crowd.worker.queues = ("p",)
            claim = crowd.worker.claim_one()
            took.append(crowd.steps(lambda crowd: crowd.worker.end(claim)))  # noqa: B023 - called at once
            crowd.worker.wakeup.close()
            crowd.store.close()
    assert took[1] <= 1.2 * took[0], took
