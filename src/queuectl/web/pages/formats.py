"""Numbers, times and commands as the pages write them."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from queuectl.jobs.model import Job
from queuectl.jobs.resources import format_limits, format_usage
from queuectl.text import escape_control
from queuectl.units import humanize_time, to_ms

NOTHING: Final = "—"  # for what is not known, or is not
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_STEPS: Final = ((86_400_000, "d", 3_600_000, "h"), (3_600_000, "h", 60_000, "m"), (60_000, "m", 1_000, "s"))


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")


def short(value: float) -> str:
    """For narrow columns: `12k`, `1.2M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return number(round(value, 1) if value != int(value) else int(value))


def span(ms: float | None) -> str:
    """A duration with at most two units: `3d 4h`, `59m 59s`, `2.5s`, `850ms`."""
    if ms is None:
        return NOTHING
    ms = max(0, round(ms))
    for size, unit, rest, smaller in _STEPS:
        if ms >= size:
            left = ms % size // rest
            return f"{ms // size}{unit}" + (f" {left}{smaller}" if left else "")
    return f"{ms}ms" if ms < 1000 else f"{ms / 1000:.1f}".removesuffix(".0") + "s"


def ago(moment: datetime | None, now_ms: int) -> str:
    return NOTHING if moment is None else humanize_time(to_ms(moment), now_ms)


def exact(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def moments(text: str) -> str:
    """Rewrite the times in a message to the format of the pages."""
    return _MOMENT.sub(r"\1 \2 UTC", text)


def command(job: Job | dict[str, Any]) -> str:
    """The command on one line; an argv is quoted for the shell. Control and bidirectional characters are escaped."""
    return escape_control(_command(job))


def whole_command(job: Job | dict[str, Any]) -> str:
    """The command with its line breaks."""
    return safe(_command(job))


def safe(text: str) -> str:
    """Escape control and bidirectional characters, except line breaks."""
    return "\n".join(map(escape_control, text.split("\n")))


def _command(job: Job | dict[str, Any]) -> str:
    text, argv = (job.command, job.argv) if isinstance(job, Job) else (job.get("command"), job.get("argv"))
    return str(text) if text is not None else shlex.join(argv or ())


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share * 100:.1f}".removesuffix(".0") + " %"


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def part(text: str) -> str:
    """Quote one segment of a URL path."""
    return quote(text, safe="")


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


FILTERS: Final = {
    "number": number,
    "short": short,
    "span": span,
    "exact": exact,
    "moments": moments,
    "command": command,
    "safe_text": safe,
    "whole_command": whole_command,
    "percent": percent,
    "part": part,
    "limits": format_limits,
    "used": format_usage,
}
