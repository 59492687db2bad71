"""Limits of queues in the simulator: never exceeded at any instant, and no job starves behind them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

import queuectl.store.admission
from queuectl.jobs.queue_limits import Rate
from queuectl.store.admission import Limit
from queuectl.store.sqlite.claims import SqliteLimitedQueues
from queuectl.store.sqlite.connection import SqliteTransactions
from tests.needs import FULL
from tests.sim.defects import put
from tests.sim.pool import Pool
from tests.sim.scene import Scene
from tests.sim.store import SimStore
from tests.sim.witness import Witness
from tests.swift import swift_folder

SEEDS: Final = 200 if FULL else 80  # of each scene
PORTION: Final = 40
BOUND: Final = 100  # within so many seeds every defect has to be found
MOST: Final = 1
STARTS, WINDOW_MS = 3, 2000
PER_KEY: Final = {"a": 1, "b": 2}
KEYS: Final = 2

# By the store itself, in the very statement that would exceed it, whichever process writes.
NEVER_MORE: Final = f"""
    create trigger if not exists never_more after update of state on jobs
    when new.state = 'processing'
     and new.queue = 'a'
     and exists (select 1 from queues where concurrency is not null)
     and (select count(*) from jobs where state = 'processing' and queue = 'a') > {MOST}
    begin
        select raise(abort, 'more of a limited queue run than may');
    end
"""
NEVER_MORE_OF_A_KEY: Final = """
    create trigger if not exists never_more_of_a_key after update of state on jobs
    when new.state = 'processing'
     and (select count(*) from jobs where state = 'processing' and queue = new.queue and key = new.key)
         > coalesce(new.places, (select per_key from queues where name = new.queue))
    begin
        select raise(abort, 'more of a key run than may');
    end
"""

# When each was claimed. Not what a row says in the end of its start: that is off by as long as its worker waited for the store.
BEGUN: Final = """
    create trigger if not exists begin_b after update of state on jobs
    when new.state = 'processing'
     and new.queue = 'b'
    begin
        insert into begun values (new.started_at);
    end
"""
TRIGGERS: Final = ("create table if not exists begun (at integer)", BEGUN, NEVER_MORE, NEVER_MORE_OF_A_KEY)


class ByLine(Witness):
    """Past those who have no room, others are served first: of each queue, and of each key, by itself the best still goes first."""

    line: ClassVar[Callable[[Any], tuple[str, ...]]]

    def _check_claims(self, claimed: list[Any], before: dict[int, Any], store: SimStore) -> None:
        rows, line = self.rows, type(self).line
        for one in sorted({line(row) for row in claimed}):
            self.rows = {seq: row for seq, row in rows.items() if line(row) == one}
            super()._check_claims([row for row in claimed if line(row) == one], before, store)
        self.rows = rows


class ByQueue(ByLine):
    line = staticmethod(lambda row: (row.queue,))


class ByKey(ByLine):
    line = staticmethod(lambda row: (row.queue, row.key or ""))


class LimitedScene(Scene):
    """So many at a time in one queue, and so many in a time in the other."""

    rules: ClassVar[list[tuple[Any, ...]]] = [("a", MOST, None, None, None), ("b", None, STARTS, WINDOW_MS, None)]
    witness_is: ClassVar[type[Witness]] = ByQueue

    def __init__(self, seed: int, folder: Path, pool: Pool) -> None:
        super().__init__(seed, folder, pool)
        self.witness.__class__ = self.witness_is
        insert = "insert into queues (name, concurrency, rate_starts, rate_ms, per_key) values (?, ?, ?, ?, ?)"
        self.witness.db.executemany(insert, self.rules)
        for statement in (*TRIGGERS, "delete from begun"):
            self.witness.db.execute(statement)

    def check_rate(self) -> None:
        if self.witness.jumps:  # the times that were written are of different clocks
            return
        db = sqlite3.connect(self.path)
        starts = sorted(at for (at,) in db.execute("select at from begun"))
        db.close()
        for first, later in zip(starts, starts[STARTS:], strict=False):
            assert later - first >= WINDOW_MS, f"{STARTS + 1} starts within {later - first} ms"


class KeyedScene(LimitedScene):
    """A number of each key at a time."""

    rules: ClassVar[list[tuple[Any, ...]]] = [(queue, None, None, None, most) for queue, most in PER_KEY.items()]
    witness_is: ClassVar[type[Witness]] = ByKey

    def key(self, job: int) -> str | None:
        return f"k{job % KEYS}" if job % 5 else None

    def check_rate(self) -> None:
        """They have none."""


class ArrayScene(KeyedScene):
    """Arrays that say themselves how many of them run; their queues say nothing."""

    rules: ClassVar[list[tuple[Any, ...]]] = []

    def key(self, job: int) -> str | None:
        return f"array:{job % KEYS}" if job % 5 else None

    def places(self, job: int) -> int | None:
        return 1 + job % KEYS if job % 5 else None


SCENES: Final = {"queues": LimitedScene, "keys": KeyedScene, "arrays": ArrayScene}


def failure_of(scene_is: type[LimitedScene], seeds: range) -> str | None:
    """What is wrong with the first of these seeds that shows it."""
    with swift_folder() as folder:
        pool = Pool(Path(folder) / "queue.db")
        for seed in seeds:
            pool.clear()
            scene = scene_is(seed, Path(folder), pool)
            try:
                scene.play()
                scene.check_rate()
            except Exception as exc:  # noqa: BLE001 - a traceback of ours is a failure as well
                pool.forget()
                return f"seed {seed}: {exc}\n" + "\n".join(scene.stage.trace)
            finally:
                for host in scene.hosts:
                    shutil.rmtree(host.home)
        pool.forget()
    return None


@pytest.mark.timeout(180)
@pytest.mark.parametrize("first", range(0, SEEDS, PORTION))
@pytest.mark.parametrize("limited", SCENES)
def test_no_limit_is_exceeded_at_any_instant_and_no_job_starves(limited: str, first: int) -> None:
    failure = failure_of(SCENES[limited], range(first, first + PORTION))
    assert failure is None, failure


# ── deliberate mistakes ───────────────────────────────────────────────────────────────────────────────


def _any_number(self: Limit) -> int | None:
    return None


def _no_place(self: Limit) -> int | None:
    return None if self.concurrency is None else 0


def _never(rate: Rate, earlier: Any, *, now_ms: int) -> tuple[int, int]:
    return 0, now_ms + WINDOW_MS


def _at_once(rate: Rate, earlier: Any, *, now_ms: int) -> tuple[int, None]:
    return len(earlier), None


def _none_runs(self: SqliteLimitedQueues, queue: str, keys: Any) -> dict[str, int]:
    return {}


def _none_is_readmitted(self: SqliteTransactions, keys: Any) -> None:
    return None


DEFECTS: Final[dict[str, tuple[str, Any, str, Any, str]]] = {
    "a queue whose places are not counted": ("queues", Limit, "free_slots", _any_number, "more of a limited queue run"),
    "a rate that is always open": ("queues", queuectl.store.admission, "allowed_starts", _at_once, "starts within"),
    "a key whose runs are not counted": ("keys", SqliteLimitedQueues, "running", _none_runs, "more of a key run"),
    "an array whose runs are not counted": (
        "arrays",
        SqliteLimitedQueues,
        "running",
        _none_runs,
        "more of a key run",
    ),
    "a queue whose place is never free": ("queues", Limit, "free_slots", _no_place, "quiet seconds"),
    "a rate that never opens": ("queues", queuectl.store.admission, "allowed_starts", _never, "quiet seconds"),
    "an end of an array that frees no slot": (
        "arrays",
        SqliteTransactions,
        "admit",
        _none_is_readmitted,
        "was before|quiet seconds",
    ),
    "an end that frees no slot": (
        "keys",
        SqliteTransactions,
        "admit",
        _none_is_readmitted,
        "was before|quiet seconds",
    ),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_deliberate_defect_of_a_limit_is_found(defect: str) -> None:
    limited, owner, name, instead, told = DEFECTS[defect]
    with put(owner, name, instead):
        failure = failure_of(SCENES[limited], range(BOUND))
    assert failure is not None, f"not found in {BOUND} seeds"
    assert re.search(told, failure), failure
