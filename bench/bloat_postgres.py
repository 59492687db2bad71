"""The time of a claim after many jobs were processed on PostgreSQL, without and with a long-running transaction.

While an old transaction is open (a forgotten `begin` in psql, a long report, a replica with feedback), rows that changed since
cannot be vacuumed. BENCH_JOBS sets the number of jobs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from _bench import Figure, Lab, Report, median
from _million import new_job
from _postgres import Server, main_with_server

from queuectl.jobs.outcome import Exited, settle
from queuectl.jobs.retry import RetryPolicy
from queuectl.operations.enqueue import gc_paused
from queuectl.store.open import open_store
from queuectl.store.store import Store
from queuectl.store.types import ClaimRequest, End, NewWorker

JOBS = int(os.environ.get("BENCH_JOBS", "300000"))
WARM_UP = 2_000
THOUSAND, SLOTS = 1_000, 10
HEARTBEAT, LOOK_EVERY = 5.0, 1.1  # the default; a little longer than the lifetime of a claim cursor
LOOKS = 5
TARGET = 2.0

SIZES = """
select relname,
       n_live_tup,
       n_dead_tup,
       pg_table_size(relid) as heap,
       pg_indexes_size(relid) as indexes
  from pg_stat_user_tables
 where relname in ('jobs', 'moves', 'done', 'workers')
 order by heap desc
"""


class Turn(NamedTuple):
    """The time of one batch, in milliseconds."""

    claim: float
    settle: float


class Bench:
    """A worker without processes: claimed jobs end at once."""

    def __init__(self, store: Store, home: str, name: str) -> None:
        self._store = store
        self._name = name
        self._request = ClaimRequest(SLOTS, None, "host", home)
        os.makedirs(home, exist_ok=True)
        store.claims.register(NewWorker(name, "host", 1, home, SLOTS, None)).close()
        self._beat_at = time.perf_counter() + HEARTBEAT
        self.beats: list[float] = []

    def pass_through(self) -> list[Turn]:
        """Enqueue, claim and settle a thousand jobs."""
        with gc_paused():
            self._store.enqueue([new_job(number) for number in range(THOUSAND)])
        turns = [self.turn() for _ in range(THOUSAND // SLOTS)]
        if time.perf_counter() >= self._beat_at:
            began = time.perf_counter()
            self._store.claims.heartbeat(self._name, slots=SLOTS, stopping=False)
            self.beats.append(_ms_since(began))
            self._beat_at = time.perf_counter() + HEARTBEAT
        return turns

    def look(self) -> float:
        """Do what an idle worker does at every wake-up that finds no job and no request."""
        time.sleep(LOOK_EVERY)
        began = time.perf_counter()
        self._store.claims.orders(self._name)
        assert not self._store.claims.exchange(self._name, claim=self._request).claims
        return _ms_since(began)

    def turn(self) -> Turn:
        began = time.perf_counter()
        claims = self._store.claims.exchange(self._name, claim=self._request).claims
        claimed = _ms_since(began)
        assert len(claims) == SLOTS
        policy = RetryPolicy(1000, 0)
        ends = [End(claim, settle(claim, Exited(0), policy=policy, chance=0.5), 1, 0.0, 0.0, 0, 0) for claim in claims]
        began = time.perf_counter()
        self._store.claims.exchange(self._name, ends=ends)
        return Turn(claimed, _ms_since(began))


@contextmanager
def open_transaction(server: Server, url: str, *, wanted: bool) -> Iterator[None]:
    """Open a transaction, read, and keep it open."""
    with server.connect(url) as db:
        if wanted:
            db.execute("begin isolation level repeatable read")
            db.execute("select count(*) from queuectl.jobs")
        yield


def measure(lab: Lab, server: Server, report: Report, *, is_open: bool) -> None:
    what = "a transaction held open" if is_open else "nothing held open"
    home, url = lab.new_home(), server.new_database()
    home.mkdir()
    store = open_store(str(home), url)
    bench = Bench(store, str(home), "w")
    for _ in range(WARM_UP // THOUSAND):
        bench.pass_through()
    with open_transaction(server, url, wanted=is_open):
        thousands = [bench.pass_through() for _ in range(JOBS // THOUSAND)]
        began = time.perf_counter()
        store.tally()
        status = _ms_since(began)
        first_claim = newcomer(lab, url)
        nothing = median([bench.look() for _ in range(LOOKS)])
        time.sleep(1.1)
        store.tally()  # a session reports its statistics with the first transaction that ends a second later
        sizes = table_sizes(server, url)
    store.close()

    report.row(f"{JOBS:,} jobs, {what}", "claim of 10", "", "", "settle of 10")
    report.row("", "median", "mean", "slowest", "median")
    some = {"the first thousand": thousands[0], "in the middle": thousands[len(thousands) // 2]}
    for name, turns in {**some, "the last thousand": thousands[-1]}.items():
        report.row(name, *_cells(turns))
    tenth = [turn for turns in thousands[-(len(thousands) // 10 or 1) :] for turn in turns]
    report.row("the last tenth", *_cells(tenth))
    report.row("first claim of a new worker", f"{first_claim:.2f} ms", "", "", "")
    report.row("check for actions and jobs, none found", f"{nothing:.2f} ms", "", "", "")
    report.row("counts for `status`", f"{status:.2f} ms", "", "", "")
    report.row("slowest heartbeat", f"{max(bench.beats, default=0.0):.2f} ms", "", "", "")
    report.row("", "rows", "dead rows", "table", "indexes")
    for name, live, dead, heap, indexes in sizes:
        report.row(f"  {name}", f"{live:,}", f"{dead:,}", _megabytes(heap), _megabytes(indexes))
    report.row("", "", "", "", "")
    first, last = (median([turn.claim for turn in turns]) for turns in (thousands[0], thousands[-1]))
    report.figure(Figure(f"claim, {what}: last / first thousand, median", last / first, TARGET))
    beginning = [turn for turns in thousands[: len(thousands) // 100 or 1] for turn in turns]
    report.figure(Figure(f"claim, {what}: last tenth / first hundredth, mean", _mean(tenth) / _mean(beginning), TARGET))


def newcomer(lab: Lab, url: str) -> float:
    """Return the time of the first claim of a new worker, which has no claim cursor."""
    home = lab.new_home()
    home.mkdir()
    store = open_store(str(home), url)
    store.enqueue([new_job(number) for number in range(SLOTS)])
    try:
        return Bench(store, str(home), "newcomer").turn().claim
    finally:
        store.close()


def table_sizes(server: Server, url: str) -> list[tuple[Any, ...]]:
    with server.connect(url) as db:
        return db.execute(SIZES).fetchall()


def bloat(lab: Lab, server: Server) -> Report:
    report = Report("claims after many jobs on PostgreSQL")
    for is_open in (False, True):
        measure(lab, server, report, is_open=is_open)
    return report


def _cells(turns: list[Turn]) -> tuple[str, ...]:
    claims = [turn.claim for turn in turns]
    settles = [turn.settle for turn in turns]
    return tuple(f"{value:.2f} ms" for value in (median(claims), _mean(turns), max(claims), median(settles)))


def _mean(turns: list[Turn]) -> float:
    return sum(turn.claim for turn in turns) / len(turns)


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


if __name__ == "__main__":
    main_with_server(bloat, __doc__)
