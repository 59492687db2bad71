"""Mistakes that somebody could make, each to be found by the simulator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import queuectl.jobs.outcome
import queuectl.logs.files
import queuectl.maintenance.adoption
import queuectl.maintenance.rescue
import queuectl.process.watch
import queuectl.store.sqlite.claims
from queuectl import errors
from queuectl.jobs.model import Claim, NewJob
from queuectl.jobs.outcome import Settlement, settle_lost
from queuectl.maintenance.liveness import Silence
from queuectl.process.ledger import Identity, Ledger
from queuectl.process.table import Entry
from queuectl.process.watch import Adoption, Child, Watch
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.connection import SQL, Connection
from queuectl.store.sqlite.enqueue import SqliteEnqueuer
from queuectl.store.types import Exchange, LastHeartbeat
from queuectl.worker.launch import Launcher
from queuectl.worker.loop import Worker
from queuectl.worker.membership import Membership
from queuectl.worker.running import Running
from queuectl.worker.runs import Runs
from tests.sim.themes import Theme

Change = Callable[[], tuple[Any, str, Any]]  # whose attribute (or item, of a dict), its name, what to put there


def _without(text: str, *parts: str) -> str:
    for part in parts:
        assert part in text, f"{part!r} is no longer in this statement: the defect has to be made anew"
        text = text.replace(part, "")
    return text


def _statement(name: str, *parts: str) -> Change:
    return lambda: (SQL, name, _without(SQL[name], *parts))


def _settle_statement(*parts: str) -> Change:
    settle = queuectl.store.sqlite.claims.SETTLE
    return lambda: (queuectl.store.sqlite.claims, "SETTLE", _without(settle, *parts))


def _worst_first() -> tuple[Any, str, Any]:
    return SQL, "ready", SQL["ready"].replace("order by rank, seq", "order by rank desc, seq")


def _counts_overwritten() -> tuple[Any, str, Any]:
    return SQL, "moved", SQL["moved"].replace("jobs = jobs + excluded.jobs", "jobs = excluded.jobs")


def _no_history() -> tuple[Any, str, Any]:
    return SQL, "archive", SQL["archive"] + "   and 0"


def _lost_are_known() -> tuple[Any, str, Any]:
    told = "(select state from workers where id = ?)"
    assert told in SQL["outlook"]
    return SQL, "outlook", SQL["outlook"].replace(told, "(select 'running' where ? is not null)")


def _early_answer() -> tuple[Any, str, Any]:
    enqueue = SqliteEnqueuer.enqueue

    def answers_first(self: SqliteEnqueuer, jobs: Sequence[NewJob]) -> list[str]:
        with contextlib.suppress(errors.Unavailable):
            enqueue(self, jobs)
        return [job.id or "" for job in jobs]

    return SqliteEnqueuer, "enqueue", answers_first


def _no_transaction() -> tuple[Any, str, Any]:
    @contextlib.contextmanager
    def transaction(self: Connection) -> Iterator[None]:
        yield

    return Connection, "transaction", transaction


def _orphans_left() -> tuple[Any, str, Any]:
    def orphans(runs: object) -> list[Entry]:
        return []

    return queuectl.maintenance.rescue, "orphans", orphans


def _buried_at_once() -> tuple[Any, str, Any]:
    reap = Runs.reap

    def buries(self: Runs, now: float) -> None:
        reap(self, now)
        for run in self._unwritten.values():
            self._world.processes.reap(run.child)
        self._unwritten.clear()

    return Runs, "reap", buries


def _no_poll() -> tuple[Any, str, Any]:
    def poll(self: Worker, now: float) -> None:
        self._poll_at = now + self._settings.poll_interval_ms / 1000

    return Worker, "_poll", poll


def _forgotten_crash() -> tuple[Any, str, Any]:
    def forgets(claim: Claim, max_crashes: int) -> Settlement:
        return settle_lost(claim._replace(crashes=claim.crashes - 1), max_crashes)

    return queuectl.jobs.outcome, "settle_lost", forgets


def _no_fence() -> tuple[Any, str, Any]:
    def fence(self: SqliteClaims, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim]:
        return self._reads.running(worker)

    return SqliteClaims, "fence", fence


def _fence_by_name() -> tuple[Any, str, Any]:
    fence = SqliteClaims.fence

    def by_name(self: SqliteClaims, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim] | None:
        return fence(self, worker)

    return SqliteClaims, "fence", by_name


def _never_away() -> tuple[Any, str, Any]:
    silent = Silence.silent

    def sleepless(self: Silence, workers: Any, *, now: float, lease: float) -> Any:
        self._looked_at = now
        return silent(self, workers, now=now, lease=lease)

    return Silence, "silent", sleepless


def _forgotten_ends() -> tuple[Any, str, Any]:
    exchange = Worker._exchange

    def forgets(self: Worker, *told: Any) -> Exchange | None:
        written = exchange(self, *told)
        if written is None:
            self._runs.over.clear()
        return written

    return Worker, "_exchange", forgets


def _late_start() -> tuple[Any, str, Any]:
    def is_sure(self: Membership, *_: object) -> bool:
        return True

    return Membership, "is_sure", is_sure


def _forgotten_finish() -> tuple[Any, str, Any]:
    def finish(self: Watch, child: Child) -> None:
        return None

    return Watch, "_finish", finish


def _forgotten_limit() -> tuple[Any, str, Any]:
    adopt = Launcher.adopt

    def without_limit(self: Launcher, adoption: Adoption, **told: Any) -> Running:
        run = adopt(self, adoption, **told)
        run.deadline = None
        return run

    return Launcher, "adopt", without_limit


def _forgotten_ledgers() -> tuple[Any, str, Any]:
    def put_aside(home: str, token: str) -> None:
        return None

    return queuectl.maintenance.adoption, "_put_aside", put_aside


def _no_adoption() -> tuple[Any, str, Any]:
    def adoptable(worker: object, claims: object) -> dict[str, Adoption]:
        return {}

    return queuectl.maintenance.adoption, "adoptable", adoptable


def _no_identity() -> tuple[Any, str, Any]:
    def is_there(process: Child | Identity) -> bool:
        found = queuectl.process.watch.entry(process.pid)
        return found is not None and not found.is_over

    return queuectl.process.watch, "is_there", is_there


def _any_boot() -> tuple[Any, str, Any]:
    def sign(self: Ledger, keeper: Identity) -> None:
        self._write(0, f"keeper {keeper.pid} {keeper.started} -")

    return Ledger, "sign", sign


def _no_word() -> tuple[Any, str, Any]:
    def note_end(self: Launcher, run: Running, why: object) -> None:
        pass

    return Launcher, "note_end", note_end


def _no_word_of_a_rescue() -> tuple[Any, str, Any]:
    def add_end(*_: object, **__: object) -> None:
        pass

    return queuectl.maintenance.rescue, "add_end", add_end


def _closed_again() -> tuple[Any, str, Any]:
    return queuectl.logs.files, "is_end_line", lambda _: False


DEFECTS: Final[dict[str, Change]] = {
    "a settle that shows no token": _settle_statement("and token = ?2\n"),
    "a settle in any state": _settle_statement("and token = ?2\n", "and state = 'processing'\n"),
    "a settle over a recorded cancel": _settle_statement("and (cancel_requested = 0 or ?3)"),
    "a claim of what is not ready": _statement("ready", " indexed by jobs_ready", "\nand ready = 1"),
    "a claim of the last in the line": _worst_first,
    "a claim outside of a transaction": _no_transaction,
    "a claim by who was declared lost": _lost_are_known,
    "an answer before the commit": _early_answer,
    "a rescue that leaves processes running": _orphans_left,
    "a rescue without a fence": _no_fence,
    "a rescue that forgets to count the crash": _forgotten_crash,
    "a fence that goes by the name alone": _fence_by_name,
    "a watcher that does not notice its own absence": _never_away,
    "a heartbeat that lifts the fence": _statement("heartbeat", "\nand state <> 'lost'"),
    "no look beside the bell": _no_poll,
    "ends that are forgotten when the store is in trouble": _forgotten_ends,
    "a child that is buried before its end is written": _buried_at_once,
    "a start without a look at the time": _late_start,
    "an heir that adopts nothing": _no_adoption,
    "an heir that forgets what another has put aside": _forgotten_ledgers,
    "an adoption that forgets the finish": _forgotten_finish,
    "an adoption that forgets the time limit": _forgotten_limit,
    "an adoption that goes by the number of the process alone": _no_identity,
    "an adoption of what ran before the power was gone": _any_boot,
    "an end that leaves no word of why": _no_word,
    "a rescue that leaves no word of what it ends": _no_word_of_a_rescue,
    "a log that is closed by everybody who comes by": _closed_again,
    "counts that are overwritten": _counts_overwritten,
    "a history that is not kept": _no_history,
}

# In which plays to look for those that few others find. The rest is found by one seed of ten, of whatever theme.
WHERE: Final[dict[str, Theme]] = {
    "a settle that shows no token": Theme.NAPS,
    "a settle in any state": Theme.NAPS,
    "a claim by who was declared lost": Theme.NAPS,
    "a fence that goes by the name alone": Theme.NAPS,
    "a heartbeat that lifts the fence": Theme.NAPS,
    "a start without a look at the time": Theme.NAPS,
    "no look beside the bell": Theme.MIXED,
    "a child that is buried before its end is written": Theme.STORE,
    "a log that is closed by everybody who comes by": Theme.STORE,
    "an heir that forgets what another has put aside": Theme.HEIRS,
    "an adoption that forgets the time limit": Theme.HEIRS,
    "an adoption of what ran before the power was gone": Theme.POWER,
    "an end that leaves no word of why": Theme.HEIRS,
    "a rescue that leaves no word of what it ends": Theme.ALERT,
}


@contextlib.contextmanager
def made(name: str) -> Iterator[None]:
    with put(*DEFECTS[name]()):
        yield


@contextlib.contextmanager
def put(owner: Any, attribute: str, value: Any) -> Iterator[None]:
    if isinstance(owner, dict):
        before, owner[attribute] = owner[attribute], value
        try:
            yield
        finally:
            owner[attribute] = before
    else:
        before = getattr(owner, attribute)
        setattr(owner, attribute, value)
        try:
            yield
        finally:
            setattr(owner, attribute, before)
