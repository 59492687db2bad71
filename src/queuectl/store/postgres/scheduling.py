"""Schedules in PostgreSQL. See store/scheduling.py."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.errors import ScheduleExists, ScheduleNotFound
from queuectl.job.cron.model import Change, PastTick, Schedule, Tick, View
from queuectl.store import scheduling as rows
from queuectl.store.auditing import run_by_hand, scheduled
from queuectl.store.counting import Moves
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.edges import PostgresEdges
from queuectl.store.postgres.inbox import PostgresInbox
from queuectl.store.postgres.trouble import run_again
from queuectl.store.postgres.unique import held
from queuectl.store.scheduling import TICKS_KEPT, UNENDED_SHOWN, Look, Rule, not_too_late, not_twice
from queuectl.store.unique import keys_of


class _Unchanged(Exception):  # not an error: the way out of a transaction in which nothing was written
    """The rule had nothing to say."""


class PostgresSchedules(PostgresInbox):
    def schedules(self) -> list[Schedule]:
        (found,) = self._db.ask(Question(SQL["schedules"]))
        return [rows.schedule(row) for row in found]

    def schedule(self, name: str) -> Schedule:
        (found,) = self._db.ask(Question(SQL["schedule"], {"name": name}))
        if not found:
            raise ScheduleNotFound(name)
        return rows.schedule(found[0])

    def ticks(self, name: str, *, limit: int, fired: bool = False) -> list[PastTick]:
        (found,) = self._db.ask(Question(SQL["ticks"], {"schedule": name, "fired": fired, "limit": limit}))
        return [rows.past_tick(row) for row in found]

    def looks(self, *, limit: int) -> list[Look]:
        (found,) = self._db.ask(Question(SQL["looks"], {"limit": limit}))
        return rows.looks(found, now_ms=self._clock.now_ms())

    @run_again
    def add_schedule(self, schedule: Schedule) -> None:
        with self._db.transaction(after=self._ring()):
            if not self._db.execute(SQL["add_schedule"], rows.schedule_values(schedule)):
                raise ScheduleExists(schedule.name)
            self._record(scheduled(None, schedule))

    @run_again
    def change_schedule(self, name: str, rule: Rule) -> Change | None:
        try:
            with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
                schedule, now = self._hold(name), self._clock.now_ms()
                values = {"name": name, "waiting": schedule.waiting, "limit": UNENDED_SHOWN}
                view = View(schedule, now, rows.unended(self._db.all(SQL["unended"], values)))
                change = rule(view)
                if change is None:
                    raise _Unchanged
                self._db.execute(SQL["change_schedule"], rows.schedule_values(change.schedule))
                if change.release is not None:
                    self._db.execute(SQL["free_waiting"], {"id": change.release, "now": now})
                written = self._write_ticks(name, change.ticks, now, moves)
                self._record(scheduled(schedule, change.schedule))
                self._record(run_by_hand(written))
        except _Unchanged:
            return None
        if any(tick.job is not None and tick.job.if_exists == "replace" for tick in written):
            PostgresEdges(self._db).try_to_settle_children()  # some may have waited for one that made way
        return change._replace(ticks=tuple(written))

    @run_again
    def remove_schedule(self, name: str) -> None:
        with self._db.transaction(after=self._ring()):
            schedule = self._hold(name)
            self._db.execute(SQL["remove_schedule"], {"name": name})
            if schedule.waiting is not None:
                self._db.execute(SQL["free_waiting"], {"id": schedule.waiting, "now": self._clock.now_ms()})
            self._record(scheduled(schedule, None))

    # ── within a transaction ────────────────────────────────────────────────────────────────────────────────────────

    def _hold(self, name: str) -> Schedule:
        """From now on nobody else can decide about it, until the end of this transaction."""
        row = self._db.one(SQL["hold_schedule"], {"name": name})
        if row is None:
            raise ScheduleNotFound(name)
        return rows.schedule(row)

    def _write_ticks(self, name: str, ticks: Sequence[Tick], now: int, moves: Moves) -> list[Tick]:
        """Those that nobody has decided about before."""
        batches = sorted({tick.job.batch for tick in ticks if tick.job is not None and tick.job.batch is not None})
        ended = [name for name in batches if (row := self._db.one(SQL["batch"], {"name": name})) and row[3] is not None]
        ticks, replaced = not_too_late(ticks, ended), dict[str, str]()
        if keys := keys_of(tick.job for tick in ticks if tick.job is not None):
            ticks, replaced = not_twice(ticks, held(self._db, keys), now_ms=now)
        written = [
            tick for tick in ticks if self._db.execute(SQL["add_tick"], rows.tick_values(name, tick, now_ms=now))
        ]
        jobs = [tick.job for tick in written if tick.job is not None]
        if jobs:
            self._add(jobs, [str(job.id) for job in jobs], moves, replaced=replaced)
        for tick in written:
            if tick.job is not None:
                self._db.execute(SQL["mark_fired"], {"name": name, "held": tick.is_held, "id": tick.job.id})
        if written:
            self._db.execute(SQL["trim_ticks"], {"schedule": name, "keep": TICKS_KEPT - 1})
        return written
