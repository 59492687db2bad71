"""The settings there are: name, accepted form, default, and how each is read and written.

New key? Also: an attribute of Settings, docs/reference/configuration.md (scripts/docs).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.ageing import HINT as AGEING_FORM
from queuectl.job.ageing import format_ageing, parse_ageing
from queuectl.job.duration import DAY_MS, HOUR_MS, LONGEST_MS, format_duration, parse_duration_ms
from queuectl.job.nearest import nearest
from queuectl.job.rank import Ageing, Strict
from queuectl.job.shown import shown
from queuectl.job.size import format_size, parse_size

Value = int | float | bool | Ageing | None
Json = int | float | bool | str | None

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30


class Kind:
    """How values of one kind are read, written for people (canonical, and read back as the same) and typed in JSON."""

    __slots__ = ("form", "json", "parse", "text")

    def __init__(
        self,
        *,
        form: str,
        parse: Callable[[str, str], Value],
        text: Callable[[Any], str] = str,
        json: Callable[[Any], Json] | None = None,
    ) -> None:
        self.form = form
        self.parse = parse
        self.text = text
        self.json = text if json is None else json


def _integer(low: int, high: int) -> Kind:
    form = f"an integer from {low} to {high}"

    def parse(text: str, subject: str) -> Value:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise InvalidInput(subject, f"expected {form}, got {shown(text)}", hint=f"{subject} takes {form}")
        return int(text)

    return Kind(form=form, parse=parse, json=int)


def _number(low: float, high: float | None) -> Kind:
    form = f"a number of at least {low:g}" if high is None else f"a number from {low:g} to {high:g}"

    def parse(text: str, subject: str) -> Value:
        # 300 characters keep it finite.
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text[:300]) or len(text) > 300:
            raise InvalidInput(subject, f"expected {form}, got {shown(text)}", hint=f"{subject} takes {form}")
        value = float(text)
        if value < low or (high is not None and value > high):
            raise InvalidInput(subject, f"expected {form}, got {shown(text)}", hint=f"{subject} takes {form}")
        return value

    def text(value: float) -> str:
        from decimal import Decimal  # for the few that need it

        # In digits, as it is accepted: Python writes 1e+16 and 1e-05.
        return format(Decimal(repr(value)), "f").removesuffix(".0")

    return Kind(form=form, parse=parse, text=text, json=float)


def _boolean() -> Kind:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

    def parse(text: str, subject: str) -> Value:
        if text.lower() not in words:
            raise InvalidInput(subject, f"expected true or false, got {shown(text)}", hint="true or false")
        return words[text.lower()]

    return Kind(form="true or false", parse=parse, text=lambda value: "true" if value else "false", json=bool)


def _duration(low_ms: int, high_ms: int, *, nothing: str | None = None, zero_is_nothing: bool = False) -> Kind:
    """`nothing` is the word for None, where there may be no such duration at all."""
    limits = f"from {format_duration(low_ms)} to {'100 years' if high_ms == LONGEST_MS else format_duration(high_ms)}"
    form = f"a duration {limits} (500ms, 90s, 1h30m, 2d)" + (f", or {nothing}" if nothing else "")

    def parse(text: str, subject: str) -> Value:
        if nothing and text.lower() == nothing:
            return None
        try:
            ms = parse_duration_ms(text, subject=subject)
        except InvalidInput as error:
            raise InvalidInput(subject, error.problem, hint=f"{subject} takes {form}") from error
        if ms == 0 and zero_is_nothing:
            return None
        if not low_ms <= ms <= high_ms:
            raise InvalidInput(subject, f"expected {limits}, got {shown(text)}", hint=f"{subject} takes {form}")
        return ms

    def write(ms: int | None) -> str:
        return str(nothing) if ms is None else format_duration(ms)

    return Kind(form=form, parse=parse, text=write, json=lambda ms: None if ms is None else format_duration(ms))


def _size(low: int, high: int) -> Kind:
    limits = f"from {format_size(low)} to {format_size(high)}"

    def parse(text: str, subject: str) -> Value:
        # One refusal for all: what sizes there are at all, `parse_size` says, and is more than this key takes.
        refusal = InvalidInput(
            subject, f"expected a size {limits}, got {shown(text)}", hint=f"{subject} takes a size like 64KiB, 10MB"
        )
        try:
            size = parse_size(text, subject=subject)
        except InvalidInput as error:
            raise refusal from error
        if not low <= size <= high:
            raise refusal
        return size

    return Kind(form=f"a size {limits} (64KiB, 10MB)", parse=parse, text=format_size)


def _ageing() -> Kind:
    return Kind(form=AGEING_FORM, parse=lambda text, subject: parse_ageing(text, subject=subject), text=format_ageing)


class Key:
    """One setting. `attribute` is its name in Settings, `about` what it decides, in a few words."""

    __slots__ = ("about", "aliases", "attribute", "default", "kind", "name", "variables")

    def __init__(
        self, name: str, kind: Kind, default: Value, about: str, *, unit: str = "", aliases: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.attribute = name.replace("-", "_") + unit
        self.kind = kind
        self.default = default
        self.about = about
        self.aliases = aliases
        self.variables = tuple("QUEUECTL_" + each.upper().replace("-", "_") for each in (name, *aliases))

    @property
    def form(self) -> str:
        """What it accepts, in words."""
        return self.kind.form

    def parse(self, text: str, *, subject: str) -> Value:
        return self.kind.parse(text.strip(), subject)

    def text(self, value: Value) -> str:
        return self.kind.text(value)

    def json(self, value: Value) -> Json:
        return self.kind.json(value)


# fmt: off
KEYS: Final = (
    Key("max-retries", _integer(0, 1_000_000), 3, "failed runs after which a job is dead",
        aliases=("default-max-retries", "max-attempts")),
    Key("backoff-base", _number(1, None), 2.0, "a retry waits base ** attempts seconds", aliases=("base-backoff",)),
    Key("backoff-max", _duration(0, LONGEST_MS), HOUR_MS, "no retry waits longer", unit="_ms"),
    Key("backoff-jitter", _number(0, 1), 0.0, "how far a wait may stray from that, as a share of it"),
    Key("first-attempt-is-free", _boolean(), False, "max-retries counts the runs after the first"),
    Key("max-crashes", _integer(1, 1_000_000), 3, "lost workers after which a job is dead"),
    Key("timeout", _duration(1, LONGEST_MS, nothing="none", zero_is_nothing=True), None, "time limit of a run",
        unit="_ms", aliases=("job-timeout", "default-timeout")),
    Key("kill-grace", _duration(0, DAY_MS), 5_000, "time between TERM and KILL", unit="_ms"),
    Key("priority", _integer(-1_000_000, 1_000_000), 0, "priority of a job that names none"),
    Key("ageing", _ageing(), Strict(), "what waiting is worth"),
    Key("worker-count", _integer(1, 1_000), 1, "slots of a worker started without --count"),
    Key("poll-interval", _duration(10, HOUR_MS), 1_000, "how often a worker looks without being woken", unit="_ms"),
    Key("heartbeat", _duration(100, HOUR_MS), 5_000, "how often a worker says that it lives", unit="_ms"),
    Key("lease", _duration(200, DAY_MS), 30_000, "silence after which a worker counts as gone", unit="_ms"),
    Key("log-limit", _size(KIB, 1024 * GIB), 64 * MIB, "disk that the log of one job may take"),
    Key("output-limit", _size(0, GIB), 64 * KIB, "bytes of output that show prints, and PostgreSQL keeps of a run"),
    Key("retain-completed", _duration(0, LONGEST_MS, nothing="forever"), 30 * DAY_MS,
        "how long completed jobs are kept", unit="_ms"),
    Key("retain-dead", _duration(0, LONGEST_MS, nothing="forever"), None, "how long dead jobs are kept", unit="_ms"),
    Key("retain-audit", _duration(0, LONGEST_MS, nothing="forever"), 365 * DAY_MS,
        "how long it is known who changed what", unit="_ms"),
)
# fmt: on

_BY_NAME: Final = {name: key for key in KEYS for name in (key.name, *key.aliases)}


def resolve_key(name: str) -> Key:
    """The key of that name or alias, in kebab or snake spelling; UnknownName otherwise."""
    wanted = name.strip().lower().replace("_", "-")
    key = _BY_NAME.get(wanted)
    if key is None:
        raise UnknownName("key", name, nearest=nearest(wanted, _BY_NAME), known=[key.name for key in KEYS])
    return key


class Entry(NamedTuple):
    """A setting as `config list` shows it: typed for programs, `text` for people."""

    key: str
    value: Json
    default: Json
    source: str  # flag | env | stored | default
    text: str


class Settings(NamedTuple):
    max_retries: int
    backoff_base: float
    backoff_max_ms: int
    backoff_jitter: float
    first_attempt_is_free: bool
    max_crashes: int
    timeout_ms: int | None
    kill_grace_ms: int
    priority: int
    ageing: Ageing
    worker_count: int
    poll_interval_ms: int
    heartbeat_ms: int
    lease_ms: int
    log_limit: int
    output_limit: int
    retain_completed_ms: int | None
    retain_dead_ms: int | None
    retain_audit_ms: int | None
    origins: Mapping[str, str]  # name of a key -> flag | env | stored | default

    @classmethod
    def of(cls, values: Mapping[str, Value], origins: Mapping[str, str]) -> Settings:
        """From values by attribute, each parsed by its key; InvalidInput if they cannot be in force together."""
        fields: dict[str, Any] = dict(values)
        settings = cls(origins=origins, **fields)
        # One beat may come late without its worker being taken for dead.
        if settings.lease_ms < 2 * settings.heartbeat_ms:
            lease, heartbeat = settings._told("lease"), settings._told("heartbeat")
            raise InvalidInput(
                "lease",
                f"{lease} is less than twice the heartbeat of {heartbeat}",
                hint=f"set lease to {format_duration(2 * settings.heartbeat_ms)} or more, or heartbeat to "
                f"{format_duration(settings.lease_ms // 2)} or less",
            )
        return settings

    def _told(self, name: str) -> str:
        key = resolve_key(name)
        return self.text(key) + (f" ({key.variables[0]})" if self.origins.get(name) == "env" else "")

    def text(self, key: Key) -> str:
        """The value in its canonical form: what `config get` prints."""
        return key.text(getattr(self, key.attribute))

    def entries(self) -> list[Entry]:
        """Every setting, in the order of the reference."""
        return [
            Entry(
                key.name,
                key.json(getattr(self, key.attribute)),
                key.json(key.default),
                self.origins[key.name],
                self.text(key),
            )
            for key in KEYS
        ]
