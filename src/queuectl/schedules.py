"""Schedules for Python programs: what `queuectl cron` does. See client.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from queuectl.config import environ
from queuectl.job.model import Job, from_ms
from queuectl.job.spec import Defaults
from queuectl.queue import schedules as use
from queuectl.queue.pick import Answer
from queuectl.queue.pythonic import plain
from queuectl.store.protocol import Reads, Store
from queuectl.zones import local_zone_name


class Schedules:
    """The schedules of a queue. A schedule is shown as `queuectl cron show --json` shows it.

    >>> from queuectl import Queue
    >>> with Queue() as queue:
    ...     added = queue.schedules.add("nightly", "0 2 * * *", "make backup", tz="Europe/Berlin", timeout="1h")
    ...     [schedule["name"] for schedule in queue.schedules]
    ['nightly']
    """

    def __init__(
        self, reads: Callable[[], Reads], open_store: Callable[[], Store], defaults: Callable[[], Defaults]
    ) -> None:
        self._reads = reads
        self._shop = use.Shop(reads, open_store, defaults, random.random)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All of them, by name."""
        return (one.schedule.to_dict(one.last) for one in use.list_schedules(self._reads()))

    def add(
        self,
        name: str,
        schedule: str,
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        tz: str | None = None,
        overlap: str = "skip",
        catch_up: str = "one",
        jitter: str | float | timedelta | None = None,
        until: str | datetime | None = None,
        unique: str | None = None,
        replace: bool = False,
        **fields: Any,
    ) -> dict[str, Any]:
        """Add a schedule; `fields` are those of `enqueue`, but for id, run_at and after. At a time when another job has the
        key `unique`, none is added, unless it waits and `if_exists` is "replace". Raises InvalidInput, UnknownName or ScheduleExists.

        >>> with Queue() as queue:
        ...     queue.schedules.add("poll", "every 90s", argv=["./poll"], tz="UTC", queue="low")["queue"]
        'low'
        """
        given = {"command": command, "argv": argv, "unique_key": unique, **fields}
        job = {field: plain(value) for field, value in given.items()}
        zone = local_zone_name(environ()) if tz is None else tz
        wish = use.Wish(name, schedule, zone, job, overlap, catch_up, jitter, until)
        return use.add(wish, self._shop, replace=replace).to_dict(None)

    def get(self, name: str) -> dict[str, Any]:
        """One of them, with what became of its last times as `ticks`. Raises ScheduleNotFound."""
        shown = use.show(self._reads(), name)
        return {**shown.schedule.to_dict(shown.last), "ticks": [tick.to_dict() for tick in shown.ticks]}

    def next(self, name: str, count: int = 5) -> list[datetime]:
        """When it will be due; of one that is paused, when it would be.

        >>> with Queue() as queue:
        ...     _ = queue.schedules.add("leap", "0 0 29 2 *", "true", tz="UTC")
        ...     queue.schedules.next("leap", 1)[0].day
        29
        """
        return [from_ms(at) for at in use.upcoming(self._reads(), name, count)]

    def run(self, name: str) -> Job:
        """Add its job now. Raises NotFired if another one has its unique key."""
        job_id = use.run(name, self._shop)
        return self._reads().get(job_id)

    def pause(self, name: str) -> None:
        """Let it rest; what would have been due is not made up for."""
        _only(use.pause_all([name], self._shop))

    def resume(self, name: str) -> None:
        """Go on with it, from now on."""
        _only(use.resume_all([name], self._shop))

    def remove(self, name: str) -> None:
        """Remove it; its jobs stay."""
        _only(use.remove_all([name], self._shop))


def _only(answer: Answer) -> None:
    for _, error in answer.refused:
        raise error
