"""Edits of a waiting job: the editable fields, validated as by `enqueue`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.jobs import fields as read
from queuectl.jobs.resources import LIMITS, parse_limit
from queuectl.jobs.spec import parse_user_queue
from queuectl.secrets.rules import parse_secrets
from queuectl.text import closest_match
from queuectl.units import parse_time_ms
from queuectl.webhooks.rules import Origin, parse_url_or_none

# Fields of `edit`; `first_is_free` and `held` are changed in other ways.
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


class JobEdit(NamedTuple):
    """The new values; None: unchanged. `delay_ms` counts from the edit. A `timeout_ms` of 0: none."""

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
    secrets: tuple[str, ...] | None = None  # replace all
    hooks: Mapping[str, Sequence[str] | None] | None = None  # by event; None removes the webhook
    limits: Mapping[str, int | None] | None = None  # by resource; None removes the limit

    def run_at(self, now_ms: int) -> int | None:
        """The new due time; a time in the past means now."""
        if self.delay_ms is not None:
            return now_ms + self.delay_ms
        return None if self.run_at_ms is None else max(now_ms, self.run_at_ms)


HOLD: Final = JobEdit(held=True)
RELEASE: Final = JobEdit(held=False)
# `run-now` also releases a held job.
RUN_NOW: Final = JobEdit(delay_ms=0, held=False)


def parse_edit(fields: Mapping[str, object], *, dashes: str = "", local: tzinfo | None = None) -> JobEdit:
    """The edit that `fields` describe; null means "not given", as for enqueue. Raises InvalidInput or UnknownName.

    `dashes` is `--` if the names in messages are options.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if name not in EDITABLE:
            raise UnknownName("field", name, nearest=closest_match(name, EDITABLE), known=EDITABLE)
    for one, other in _RIVALS:
        if one in given and other in given:
            problem = f"not together with {_spelled(dashes, one)}"
            raise InvalidInput(_spelled(dashes, other), problem, hint="give one of the two")
    kept: dict[str, Any] = {}
    for name, value in given.items():
        spelled = _spelled(dashes, name)
        match name:
            case "run_at":
                kept["run_at_ms"] = parse_time_ms(value, subject=spelled, local=local)
            case "delay":
                kept["delay_ms"] = read.delay(value, spelled)
            case "timeout":
                kept["timeout_ms"] = read.timeout(value, spelled) or 0
            case "on_success" | "on_failure" | "on_dead":
                url = parse_url_or_none(value, spelled)
                told = [url, Origin.JOB.value] if url else None
                kept["hooks"] = {**kept.get("hooks", {}), name.removeprefix("on_"): told}
            case _ if name in LIMITS:
                kept["limits"] = {**kept.get("limits", {}), name: parse_limit(value, spelled, limit=name) or None}
            case "max_retries":
                kept["max_retries"] = read.retries(value, spelled)
            case "max_attempts":
                kept.update(max_retries=read.retries(value, spelled), first_is_free=False)
            case _:
                kept[name] = _READERS[name](value, spelled)
    return JobEdit()._replace(**kept)


_READERS: Final = {
    "command": read.command,
    "argv": read.argv,
    "queue": parse_user_queue,
    "priority": read.priority,
    "secrets": parse_secrets,
}


def _spelled(dashes: str, name: str) -> str:
    return dashes + name.replace("_", "-") if dashes else name
