"""Edits of a waiting job: the editable fields, validated as by `enqueue`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.spec import readers
from queuectl.text import unknown_name
from queuectl.webhooks.rules import Origin

# Fields of `edit`; `first_is_free` and `held` are changed in other ways.
EDITABLE: Final = (
    *("command", "argv", "queue", "priority", "run_at", "delay", "max_retries", "max_attempts", "timeout"),
    *LIMITS,
    *("secrets", "on_success", "on_failure", "on_dead"),
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


def parse_edit(fields: Mapping[str, object], *, dashes: str = "") -> JobEdit:
    """The edit that `fields` describe; null means "not given", as for enqueue. Raises InvalidInput or UnknownName.

    `dashes` is `--` if the names in messages are options.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if name not in EDITABLE:
            raise unknown_name("field", name, EDITABLE)
    for one, other in _RIVALS:
        if one in given and other in given:
            problem = f"not together with {_spelled(dashes, one)}"
            raise InvalidInput(_spelled(dashes, other), problem, hint="give one of the two")
    kept: dict[str, Any] = {}
    parsers = readers()
    for name, value in given.items():
        parsed: Any = parsers[name][1](value, _spelled(dashes, name))
        if name.startswith("on_"):
            webhook = [parsed, Origin.JOB.value] if parsed else None
            kept["hooks"] = {**kept.get("hooks", {}), name.removeprefix("on_"): webhook}
        elif name in LIMITS:
            kept["limits"] = {**kept.get("limits", {}), name: parsed or None}
        elif name == "max_attempts":
            kept.update(max_retries=parsed, first_is_free=False)
        else:
            kept[_STORED_AS.get(name, name)] = (parsed or 0) if name == "timeout" else parsed
    return JobEdit()._replace(**kept)


_STORED_AS: Final = {"run_at": "run_at_ms", "delay": "delay_ms", "timeout": "timeout_ms"}


def _spelled(dashes: str, name: str) -> str:
    return dashes + name.replace("_", "-") if dashes else name
