"""Deliberate mistakes, each to be found by the simulator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import queuectl.jobs.outcome
import queuectl.logs.writer
import queuectl.maintenance.adoption
import queuectl.maintenance.rescuer
import queuectl.process.tree
import queuectl.store.sqlite.claims
from queuectl import errors
from queuectl.jobs.model import Claim, NewJob
from queuectl.jobs.outcome import Settlement, settle_lost
from queuectl.maintenance.adoption import Adopter
from queuectl.maintenance.liveness import SilenceDetector
from queuectl.maintenance.rescuer import Rescue
from queuectl.process.adopted import AdoptedRuns, Adoption
from queuectl.process.journal import Journal
from queuectl.process.model import Child, Identity, ProcessInfo
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.connection import SQL, Connection
from queuectl.store.sqlite.enqueue import SqliteEnqueuer
from queuectl.store.types import Exchange, LastHeartbeat
from queuectl.worker.executor import Executor
from queuectl.worker.heartbeat import Heartbeat
from queuectl.worker.launcher import Launcher
from queuectl.worker.loop import Worker
from tests.sim.themes import Theme

Change = Callable[[], tuple[Any, str, Any]]  # whose attribute (or item, of a dict), its name, what to put there


def _without(text: str, *parts: str) -> str:
    for part in parts:
        assert part in text, f"{part!r} is no longer in this statement: change the defect"
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

    def answers_first(self: SqliteEnqueuer, jobs: Sequence[NewJob], **given: Any) -> list[str]:
        with contextlib.suppress(errors.Unavailable):
            enqueue(self, jobs, **given)
        return [job.id or "" for job in jobs]

    return SqliteEnqueuer, "enqueue", answers_first


def _no_transaction() -> tuple[Any, str, Any]:
    @contextlib.contextmanager
    def transaction(self: Connection) -> Iterator[None]:
        yield

    return Connection, "transaction", transaction


def _members_left() -> tuple[Any, str, Any]:
    """In a rescue; workers ask their `Processes`."""

    class Tree:
        def __getattr__(self, name: str) -> Any:
            return getattr(queuectl.process.tree, name)

        def members(self, runs: Mapping[str, object]) -> dict[str, list[ProcessInfo]]:
            return {token: [] for token in runs}

    return queuectl.maintenance.rescuer, "tree", Tree()


def _recorded_at_once() -> tuple[Any, str, Any]:
    update = Executor.update

    def forgets(self: Executor, now: float) -> None:
        update(self, now)
        for token in [end.claim.token for end in self.completer]:
            if (run := self.runs.get(token)) is not None and run.child is not None:
                self._processes.recorded(run.child)
        self._processes.flush()

    return Executor, "update", forgets


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
    silent = SilenceDetector.silent

    def sleepless(self: SilenceDetector, workers: Any, *, now: float, lease: float) -> Any:
        self._checked_at = now
        return silent(self, workers, now=now, lease=lease)

    return SilenceDetector, "silent", sleepless


def _forgotten_ends() -> tuple[Any, str, Any]:
    exchange = Worker._exchange

    def forgets(self: Worker, *given: Any) -> Exchange | None:
        written = exchange(self, *given)
        if written is None:
            self._executor.completer.clear()
        return written

    return Worker, "_exchange", forgets


def _late_start() -> tuple[Any, str, Any]:
    def ensure_fresh(self: Heartbeat, *_: object) -> float:
        return math.inf

    return Heartbeat, "ensure_fresh", ensure_fresh


def _no_deadline() -> tuple[Any, str, Any]:
    ensure_fresh = Heartbeat.ensure_fresh

    def without_end(self: Heartbeat, *given: Any) -> float | None:
        return None if ensure_fresh(self, *given) is None else math.inf

    return Heartbeat, "ensure_fresh", without_end


def _forgotten_exit() -> tuple[Any, str, Any]:
    def exit_of(self: AdoptedRuns, child: Child) -> None:
        return None

    return AdoptedRuns, "_exit", exit_of


def _forgotten_limit() -> tuple[Any, str, Any]:
    adopt = Executor._adopt

    def without_limit(self: Executor, adoption: Adoption) -> None:
        adopt(self, adoption)
        self.runs.get(adoption.claim.token).deadline = None  # type: ignore[union-attr]

    return Executor, "_adopt", without_limit


def _forgotten_journals() -> tuple[Any, str, Any]:
    def record(home: str, token: str) -> None:
        return None

    return queuectl.maintenance.adoption, "_record_in_kept_journal", record


def _no_adoption() -> tuple[Any, str, Any]:
    def hand_over(worker: object, claims: object, *, to: Adopter, store: object) -> set[str]:
        return set()

    return queuectl.maintenance.rescuer, "hand_over", hand_over


def _no_identity() -> tuple[Any, str, Any]:
    def is_running(process: Child | Identity) -> bool:
        found = queuectl.process.tree.find(process.pid)
        return found is not None and not found.is_zombie

    return queuectl.process.tree, "is_running", is_running


def _any_boot() -> tuple[Any, str, Any]:
    def sign(self: Journal, supervisor: Identity) -> None:
        self._write(0, f"supervisor {supervisor.pid} {supervisor.started} -")

    return Journal, "sign", sign


def _no_word() -> tuple[Any, str, Any]:
    def note_termination(self: Launcher, *_: object) -> None:
        pass

    return Launcher, "note_termination", note_termination


def _no_word_of_a_rescue() -> tuple[Any, str, Any]:
    def append_terminations(*_: object, **__: object) -> None:
        pass

    return queuectl.maintenance.rescuer, "append_terminations", append_terminations


def _ended_again() -> tuple[Any, str, Any]:
    return queuectl.logs.writer, "is_end_line", lambda _: False


def _no_end_of_a_frozen_supervisor() -> tuple[Any, str, Any]:
    def uncertain(self: Rescue) -> set[str]:
        return set()

    return Rescue, "_uncertain", uncertain


DEFECTS: Final[dict[str, Change]] = {
    "a settle that shows no token": _settle_statement("and token = ?2\n"),
    "a settle in any state": _settle_statement("and token = ?2\n", "and state = 'processing'\n"),
    "a settle over a recorded cancel": _settle_statement("and (cancel_requested = 0 or ?3)"),
    "a claim of what is not ready": _statement("ready", " indexed by jobs_ready", "\nand ready = 1"),
    "a claim of the last in the line": _worst_first,
    "a claim outside of a transaction": _no_transaction,
    "a claim by who was declared lost": _lost_are_known,
    "an answer before the commit": _early_answer,
    "a rescue that leaves processes running": _members_left,
    "a rescue without a fence": _no_fence,
    "a rescue that forgets to count the crash": _forgotten_crash,
    "a fence that goes by the name alone": _fence_by_name,
    "a watcher that does not notice its own absence": _never_away,
    "a heartbeat that lifts the fence": _statement("heartbeat", "\nand state <> 'lost'"),
    "no poll beside the wake-ups": _no_poll,
    "ends that are forgotten when the database is in trouble": _forgotten_ends,
    "a run that is forgotten before its end is recorded": _recorded_at_once,
    "a start without a look at the time": _late_start,
    "a request to start without a deadline": _no_deadline,
    "a worker that adopts nothing": _no_adoption,
    "a worker that forgets the journals of earlier ones": _forgotten_journals,
    "an adoption that forgets the exit": _forgotten_exit,
    "an adoption that forgets the time limit": _forgotten_limit,
    "an adoption that goes by the number of the process alone": _no_identity,
    "an adoption of what ran before the power was gone": _any_boot,
    "a termination without its reason in the journal": _no_word,
    "a rescue without its terminations in the journal": _no_word_of_a_rescue,
    "a log that is ended by every process that finds it": _ended_again,
    "a rescue that lets a frozen supervisor start its runs": _no_end_of_a_frozen_supervisor,
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
    "no poll beside the wake-ups": Theme.MIXED,
    "a run that is forgotten before its end is recorded": Theme.STORE,
    "a log that is ended by every process that finds it": Theme.STORE,
    "a worker that forgets the journals of earlier ones": Theme.STORE,
    "an adoption that forgets the time limit": Theme.ADOPTION,
    "an adoption that goes by the number of the process alone": Theme.STORE,
    "an adoption of what ran before the power was gone": Theme.POWER,
    "a termination without its reason in the journal": Theme.ADOPTION,
    "a rescue without its terminations in the journal": Theme.ALERT,
    "a rescue that lets a frozen supervisor start its runs": Theme.STALLED,
    "a request to start without a deadline": Theme.STALLED,
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
