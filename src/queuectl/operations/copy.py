"""Copy the jobs, settings and schedules of a database into another database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import (
    CopyDiffers,
    JobsRunning,
    SameStore,
    StoreNotEmpty,
    WorkersAlive,
)
from queuectl.jobs.audit import Act
from queuectl.jobs.model import Worker
from queuectl.jobs.outcome import Ending
from queuectl.jobs.priority import Ageing, Standing, parse_ageing, rank
from queuectl.jobs.states import TRANSITIONS, Event, State
from queuectl.store.store import Store
from queuectl.store.transactions import Transitions
from queuectl.store.transfer import TABLES, Dump, Load
from queuectl.store.types import Row

Advance = Callable[[int, int | None], None]  # rows done, total rows


class TableCount(NamedTuple):
    what: str
    source: int
    target: int


class CopyResult(NamedTuple):
    counts: list[TableCount]
    given_back: int  # jobs that were running, and are pending in the copy
    seconds: float


def copy_store(
    source: Store,
    open_target: Callable[[], Store],
    *,
    clock: Clock,
    is_alive: Callable[[Worker], bool],
    force: bool,
    advance: Advance,
    replace: bool = False,
    why: str = "its store was copied while it ran",
    name: str | None = None,
) -> CopyResult:
    """Copy a snapshot of `source`, in bounded memory, all or nothing. `source` is not changed.

    `force`: also while workers or jobs run; later changes are not in the copy. The target is opened after the source is checked.
    `replace`: remove what the target holds. `why`: the error of the last run of a job that is running at the source. `name`: the
    name of the source for the audit log.
    """
    began = clock.monotonic()
    with source.transfers.dump() as dump:
        if not force:
            _require_idle(source, dump, is_alive=is_alive)
        target = open_target()
        try:
            if source.transfers.identity() == target.transfers.identity():
                raise SameStore(target.shown)
            with target.transfers.load() as load:
                if replace:
                    load.clear()
                elif not load.is_untouched():
                    raise StoreNotEmpty(target.shown)
                load.clear_unused()
                counts, given_back = _transfer(dump, load, now_ms=target.now_ms(), why=why, advance=advance)
                load.record(Act("restore" if replace else "copy", [name or source.shown]))
        finally:
            target.close()
    return CopyResult(counts, given_back, clock.monotonic() - began)


def _require_idle(source: Store, dump: Dump, *, is_alive: Callable[[Worker], bool]) -> None:
    if alive := [worker.id for worker in source.workers() if is_alive(worker)]:
        hint = "stop them: queuectl worker stop --all; or add --force to copy what there is now"
        raise WorkersAlive("copy", alive, hint=hint)
    if running := dump.running():
        raise JobsRunning(source.shown, running)


def _transfer(dump: Dump, load: Load, *, now_ms: int, why: str, advance: Advance) -> tuple[list[TableCount], int]:
    wanted = dump.counts()
    total, done = sum(dump.size(table) for table in TABLES), 0
    ageing = parse_ageing(dump.config().get("ageing", "off"), subject="ageing")
    last_seq = dump.last_seq()
    back = _ReleasedJobs(ageing, last_seq=last_seq, now_ms=now_ms, why=why)
    for table in TABLES:
        columns = dump.columns(table)
        for page in dump.pages(table):
            load.add(table, columns, back.settle(page, columns) if table.name == "jobs" else page)
            done += len(page)
            advance(done, total)
    load.add_transitions(back.moves.rows())
    found = load.counts()
    counts = [TableCount(what, number, found[what]) for what, number in wanted.items()]
    if wrong := [count for count in counts if count.source != count.target]:
        raise CopyDiffers(wrong)
    load.finish(last_seq=last_seq)
    return counts, back.jobs


class _ReleasedJobs:
    """Settles jobs that are running at the source: in the copy they are pending, and the run does not count as an attempt. Those with
    a cancel request are cancelled."""

    def __init__(self, ageing: Ageing, *, last_seq: int, now_ms: int, why: str) -> None:
        self.moves = Transitions()
        self.jobs = 0
        self._ageing = ageing
        self._last_seq = last_seq
        self._now_ms = now_ms
        self._why = why

    def settle(self, page: Sequence[Row], columns: Sequence[str]) -> Iterator[Row]:
        state = columns.index("state")
        for row in page:
            yield row if row[state] != State.PROCESSING else self._settle(dict(zip(columns, row, strict=True)))

    def _settle(self, job: Mapping[str, Any]) -> Row:
        is_cancelled = bool(job["cancel_requested"])
        event, ending = (Event.CANCEL, Ending.CANCELLED) if is_cancelled else (Event.RELEASE, Ending.RELEASED)
        state = TRANSITIONS[State.PROCESSING, event]
        missed = job["missed"] + self._last_seq - job["claimed_seq"]
        standing = Standing(job["priority"], job["seq"], job["eligible_at"], missed)
        now = max(self._now_ms, job["created_at"], job["started_at"])
        self.moves.add(job["queue"], State.PROCESSING.value, state.value, ending=ending.value)
        self.jobs += not is_cancelled
        changed = {
            "state": state.value,
            "ready": not is_cancelled and not job["held"],
            "token": None,
            "cancel_requested": False,
            "missed": missed,
            "rank": rank(self._ageing, standing),
            "effective_priority": job["effective_priority"] if is_cancelled else None,
            "finished_at": now,
            "error": "cancelled" if is_cancelled else self._why,
            "ending": ending.value,
            "updated_at": now,
        }
        return tuple({**job, **changed}.values())
