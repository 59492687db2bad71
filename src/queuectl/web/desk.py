"""A queue with its doors open, for the operations of the API, which know the use-cases themselves."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, Self

from queuectl.client import Queue
from queuectl.clock import Clock
from queuectl.config import Settings, working_directory
from queuectl.errors import UsageError
from queuectl.gate import Gate
from queuectl.job.change import Change, read_change
from queuectl.job.fields import absolute
from queuectl.job.model import Job, Worker
from queuectl.job.spec import Defaults
from queuectl.queue import amend, schedules
from queuectl.queue.intake import Fields, Intake
from queuectl.queue.schedules import Shop, Wish
from queuectl.store.open import store_exists
from queuectl.store.protocol import Reads, Store
from queuectl.upkeep.prune import ROWS_AT_ONCE, Plan, Pruned, Pruner, prune


class Desk(Queue):
    """Of one thread. By fields as JSON has them, not as keyword arguments: a client chooses their names."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        db: str | os.PathLike[str] | None = None,
        *,
        gate: Gate,
        accepts_alert_commands: bool = False,
        clock: Clock | None = None,
        trust_home: bool = False,
    ) -> None:
        """`gate`: what may be started from here. `accepts_alert_commands`: whether clients may add alerts that run a command."""
        super().__init__(home, db, clock=clock, trust_home=trust_home)
        self.gate = gate
        self.accepts_alert_commands = accepts_alert_commands

    @property
    def reads(self) -> Reads:
        return self._look()

    def on_behalf(self, token: str | None) -> Self:
        """From now on what is changed is changed for whoever has this token."""
        self._actor = self._actor._replace(token=token)
        if self._store is not None:
            self._store.actor = self._actor
        return self

    def open_store(self) -> Store:
        return self._write()

    @property
    def settings(self) -> Settings:
        return self._settings()

    @property
    def home(self) -> str:
        return self._home

    @property
    def db(self) -> str | None:
        return self._db

    @property
    def has_store(self) -> bool:
        return (self._store or self._reads) is not None or store_exists(self._home, self._db)

    @property
    def clock(self) -> Clock:
        return self._clock

    def rescue(self) -> None:
        self._rescue()

    def add(
        self,
        intake: Intake,
        fields: Fields,
        *,
        batch: str | None = None,
        on_complete: str | None = None,
        idempotency: tuple[str, str] | None = None,
    ) -> list[Job]:
        return self._add(intake, fields, batch=batch, on_complete=on_complete, idempotency=idempotency)

    def change(self, job_id: str, fields: Fields, *, as_of: int | None) -> Job:
        """`as_of`: as for amend.edit."""
        change = read_change(fields)
        if change == Change():
            raise UsageError("nothing to change", hint='say what, like {"priority": 5}')
        found = self.get(job_id).id
        return self._only(amend.edit(self._write(), [found], change, as_of=as_of))

    def copy(self, job_id: str, fields: Fields) -> Job:
        if isinstance(cwd := fields.get("cwd"), str):
            fields = {**fields, "cwd": absolute(cwd, working_directory())}
        new = amend.clone(self.reads, self.reads.resolve(job_id), fields)
        store = self._write()
        return store.get(store.enqueue([new])[0])

    def schedule(self, wish: Wish, *, replace: bool) -> dict[str, Any]:
        cwd = working_directory()
        defaults = Defaults.of(self.settings, cwd=cwd)
        shop = Shop(self._look, self._write, lambda: defaults, random.random)
        return schedules.add(wish, shop, replace=replace).to_dict(None)

    def prune(self, plan: Plan) -> Pruned:
        pruner = Pruner(self._write(), home=self._home, writer=f"prune-{os.getpid()}", rows=ROWS_AT_ONCE)
        return prune(pruner, plan, clock=self._clock, advance=lambda _: None)

    def _write(self) -> Store:
        if self._store is None and self._reads is not None:
            self._reads.close()  # one connection is enough: a server has not many
            self._reads = None
        return super()._write()

    def is_serving(self) -> Callable[[Worker], bool]:
        return self._is_serving()
