"""What a run may use of its host, and what it has used: memory, cpu time, files, processes.

New limit? Also: the fields of spec.py, the options of `enqueue`, `edit` and `queue set`, `max-` in policy.py, web/pages/limits.py, docs/reference/json.md.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.duration import format_duration, parse_duration_ms
from queuectl.job.fields import integer
from queuectl.job.nearest import nearest
from queuectl.job.newjob import PackedLimits
from queuectl.job.outcome import Exited, Signalled
from queuectl.job.shown import shown
from queuectl.job.size import format_size, parse_size

KIB: Final = 1024
LEAST_MEMORY: Final = 2**20  # with less no program begins
MOST_FILES: Final = 2**20
MOST_PROCESSES: Final = 2**22
NICEST: Final = 19
NOTHING: Final = "none"

# What the kernel counts, in numbers of its own: cpu time in whole seconds, memory and files as shells do, in whole KiB.


def memory(value: object, name: str) -> int:
    if 0 < parse_size(value, subject=name) < LEAST_MEMORY:
        hint = "at least 1MiB, like 512MiB or 2GiB; 0 is for no limit"
        raise InvalidInput(name, f"no program runs with {shown(value)}", hint=hint)
    return _size(value, name)


def cpu_time(value: object, name: str) -> int:
    return -(-parse_duration_ms(value, subject=name) // 1000)


def nice(value: object, name: str) -> int:
    return integer(value, name, low=-NICEST - 1, high=NICEST)


def open_files(value: object, name: str) -> int:
    return integer(value, name, low=0, high=MOST_FILES)


def processes(value: object, name: str) -> int:
    return integer(value, name, low=0, high=MOST_PROCESSES)


def _size(value: object, name: str) -> int:
    return -(-parse_size(value, subject=name) // KIB) * KIB


class Limit(NamedTuple):
    """`read` gives 0 for none: also where a queue would say otherwise."""

    read: Callable[[object, str], int]
    text: Callable[[int], str]
    words: str


LIMITS: Final[Mapping[str, Limit]] = {
    "memory": Limit(memory, format_size, "memory"),
    "cpu_time": Limit(cpu_time, lambda seconds: format_duration(seconds * 1000), "cpu time"),
    "nice": Limit(nice, str, "nice"),
    "open_files": Limit(open_files, str, "open files"),
    "processes": Limit(processes, str, "processes"),
    "file_size": Limit(_size, format_size, "file size"),
}


def parse_limit(value: object, subject: str, *, limit: str) -> int:
    """A limit of this name; 0, or the word none: no limit."""
    if isinstance(value, str) and value.strip().lower() == NOTHING:
        return 0
    return LIMITS[limit].read(value, subject)


def pack(given: Mapping[str, int | None]) -> PackedLimits | None:
    """As they are kept: only those that there are, None for none at all."""
    return {name: given[name] for name in LIMITS if given.get(name)} or None  # type: ignore[misc] # neither None nor 0


def parse_limits(value: object, subject: str) -> PackedLimits | None:
    """As `pack` makes them, from somebody else's hands."""
    hint = 'like {"memory": 1073741824, "cpu_time": 30}'
    if not isinstance(value, Mapping):
        raise InvalidInput(subject, f"expected an object, got {shown(value)}", hint=hint)
    for name in value:
        if name not in LIMITS:
            raise UnknownName(f"field of {subject}", str(name), nearest=nearest(str(name), LIMITS), known=list(LIMITS))
    return pack({n: LIMITS[n].read(v, f"{subject}.{n}") for n, v in value.items() if v is not None})


def told(limits: PackedLimits | None) -> str:
    """For people: memory 2GiB, cpu time 30s."""
    return ", ".join(f"{LIMITS[name].words} {LIMITS[name].text(value)}" for name, value in (limits or {}).items())


# ── what a host allows, see job/policy.py ───────────────────────────────────────────────────────────────────────────

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
        raise InvalidInput(subject, "no job could run", hint="leave it away for no limit")
    return most


def beyond(asked: PackedLimits | None, most: PackedLimits) -> tuple[str, str] | None:
    """The key of what somebody asks too much of, and why. Who asks for no limit gets that of the host."""
    for key, name in CEILINGS.items():
        if (
            asked is not None
            and name in asked
            and name in most
            and _capped(name, asked[name], most[name]) != asked[name]
        ):
            words, text = LIMITS[name].words, LIMITS[name].text
            bound = "at least" if name == "nice" else "at most"
            return key, f"{words} {text(asked[name])}, {bound} {text(most[name])}"
    return None


def capped(asked: PackedLimits | None, most: PackedLimits) -> PackedLimits | None:
    if not most:
        return asked
    given = asked or {}
    return pack({n: _capped(n, given.get(n), most[n]) if n in most else given.get(n) for n in LIMITS})


def _capped(name: str, asked: int | None, most: int) -> int:
    if asked is None:
        return most
    return max(asked, most) if name == "nice" else min(asked, most)


# ── what a run has used ─────────────────────────────────────────────────────────────────────────────────────────────


class Usage(NamedTuple):
    """What the process of a run has used, and those of its children that it has waited for; the cpu time of all its processes, where it
    had a control group. Times in ms, sizes in bytes. `max_rss_bytes`: of the largest process. `peak_memory_bytes`: of all of them
    together, where a control group limits that."""

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
        """At its peak, as far as it is known."""
        return self.max_rss_bytes if self.peak_memory_bytes is None else self.peak_memory_bytes


class Spent(NamedTuple):
    """What is known of a run that has ended. `out_of_memory`: something of it was ended for want of the memory it may take."""

    usage: Usage | None = None
    out_of_memory: bool = False


NOT_KNOWN: Final = Spent()
UNKNOWN: Final[Mapping[str, Any]] = dict.fromkeys(Usage._fields)


def usage_to_dict(usage: Usage | None) -> dict[str, Any]:
    return dict(UNKNOWN) if usage is None else usage._asdict()


_BY_SIGNAL: Final[Mapping[int, str]] = {
    signal.SIGXCPU: "cpu_time",
    signal.SIGKILL: "cpu_time",
    signal.SIGXFSZ: "file_size",
}


def reached(limits: PackedLimits | None, how: Exited | Signalled, spent: Spent) -> str | None:
    """Which of its limits a run was ended by that nobody has ended, as far as that can be known; None: by none.

    A shell tells by its exit code that a signal has ended what it ran. Who takes no notice of the signal of the cpu time gets KILL, as
    others send it too: so that counts only if the time was used.
    """
    most = limits or {}
    if spent.out_of_memory and "memory" in most and how != Exited(0):
        return _reached("memory", most)
    number = how.signal if isinstance(how, Signalled) else how.code - 128
    used_ms = 0 if spent.usage is None else spent.usage.cpu_ms
    name = _BY_SIGNAL.get(number, "")
    if name not in most or (number == signal.SIGKILL and used_ms < most[name] * 1000):
        return None
    words = _reached(name, most)
    return words if isinstance(how, Signalled) else f"exit code {how.code} ({words})"


def _reached(name: str, limits: PackedLimits) -> str:
    return f"{LIMITS[name].words} limit of {LIMITS[name].text(limits[name])} reached"
