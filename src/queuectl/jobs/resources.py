"""Resource limits of a run (memory, CPU time, files, processes) and its resource usage.

A new limit also needs: the fields of spec.py, the options of `enqueue`, `edit` and `queue set`, `max-` in policy/rules.py,
web/pages/enqueue.py, docs/reference/json.md.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.jobs.fields import integer
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.spec import PackedLimits
from queuectl.text import short_repr, unknown_name
from queuectl.units import format_duration, format_size, humanize_elapsed, humanize_size, parse_duration_ms, parse_size

KIB: Final = 1024
MIN_MEMORY: Final = 2**20  # no program starts with less
MAX_OPEN_FILES: Final = 2**20
MAX_PROCESSES: Final = 2**22
MAX_NICE: Final = 19
NO_LIMIT: Final = "none"

# In units of the kernel and of `ulimit`: CPU time in whole seconds, memory and file sizes in whole KiB.


def memory(value: object, name: str) -> int:
    if 0 < parse_size(value, subject=name) < MIN_MEMORY:
        hint = "at least 1MiB, like 512MiB or 2GiB; 0 is for no limit"
        raise InvalidInput(name, f"no program runs with {short_repr(value)}", hint=hint)
    return _size(value, name)


def cpu_time(value: object, name: str) -> int:
    return -(-parse_duration_ms(value, subject=name) // 1000)


nice: Final = partial(integer, low=-MAX_NICE - 1, high=MAX_NICE)
open_files: Final = partial(integer, low=0, high=MAX_OPEN_FILES)
processes: Final = partial(integer, low=0, high=MAX_PROCESSES)


def _size(value: object, name: str) -> int:
    return -(-parse_size(value, subject=name) // KIB) * KIB


class Limit(NamedTuple):
    """`read` returns 0 for no limit, which also overrides the default of the queue."""

    read: Callable[[object, str], int]
    text: Callable[[int], str]
    label: str


LIMITS: Final[Mapping[str, Limit]] = {
    "memory": Limit(memory, format_size, "memory"),
    "cpu_time": Limit(cpu_time, lambda seconds: format_duration(seconds * 1000), "cpu time"),
    "nice": Limit(nice, str, "nice"),
    "open_files": Limit(open_files, str, "open files"),
    "processes": Limit(processes, str, "processes"),
    "file_size": Limit(_size, format_size, "file size"),
}


def parse_limit(value: object, subject: str, *, limit: str) -> int:
    """Parse a limit; 0 and `none` mean no limit. Raises InvalidInput."""
    if isinstance(value, str) and value.strip().lower() == NO_LIMIT:
        return 0
    return LIMITS[limit].read(value, subject)


def pack_limits(given: Mapping[str, int | None]) -> PackedLimits | None:
    """The stored form: only the limits that are set, None if there are none."""
    return {name: given[name] for name in LIMITS if given.get(name)} or None  # type: ignore[misc] # neither None nor 0


def parse_limits(value: object, subject: str) -> PackedLimits | None:
    """Validate limits in the form of `pack_limits`, from an import. Raises InvalidInput or UnknownName."""
    hint = 'like {"memory": 1073741824, "cpu_time": 30}'
    if not isinstance(value, Mapping):
        raise InvalidInput(subject, f"expected an object, got {short_repr(value)}", hint=hint)
    for name in value:
        if name not in LIMITS:
            raise unknown_name(f"field of {subject}", name, LIMITS)
    return pack_limits({n: LIMITS[n].read(v, f"{subject}.{n}") for n, v in value.items() if v is not None})


def format_limits(limits: PackedLimits | None) -> str:
    """`memory 2GiB, cpu time 30s`."""
    return ", ".join(f"{LIMITS[name].label} {LIMITS[name].text(value)}" for name, value in (limits or {}).items())


# ── what a host allows, see policy/rules.py ───────────────────────────────────────────────────────────────────────────

CEILINGS: Final[Mapping[str, str]] = {
    "max-memory": "memory",
    "max-cpu-time": "cpu_time",
    "min-nice": "nice",
    "max-open-files": "open_files",
    "max-processes": "processes",
    "max-file-size": "file_size",
}


def parse_ceiling(key: str, value: object, subject: str) -> int:
    most = LIMITS[CEILINGS[key]].read(value, subject)
    if not most and key != "min-nice":
        raise InvalidInput(subject, "no job could run", hint="omit it for no limit")
    return most


def exceeded_ceiling(asked: PackedLimits | None, most: PackedLimits) -> tuple[str, str] | None:
    """The key of the policy that the limits exceed, and why; None if there is none. No limit is not an excess: see `apply_ceilings`."""
    for key, name in CEILINGS.items():
        if (
            asked is not None
            and name in asked
            and name in most
            and _capped(name, asked[name], most[name]) != asked[name]
        ):
            label, text = LIMITS[name].label, LIMITS[name].text
            bound = "at least" if name == "nice" else "at most"
            return key, f"{label} {text(asked[name])}, {bound} {text(most[name])}"
    return None


def apply_ceilings(asked: PackedLimits | None, most: PackedLimits) -> PackedLimits | None:
    if not most:
        return asked
    given = asked or {}
    return pack_limits({n: _capped(n, given.get(n), most[n]) if n in most else given.get(n) for n in LIMITS})


def _capped(name: str, asked: int | None, most: int) -> int:
    if asked is None:
        return most
    return max(asked, most) if name == "nice" else min(asked, most)


# ── what a run has used ─────────────────────────────────────────────────────────────────────────────────────────────


class Usage(NamedTuple):
    """The resource usage of the process of a run and of the children it has waited for; of all its processes, with a control group.

    Times in ms, sizes in bytes. `max_rss_bytes`: of the largest process. `peak_memory_bytes`: of all processes together, if a
    control group limits it.
    """

    cpu_user_ms: int
    cpu_system_ms: int
    max_rss_bytes: int
    read_bytes: int
    written_bytes: int
    peak_memory_bytes: int | None = None

    @property
    def cpu_ms(self) -> int:
        return self.cpu_user_ms + self.cpu_system_ms

    @property
    def known(self) -> tuple[int, ...]:
        return tuple(number for number in self if number is not None)

    @property
    def memory_bytes(self) -> int:
        """The peak, as far as it is known."""
        return self.max_rss_bytes if self.peak_memory_bytes is None else self.peak_memory_bytes


def usage_to_dict(usage: Usage | None) -> dict[str, Any]:
    return dict.fromkeys(Usage._fields) if usage is None else usage._asdict()


class ResourceReport(NamedTuple):
    """The usage of an ended run. `out_of_memory`: the kernel killed one of its processes at the memory limit."""

    usage: Usage | None = None
    out_of_memory: bool = False


NO_REPORT: Final = ResourceReport()


_BY_SIGNAL: Final[Mapping[int, str]] = {
    signal.SIGXCPU: "cpu_time",
    signal.SIGKILL: "cpu_time",
    signal.SIGXFSZ: "file_size",
}


def exceeded_limit(limits: PackedLimits | None, how: Exited | Signalled, spent: ResourceReport) -> str | None:
    """The resource limit that ended a run which was not terminated by its worker, as a message; None: none, as far as known.

    A shell reports by its exit code that a signal ended its child. A process that ignores SIGXCPU gets SIGKILL, which can have other
    reasons: it counts only if the CPU time was used up.
    """
    most = limits or {}
    if spent.out_of_memory and "memory" in most and how != Exited(0):
        return _limit_message("memory", most)
    number = how.signal if isinstance(how, Signalled) else how.code - 128
    used_ms = 0 if spent.usage is None else spent.usage.cpu_ms
    name = _BY_SIGNAL.get(number, "")
    if name not in most or (number == signal.SIGKILL and used_ms < most[name] * 1000):
        return None
    message = _limit_message(name, most)
    return message if isinstance(how, Signalled) else f"exit code {how.code} ({message})"


def _limit_message(name: str, limits: PackedLimits) -> str:
    return f"{LIMITS[name].label} limit of {LIMITS[name].text(limits[name])} reached"


class UsageText(NamedTuple):
    """Usage as text; each is empty if unknown, those of disks also if zero."""

    cpu_time: str = ""
    memory: str = ""  # at its peak
    read: str = ""
    written: str = ""
    moved: str = ""  # read + written


_NO_USAGE_TEXT: Final = UsageText()


def usage_text(usage: Usage | None) -> UsageText:
    if usage is None:
        return _NO_USAGE_TEXT
    read, written = usage.read_bytes, usage.written_bytes
    cpu_time, memory = humanize_elapsed(usage.cpu_ms), humanize_size(usage.memory_bytes)
    return UsageText(cpu_time, memory, _moved(read), _moved(written), _moved(read + written))


def format_usage(usage: Usage | None) -> str:
    """`cpu time 1.25s, memory 12MiB, read 4.0KiB, written 1.0MiB`; empty if unknown."""
    text_of = usage_text(usage)
    parts = {"cpu time": text_of.cpu_time, "memory": text_of.memory, "read": text_of.read, "written": text_of.written}
    return ", ".join(f"{name} {text}" for name, text in parts.items() if text)


def _moved(size: int) -> str:
    return humanize_size(size) if size else ""
