"""Removing what has ended: how much at a time, which of it, and what a crash leaves."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.config import load_settings
from queuectl.events import Event, StoreTrouble
from queuectl.filelock import take_lock
from queuectl.jobs.states import FINAL, State
from queuectl.logs.cleanup import Removed, write_note
from queuectl.maintenance.pruner import CHECK_EVERY, TASK_PAUSE, Plan, Pruner, PruneTask, foresee, prune
from queuectl.paths import removing_file
from queuectl.settings import Settings
from queuectl.store.open import open_store
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.types import End
from tests.clock import FakeClock
from tests.e2e.scene import Scene
from tests.factories import new_job, settlement
from tests.program import Program
from tests.store.hands import BAD, PID, Hands
from tests.wait import wait_until

DAY = 86_400


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    opened = open_store(str(home), None, clock)
    assert isinstance(opened, SqliteStore)
    yield opened
    opened.close()


@pytest.fixture
def worker(store: SqliteStore, home: Path) -> Iterator[Hands]:
    hands = Hands(store, home)
    yield hands
    hands.wakeup.close()


def pruner(store: SqliteStore, home: Path, *, rows: int = 500) -> Pruner:
    return Pruner(store, home=str(home), writer="me", rows=rows)


def everything(store: SqliteStore) -> Plan:
    return Plan(dict.fromkeys(sorted(FINAL), store.now_ms()))


def log_of(home: Path, job_id: str) -> Path:
    return home / "logs" / f"{job_id}.log"


def run_all(store: SqliteStore, worker: Hands, home: Path, names: list[str]) -> None:
    """Completed, each with a log of ten bytes."""
    store.enqueue([new_job(name) for name in names])
    claims = worker.claim(len(names))
    store.claims.exchange(worker.name, ends=[End(claim, settlement(claim), PID, 0, 0, 0, 0) for claim in claims])
    for claim in claims:
        Path(claim.log).write_bytes(b"0123456789")


# ── how much at a time ──────────────────────────────────────────────────────────────────────────────────────────────


def test_no_transaction_holds_more_than_so_many_rows(store: SqliteStore, worker: Hands, home: Path) -> None:
    """The promise is 50 ms of write lock at most; what bounds it on every machine is how much there is to do under it."""
    store.enqueue([new_job(tags=("a", "b")) for _ in range(40)])
    for claim in worker.claim(40):
        worker.end(claim)
    store.enqueue([new_job("often", max_retries=1)])
    for _ in range(75):
        worker.run(BAD)
        store.retry(["often"], states=frozenset(State))
    store.cancel(["often"])
    plan, limit = everything(store), 30
    at_work, steps = pruner(store, home, rows=limit), 0
    is_last = False
    while not is_last:
        before = store.db._db.total_changes
        is_last = at_work.step(plan).is_last
        counted = 4  # the rows that say so: of `moves`, of `sampling`, and two of `buckets`
        assert store.db._db.total_changes - before <= limit + counted
        steps += 1
    assert store.count() == 0
    assert steps > 8


def test_a_step_of_the_task_is_one_small_transaction_and_then_jobs_have_their_turn(
    store: SqliteStore, worker: Hands, home: Path, clock: FakeClock
) -> None:
    run_all(store, worker, home, [f"j{number}" for number in range(250)])
    clock.advance(31 * DAY)
    task = PruneTask("w1", "here", store=store, home=str(home), settings=lambda: load_settings({}, {}), emit=print)
    left, now = [250], 1000.0
    while (again := task.step(now)) == now + TASK_PAUSE:
        left.append(store.count())
        now = again
    assert again == now + CHECK_EVERY
    assert left == [250, 150, 50, 0]
    assert list((home / "logs").iterdir()) == []


class SlowClock(FakeClock):
    """On a machine where little is done between two looks at it."""

    def monotonic(self) -> float:
        self.advance(0.004)
        return super().monotonic()


def test_where_removing_takes_long_there_are_fewer_at_a_time_and_none_is_passed_over(
    home: Path, worker: Hands, store: SqliteStore, clock: FakeClock
) -> None:
    ids = [f"j{number:02}" for number in range(20)]
    run_all(store, worker, home, ids)
    slow = open_store(str(home), None, SlowClock(clock.now_ms() + DAY))
    assert isinstance(slow, SqliteStore)
    slow.enqueue([new_job("busy", priority=9)])
    worker.claim_one()
    steps, removing = [], pruner(slow, home)
    plan = Plan({State.COMPLETED: slow.now_ms()})
    while not (step := removing.step(plan)).is_last:
        steps.append(step.jobs[State.COMPLETED])
    slow.close()
    assert sum(steps) == 20
    assert max(steps) < 10
    assert list((home / "logs").iterdir()) == []
    assert [job.id for job in store.jobs()] == ["busy"]


# ── which of it ─────────────────────────────────────────────────────────────────────────────────────────────────────


def end_one_each(store: SqliteStore, worker: Hands) -> None:
    store.enqueue([new_job("done"), new_job("dead", max_retries=1)])
    worker.run()
    worker.run(BAD)
    store.enqueue([new_job("off"), new_job("waits", delay_ms=10 * 365 * DAY * 1000), new_job("runs", priority=9)])
    store.cancel(["off"])
    worker.claim_one()


@pytest.mark.parametrize(
    "settings, days, left",
    [
        ({}, 29, ["dead", "done", "off"]),
        ({}, 31, ["dead"]),
        ({"retain-completed": "forever"}, 3650, ["dead", "done", "off"]),
        ({"retain-completed": "forever", "retain-dead": "1d"}, 2, ["done", "off"]),
        ({"retain-completed": "0s", "retain-dead": "0s"}, 0, []),
    ],
)
def test_a_worker_keeps_what_the_settings_say_and_what_has_not_ended(
    store: SqliteStore,
    worker: Hands,
    home: Path,
    clock: FakeClock,
    settings: dict[str, str],
    days: int,
    left: list[str],
) -> None:
    end_one_each(store, worker)
    clock.advance(days * DAY)
    task = PruneTask(
        "w1", "here", store=store, home=str(home), settings=lambda: load_settings(settings, {}), emit=print
    )
    for now in range(10):
        task.step(now)
    assert sorted(job.id for job in store.jobs()) == sorted([*left, "runs", "waits"])


def test_without_settings_that_hold_nothing_is_removed(
    store: SqliteStore, worker: Hands, home: Path, clock: FakeClock
) -> None:
    def settings() -> Settings:
        return load_settings({"retain-completed": "soon"}, {})

    end_one_each(store, worker)
    clock.advance(365 * DAY)
    task = PruneTask("w1", "here", store=store, home=str(home), settings=settings, emit=print)
    assert task.step(5.0) == 5.0 + CHECK_EVERY
    assert store.count() == 5


def test_a_store_that_lets_nothing_be_removed_is_told_once_and_asked_later(
    store: SqliteStore, worker: Hands, home: Path, clock: FakeClock
) -> None:
    told: list[Event] = []
    end_one_each(store, worker)
    clock.advance(365 * DAY)
    store.db.execute("create trigger no before delete on jobs begin select raise(abort, 'not here'); end")
    task = PruneTask(
        "w1", "here", store=store, home=str(home), settings=lambda: load_settings({}, {}), emit=told.append
    )
    assert [task.step(now) - now for now in (1.0, 2.0)] == [CHECK_EVERY] * 2
    assert len(told) == 1
    assert isinstance(told[0], StoreTrouble)
    assert "not here" in told[0].problem
    assert store.count() == 5


def test_what_would_be_removed_is_what_is_removed(
    store: SqliteStore, worker: Hands, home: Path, clock: FakeClock
) -> None:
    run_all(store, worker, home, ["a", "b", "c"])
    log_of(home, "b").unlink()
    plan = everything(store)
    foreseen = foresee(store, plan)
    assert foreseen.logs == Removed(files=2, bytes=20, elsewhere=1)
    counted: list[int] = []
    assert prune(pruner(store, home), plan, clock=clock, advance=counted.append) == foreseen
    assert counted == [3]


# ── after a crash ───────────────────────────────────────────────────────────────────────────────────────────────────


def leave_note(home: Path, *, store: str, logs: dict[str, str], writer: str = "dead-one") -> None:
    """As a process that is killed does."""
    write_note(str(home), writer=writer, store=store, logs=logs).leave()


def test_logs_that_a_killed_prune_left_go_with_the_next(store: SqliteStore, worker: Hands, home: Path) -> None:
    run_all(store, worker, home, ["gone", "kept"])
    logs = {name: str(log_of(home, name)) for name in ("gone", "kept")}
    leave_note(home, store=store.shown, logs=logs)
    store.prune(["gone"], before_ms=store.now_ms())
    assert pruner(store, home).finish_abandoned() == Removed(files=1, bytes=10)
    assert not log_of(home, "gone").exists()
    assert log_of(home, "kept").exists()
    assert list((home / "workers").glob("*.gone")) == []


def test_a_note_about_another_store_is_left_alone(store: SqliteStore, home: Path) -> None:
    log = log_of(home, "theirs")
    log.write_text("of a job that is in another store")
    leave_note(home, store="postgresql://elsewhere/work", logs={"theirs": str(log)})
    assert pruner(store, home).finish_abandoned() == Removed()
    assert log.exists()
    assert len(list((home / "workers").glob("*.gone"))) == 1


def test_a_note_whose_writer_lives_is_left_to_it(store: SqliteStore, home: Path) -> None:
    log = log_of(home, "a")
    log.write_text("x")
    note = write_note(str(home), writer="other", store=store.shown, logs={"a": str(log)})
    assert pruner(store, home).finish_abandoned() == Removed()
    assert note.finish(["a"], is_back=lambda _: False) == Removed(1, 1)


def test_the_log_of_a_new_job_that_took_the_id_at_once_is_left(store: SqliteStore, worker: Hands, home: Path) -> None:
    run_all(store, worker, home, ["back", "gone"])
    logs = {name: str(log_of(home, name)) for name in ("back", "gone")}
    note = write_note(str(home), writer="me", store=store.shown, logs=logs)
    gone = store.prune(["back", "gone"], before_ms=store.now_ms())
    run_all(store, worker, home, ["back"])
    assert note.finish(gone, is_back=lambda job_id: job_id == store.get("back").id) == Removed(1, 10)
    assert log_of(home, "back").exists()
    assert not log_of(home, "gone").exists()


def test_half_a_note_says_nothing_and_goes(store: SqliteStore, home: Path) -> None:
    path = Path(removing_file(str(home), "dead-one"))
    path.write_text('{"store": "')
    assert pruner(store, home).finish_abandoned() == Removed()
    assert not path.exists()


def test_a_note_that_cannot_be_written_keeps_no_job(store: SqliteStore, worker: Hands, home: Path) -> None:
    """As on a disk that is full: a reason to prune."""
    run_all(store, worker, home, ["a"])
    Path(removing_file(str(home), "me")).mkdir()
    assert pruner(store, home).step(everything(store)).logs == Removed(1, 10)
    assert store.count() == 0


def test_a_prune_that_is_killed_leaves_no_job_without_its_log_and_the_next_finishes_it(
    store: SqliteStore, worker: Hands, home: Path, queuectl: Program
) -> None:
    run_all(store, worker, home, [f"j{number:04}" for number in range(4000)])
    store.claims.retire("w1")
    running = queuectl.start("prune", "--older-than", "0", "--yes")
    wait_until(lambda: store.count() < 4000, every=0.001, what="the first to be removed")
    running.send_signal(signal.SIGKILL)
    running.wait()
    left = {job.id for job in store.jobs()}
    assert 0 < len(left) < 4000
    assert left <= {path.stem for path in (home / "logs").glob("*.log")}
    done = queuectl("prune", "--older-than", "0", "--yes", "--json", check=0).json
    assert done["jobs"]["completed"] == len(left)
    assert list((home / "logs").iterdir()) == []
    assert list((home / "workers").glob("*.gone")) == []


def test_two_prunes_at_once_remove_each_job_once(
    store: SqliteStore, worker: Hands, home: Path, queuectl: Program
) -> None:
    run_all(store, worker, home, [f"j{number:04}" for number in range(4000)])
    words = ("prune", "--older-than", "0", "--yes", "--json")
    both = [queuectl.start(*words, stdout=subprocess.PIPE) for _ in range(2)]
    answers = [json.loads(process.communicate()[0]) for process in both]
    assert sum(answer["jobs"]["completed"] for answer in answers) == 4000
    assert store.count() == 0
    assert list((home / "logs").iterdir()) == []


def test_a_running_worker_removes_what_it_has_kept_for_long_enough(scene: Scene) -> None:
    scene.configure(retain_completed="0s")
    job = scene.enqueue("echo hi")
    scene.queuectl("worker", "start", "--drain", check=0)
    scene.worker()
    wait_until(lambda: scene.store.count() == 0, what=f"{job} to be removed")
    wait_until(lambda: not list((scene.home / "logs").iterdir()), what="its log to be removed")


def test_the_lock_of_a_note_is_free_again_after_it(store: SqliteStore, worker: Hands, home: Path) -> None:
    run_all(store, worker, home, ["a"])
    pruner(store, home).step(everything(store))
    lock = take_lock(removing_file(str(home), "me"))
    assert lock is not None
    lock.remove()
