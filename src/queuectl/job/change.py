"""Changing one's mind about a job that waits: what may become different, read and checked as `enqueue` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job import fields as read
from queuectl.job.hooks import Said, parse_url_or_none
from queuectl.job.moment import parse_moment_ms
from queuectl.job.nearest import nearest
from queuectl.job.reserved import queue_for_jobs
from queuectl.job.resources import LIMITS, parse_limit
from queuectl.job.secrets import secrets

# What a person may write; `first_is_free` and `held` have ways of their own.
EDITABLE: Final = (
    "command",
    "argv",
    "queue",
    "priority",
    "run_at",
    "delay",
    "max_retries",
    "max_attempts",
    "timeout",
    *LIMITS,
    "secrets",
    "on_success",
    "on_failure",
    "on_dead",
)
_RIVALS: Final = (("command", "argv"), ("run_at", "delay"), ("max_retries", "max_attempts"))


class Change(NamedTuple):
    """What is to be different; None: as it is. `delay_ms` counts from the change. A `timeout_ms` of 0: none."""

    command: str | None = None
    argv: tuple[str, ...] | None = None
    queue: str | None = None
    priority: int | None = None
    run_at_ms: int | None = None
    delay_ms: int | None = None
    max_retries: int | None = None
    first_is_free: bool | None = None
    timeout_ms: int | None = None
    held: bool | None = None
    secrets: tuple[str, ...] | None = None  # instead of those it has
    hooks: Mapping[str, Sequence[str] | None] | None = None  # of each that is named: whom to tell, None for nobody
    limits: Mapping[str, int | None] | None = None  # of each that is named: how much of it, None for any

    def run_at(self, now_ms: int) -> int | None:
        """When it is to run; a time that has passed means now."""
        if self.delay_ms is not None:
            return now_ms + self.delay_ms
        return None if self.run_at_ms is None else max(now_ms, self.run_at_ms)


HOLD: Final = Change(held=True)
RELEASE: Final = Change(held=False)
# The later wish counts: whoever wants it to run now does not want it to be held.
RUN_NOW: Final = Change(delay_ms=0, held=False)


def read_change(fields: Mapping[str, object], *, dashes: str = "", local: tzinfo | None = None) -> Change:
    """The change that `fields` describe; null means "not given", as for enqueue. `dashes`: what stands before the names where
    they are options. Raises InvalidInput or UnknownName."""
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if name not in EDITABLE:
            raise UnknownName("field", name, nearest=nearest(name, EDITABLE), known=EDITABLE)
    for one, other in _RIVALS:
        if one in given and other in given:
            problem = f"not together with {_spelled(dashes, one)}"
            raise InvalidInput(_spelled(dashes, other), problem, hint="give one of the two")
    kept: dict[str, Any] = {}
    for name, value in given.items():
        spelled = _spelled(dashes, name)
        match name:
            case "run_at":
                kept["run_at_ms"] = parse_moment_ms(value, subject=spelled, local=local)
            case "delay":
                kept["delay_ms"] = read.delay(value, spelled)
            case "timeout":
                kept["timeout_ms"] = read.timeout(value, spelled) or 0
            case "on_success" | "on_failure" | "on_dead":
                url = parse_url_or_none(value, spelled)
                told = [url, Said.JOB.value] if url else None
                kept["hooks"] = {**kept.get("hooks", {}), name.removeprefix("on_"): told}
            case _ if name in LIMITS:
                kept["limits"] = {**kept.get("limits", {}), name: parse_limit(value, spelled, limit=name) or None}
            case "max_retries":
                kept["max_retries"] = read.retries(value, spelled)
            case "max_attempts":
                kept.update(max_retries=read.retries(value, spelled), first_is_free=False)
            case _:
                kept[name] = _READERS[name](value, spelled)
    return Change()._replace(**kept)


_READERS: Final = {
    "command": read.command,
    "argv": read.argv,
    "queue": queue_for_jobs,
    "priority": read.priority,
    "secrets": secrets,
}


def _spelled(dashes: str, name: str) -> str:
    return dashes + name.replace("_", "-") if dashes else name
