"""The runs of a job with a past, as `export --history` writes them, and the readers of what a past consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job import fields as read
from queuectl.job.duration import LONGEST_MS
from queuectl.job.moment import parse_moment_ms
from queuectl.job.nearest import nearest
from queuectl.job.outcome import Ending
from queuectl.job.record import RunRecord
from queuectl.job.resources import Usage
from queuectl.job.shown import cut, shown

MOST: Final = 2**31 - 1  # of whatever is counted

Reader = Callable[[object, str], Any]


def count(value: object, name: str) -> int:
    return read.integer(value, name, low=0, high=MOST)


def whole(value: object, name: str) -> int:
    return read.integer(value, name, low=-MOST, high=MOST)


def long_count(value: object, name: str) -> int:
    return read.integer(value, name, low=0, high=2**53)


def moment(value: object, name: str) -> int:
    """A time without a zone is UTC: whoever wrote it may have been anywhere."""
    return parse_moment_ms(value, subject=name, local=UTC)


def duration(value: object, name: str) -> int:
    return read.integer(value, name, low=0, high=LONGEST_MS)


def words(value: object, name: str) -> str:
    return read.text(value, name, example=f'like "{name}": "…"')


def _ending(value: object, name: str) -> str:
    try:
        return Ending(str(value)).value
    except ValueError as error:
        known = ", ".join(ending.value for ending in Ending)
        raise InvalidInput(name, f"not an outcome: {shown(value)}", hint=f"one of: {known}") from error


_RUN: Final[dict[str, Reader]] = {
    "number": lambda value, name: read.integer(value, name, low=1, high=MOST),
    "worker": words,
    "host": words,
    "pid": long_count,
    "started_at": moment,
    "finished_at": moment,
    "duration_ms": duration,
    "exit_code": whole,
    "signal": count,
    "error": words,
    "outcome": _ending,
    **dict.fromkeys(Usage._fields, long_count),
}


def history(value: object, name: str) -> list[RunRecord]:
    if not isinstance(value, list):
        raise InvalidInput(name, f"expected a list of runs, got {shown(value)}", hint="as export --history writes it")
    runs: list[RunRecord] = []
    for at, fields in enumerate(value):
        runs.append(_run(fields, f"{name}[{at}]"))
        if at and runs[-1].number != runs[-2].number + 1:
            raise InvalidInput(f"{name}[{at}].number", f"{runs[-1].number} after {runs[-2].number}", hint="in order")
    return runs


def _run(fields: object, name: str) -> RunRecord:
    if not isinstance(fields, dict):
        raise InvalidInput(name, f"expected an object, got {shown(fields)}", hint="as export --history writes it")
    said: dict[str, Any] = dict.fromkeys(_RUN)
    for field, value in fields.items():
        if field not in _RUN:
            raise unknown_field(field, _RUN)
        if value is not None:
            said[field] = _RUN[field](value, f"{name}.{field}")
    ending = said.pop("outcome")
    *used, peak = (said.pop(field) for field in Usage._fields)
    usage = None if None in used else Usage._make([*used, peak]).known
    needed = {"number": said["number"], "outcome": ending, "finished_at": said["finished_at"]}
    for field, found in needed.items():
        if found is None and not (field == "finished_at" and ending == Ending.RUNNING):
            raise InvalidInput(f"{name}.{field}", "missing", hint="as export --history writes it")
    said["finished_at"] = max(said["finished_at"] or 0, said["started_at"] or 0)
    of_run = {"worker": said["worker"] or "", "host": said["host"] or "", "ending": ending, "usage": usage}
    return RunRecord(**{**said, **of_run})


def unknown_field(name: object, known: Mapping[str, object]) -> UnknownName:
    wanted = cut(str(name))
    return UnknownName("field", wanted, nearest=nearest(wanted.lower().replace("-", "_"), known), known=list(known))
