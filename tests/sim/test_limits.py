"""Limits of queues in the simulator: never exceeded at any instant, and nobody starves behind them."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any, Final

import pytest

from tests.sim.pool import Pool
from tests.sim.scene import Scene
from tests.sim.wire import SimStore
from tests.sim.witness import Witness
from tests.swift import swift_folder

SEEDS: Final = 200
PORTION: Final = 50
MOST: Final = 1
STARTS, WINDOW_MS = 3, 2000

# By the store itself, in the very statement that would go beyond it, whoever writes.
NEVER_MORE: Final = f"""
    create trigger if not exists never_more after update of state on jobs
    when new.state = 'processing'
     and new.queue = 'a'
     and (select count(*) from jobs where state = 'processing' and queue = 'a') > {MOST}
    begin
        select raise(abort, 'more of a limited queue run than may');
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


class ByQueue(Witness):
    """Past a queue that has no room, others are served first: of each queue by itself the best still goes first."""

    def _check_claims(self, claimed: list[Any], before: dict[int, Any], store: SimStore) -> None:
        rows = self.rows
        for queue in sorted({row.queue for row in claimed}):
            self.rows = {seq: row for seq, row in rows.items() if row.queue == queue}
            super()._check_claims([row for row in claimed if row.queue == queue], before, store)
        self.rows = rows


class LimitedScene(Scene):
    def __init__(self, seed: int, folder: Path, pool: Pool) -> None:
        super().__init__(seed, folder, pool)
        self.witness.__class__ = ByQueue
        rules = [("a", MOST, None, None), ("b", None, STARTS, WINDOW_MS)]
        insert = "insert into queues (name, concurrency, rate_starts, rate_ms) values (?, ?, ?, ?)"
        self.witness.db.executemany(insert, rules)
        for statement in ("create table if not exists begun (at integer)", "delete from begun", BEGUN, NEVER_MORE):
            self.witness.db.execute(statement)

    def check_rate(self) -> None:
        db = sqlite3.connect(self.path)
        starts = sorted(at for (at,) in db.execute("select at from begun"))
        db.close()
        for first, later in zip(starts, starts[STARTS:], strict=False):
            assert later - first >= WINDOW_MS, f"{STARTS + 1} starts within {later - first} ms"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("first", range(0, SEEDS, PORTION))
def test_no_limit_is_exceeded_at_any_instant_and_nobody_starves(first: int) -> None:
    with swift_folder() as folder:
        pool = Pool(Path(folder) / "queue.db")
        for seed in range(first, first + PORTION):
            pool.clear()
            scene = LimitedScene(seed, Path(folder), pool)
            try:
                scene.play()
                if not scene.witness.jumps:  # else the times that were written are of different clocks
                    scene.check_rate()
            except Exception as exc:
                raise AssertionError(f"seed {seed}: {exc}\n" + "\n".join(scene.stage.trace)) from exc
            finally:
                for host in scene.hosts:
                    shutil.rmtree(host.home)
        pool.forget()
