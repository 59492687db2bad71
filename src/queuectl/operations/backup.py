"""Copy, back up, restore and reset a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from queuectl import paths as places
from queuectl.clock import Clock
from queuectl.errors import (
    CopyDiffers,
    FileExists,
    FileUnwritable,
    HomeUnusable,
    JobsRunning,
    QueuectlError,
    SameStore,
    StoreNotEmpty,
    WorkersAlive,
)
from queuectl.jobs.audit import Act
from queuectl.jobs.model import Worker
from queuectl.jobs.outcome import Ending
from queuectl.jobs.priority import Ageing, Standing, parse_ageing, rank
from queuectl.jobs.states import TRANSITIONS, Event, State
from queuectl.logs.parent_logs import FOLDER_SUFFIX, SUFFIX, remove_folders
from queuectl.logs.rotation import ROTATED_SUFFIX
from queuectl.operations.export import published
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.transactions import Transitions
from queuectl.store.transfer import TABLES, Dump, Load
from queuectl.store.types import Row
from queuectl.units import from_ms

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
    why: str = "its database was copied while it ran",
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


# ── back up, restore, reset ─────────────────────────────────────────────────────────────────────────────────────────


PARTIAL = ".partial"


def create_backup(store: Reads, path: str) -> int:
    """Write a snapshot of the store to a new file and return its size. The file appears under its name when it is complete."""
    if os.path.lexists(path):
        raise FileExists(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise FileUnwritable(path, "there is no such directory")
    partial = f"{path}{PARTIAL}"
    with suppress(FileNotFoundError):
        os.unlink(partial)  # of a killed process
    store.backup(partial)
    with published(partial, path):
        return os.path.getsize(partial)


def new_backup_path(home: str, clock: Clock, *, before: str) -> str:
    """The path of a new automatic backup; `before` is the command that removes the data."""
    folder = places.backups(home)
    places.make_home(home)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as exc:
        raise HomeUnusable(home, f"backups: {exc.strerror}") from exc
    # To the millisecond: two backups in one second must not have the same name.
    moment = from_ms(clock.now_ms()).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return os.path.join(folder, f"{before}-{moment}Z.db")


class ResetResult(NamedTuple):
    jobs: int  # removed
    backup: str
    schedules: int  # kept, as are queues and alerts
    queues: int
    alerts: int


def reset_store(store: Store, clock: Clock, *, home: str, is_alive: Callable[[Worker], bool]) -> ResetResult:
    """Remove all jobs, their history and logs, after a backup. Raises WorkersAlive, with nothing changed, while workers run."""
    require_no_workers(store, verb="reset", home=home, is_alive=is_alive)
    path = new_backup_path(home, clock, before="reset")
    store.backup(path)
    jobs = store.reset()
    _remove_logs(home)
    return ResetResult(jobs, path, **count_kept(store))


def count_kept(store: Reads) -> dict[str, int]:
    """The number of schedules, queues with settings, and alerts, which a reset keeps."""
    return {
        "schedules": len(store.schedules.all()),
        "queues": len(store.queues.rules()),
        "alerts": len(store.alerts.all()),
    }


def require_no_workers(store: Reads, *, verb: str, home: str, is_alive: Callable[[Worker], bool]) -> None:
    if alive := [worker for worker in store.workers() if is_alive(worker)]:
        are_ours = all(worker.home == home for worker in alive)
        hint = "queuectl worker stop" if are_ours else "queuectl worker stop --all"
        raise WorkersAlive(verb, [worker.id for worker in alive], hint=hint)


def _remove_logs(home: str) -> None:
    # By directory, not by job: this needs no memory for a million paths, and removes logs of purged jobs, too.
    if not os.path.isdir(places.logs(home)):
        return  # no job ever ran on this host
    with os.scandir(places.logs(home)) as logs:
        for entry in logs:
            if entry.name.endswith((".log", ".log" + ROTATED_SUFFIX)) and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
            elif entry.name.endswith(FOLDER_SUFFIX):
                remove_folders(entry.path.removesuffix(FOLDER_SUFFIX) + SUFFIX)


SQLITE_SUFFIXES = ("", "-wal", "-shm")  # the files of a SQLite database


class RestoreResult(NamedTuple):
    copied: CopyResult
    kept: str | None  # backup of the previous content; None if there was none


class RestoreTarget(NamedTuple):
    """The target of a restore."""

    home: str
    file: str | None  # of SQLite; None for PostgreSQL
    unusable: tuple[type[QueuectlError], ...]  # errors of a database that cannot be used as it is
    is_there: Callable[[], bool]
    open: Callable[[], Store]
    refuse_while_locked: Callable[[], None]  # by the lock files of workers, if the database cannot be read


def restore_backup(
    source: Store,
    name: str,
    place: RestoreTarget,
    *,
    clock: Clock,
    is_alive: Callable[[Worker], bool],
    advance: Advance,
) -> RestoreResult:
    """Replace the content of the target by that of `source`, a copy of the backup `name`; running jobs become pending.

    The previous content is backed up; a damaged database is moved to the backups. Raises WorkersAlive while workers run.
    """
    kept = None
    try:
        if place.is_there():
            target = place.open()
            require_no_workers(target, verb="restore", home=place.home, is_alive=is_alive)
            kept = new_backup_path(place.home, clock, before="restore")
            target.backup(kept)
            return RestoreResult(_fill(source, name, target, clock, advance), kept)
    except place.unusable:
        if place.file is None:
            raise
        place.refuse_while_locked()
        if kept is not None:
            with suppress(FileNotFoundError):  # an incomplete copy of the damaged database
                os.unlink(kept)
        kept = move_damaged(place.file, home=place.home, clock=clock)
    return RestoreResult(_fill(source, name, place.open(), clock, advance), kept)


def move_damaged(path: str, *, home: str, clock: Clock) -> str:
    """Move a database that cannot be opened to the backups."""
    kept = new_backup_path(home, clock, before="damaged")
    for beside in reversed(SQLITE_SUFFIXES):
        try:
            os.rename(path + beside, kept + beside)
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise HomeUnusable(home, f"backups: {exc.strerror}") from exc
    return kept


def _fill(source: Store, name: str, target: Store, clock: Clock, advance: Advance) -> CopyResult:
    return copy_store(
        source,
        lambda: target,
        clock=clock,
        is_alive=lambda _: False,
        force=True,
        replace=True,
        why="it ran when the backup was made",
        name=name,
        advance=advance,
    )
