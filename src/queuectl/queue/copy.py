"""Moving: all of a store into another, of the same kind or not."""

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
from queuectl.job.ageing import parse_ageing
from queuectl.job.audit import Act
from queuectl.job.lifecycle import TRANSITIONS, Event, State
from queuectl.job.model import Worker
from queuectl.job.outcome import Ending
from queuectl.job.rank import Ageing, Standing, rank
from queuectl.store.copying import TABLES, Dump, Load, Movable, Row
from queuectl.store.counting import Moves

Advance = Callable[[int, int | None], None]  # rows done, rows in all


class Count(NamedTuple):
    what: str
    source: int
    target: int


class Copied(NamedTuple):
    counts: list[Count]
    given_back: int  # jobs that ran, and wait again in the copy
    seconds: float


def copy(
    source: Movable,
    open_target: Callable[[], Movable],
    *,
    clock: Clock,
    is_alive: Callable[[Worker], bool],
    force: bool,
    advance: Advance,
    replace: bool = False,
    why: str = "its store was copied while it ran",
    name: str | None = None,
) -> Copied:
    """All of `source` as it is now, in bounded memory, all or nothing; `source` itself is not changed.

    `force`: also while it is at work. What is done there from now on is not in the copy. The target is opened when there is
    nothing to be said against the source. `replace`: by what `source` holds, whatever it has in it. `why`: what is said of the
    last run of a job that runs at the source. `name`: by which people know the source, if not by its own.
    """
    began = clock.monotonic()
    with source.dump() as dump:
        if not force:
            _refuse_at_work(source, dump, is_alive=is_alive)
        target = open_target()
        try:
            if source.identity() == target.identity():
                raise SameStore(target.shown)
            with target.load() as load:
                if replace:
                    load.clear()
                elif not load.is_untouched():
                    raise StoreNotEmpty(target.shown)
                load.make_room()
                counts, given_back = _transfer(dump, load, now_ms=target.now_ms(), why=why, advance=advance)
                load.record(Act("restore" if replace else "copy", [name or source.shown]))
        finally:
            target.close()
    return Copied(counts, given_back, clock.monotonic() - began)


def _refuse_at_work(source: Movable, dump: Dump, *, is_alive: Callable[[Worker], bool]) -> None:
    if alive := [worker.id for worker in source.workers() if is_alive(worker)]:
        hint = "stop them: queuectl worker stop --all; or add --force to copy what there is now"
        raise WorkersAlive("copy", alive, hint=hint)
    if running := dump.running():
        raise JobsRunning(source.shown, running)


def _transfer(dump: Dump, load: Load, *, now_ms: int, why: str, advance: Advance) -> tuple[list[Count], int]:
    wanted = dump.counts()
    total, done = sum(dump.size(table) for table in TABLES), 0
    ageing = parse_ageing(dump.config().get("ageing", "off"), subject="ageing")
    last_seq = dump.last_seq()
    back = _GivenBack(ageing, last_seq=last_seq, now_ms=now_ms, why=why)
    for table in TABLES:
        columns = dump.columns(table)
        for page in dump.pages(table):
            load.add(table, columns, back.settle(page, columns) if table.name == "jobs" else page)
            done += len(page)
            advance(done, total)
    load.moved(back.moves.rows())
    found = load.counts()
    counts = [Count(what, number, found[what]) for what, number in wanted.items()]
    if wrong := [count for count in counts if count.source != count.target]:
        raise CopyDiffers(wrong)
    load.finish(last_seq=last_seq)
    return counts, back.jobs


class _GivenBack:
    """Jobs that run at the source: in the copy nobody runs them, so there they wait again, uncharged, as if their worker had
    been told to end at once; those that somebody has called off are called off."""

    def __init__(self, ageing: Ageing, *, last_seq: int, now_ms: int, why: str) -> None:
        self.moves = Moves()
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
        called_off = bool(job["cancel_requested"])
        event, ending = (Event.CANCEL, Ending.CANCELLED) if called_off else (Event.RELEASE, Ending.RELEASED)
        state = TRANSITIONS[State.PROCESSING, event]
        missed = job["missed"] + self._last_seq - job["claimed_seq"]
        standing = Standing(job["priority"], job["seq"], job["eligible_at"], missed)
        now = max(self._now_ms, job["created_at"], job["started_at"])
        self.moves.add(job["queue"], State.PROCESSING.value, state.value, ending=ending.value)
        self.jobs += not called_off
        changed = {
            "state": state.value,
            "ready": not called_off and not job["held"],
            "token": None,
            "cancel_requested": False,
            "missed": missed,
            "rank": rank(self._ageing, standing),
            "effective_priority": job["effective_priority"] if called_off else None,
            "finished_at": now,
            "error": "cancelled" if called_off else self._why,
            "ending": ending.value,
            "updated_at": now,
        }
        return tuple({**job, **changed}.values())
