"""The table of settings: name, accepted values, default, and how each is parsed and formatted.

A new setting also needs an attribute of Settings and a row in docs/reference/configuration.md (scripts/docs)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.jobs.priority import AGEING_HINT as AGEING_FORM
from queuectl.jobs.priority import Ageing, Strict, format_ageing, parse_ageing
from queuectl.jobs.states import State
from queuectl.text import closest_match, short_repr
from queuectl.units import DAY_MS, HOUR_MS, MAX_DURATION_MS, format_duration, format_size, parse_duration_ms, parse_size

Value = int | float | bool | str | Ageing | None
Json = int | float | bool | str | None

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30

HIDDEN: Final = "***"
MIN_WEBHOOK_SECRET_CHARS: Final = 16
MAX_WEBHOOK_SECRET_CHARS: Final = 256


class Kind(NamedTuple):
    """A type of setting: how its values are parsed and formatted, in a form that `parse` accepts. In JSON, None is null."""

    form: str
    parse: Callable[[str, str], Value]
    text: Callable[[Any], str] = str
    is_plain: bool = False  # the same in JSON, which has the other values as text
    redacted: Callable[[Any], str] | None = None  # `text` without secrets, but not of None; None: the same


def _refusal(subject: str, form: str, text: str) -> InvalidInput:
    return InvalidInput(subject, f"expected {form}, got {short_repr(text)}", hint=f"{subject} takes {form}")


def _integer(low: int, high: int) -> Kind:
    form = f"an integer from {low} to {high}"

    def parse(text: str, subject: str) -> Value:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise _refusal(subject, form, text)
        return int(text)

    return Kind(form=form, parse=parse, is_plain=True)


def _number(low: float, high: float | None) -> Kind:
    form = f"a number of at least {low:g}" if high is None else f"a number from {low:g} to {high:g}"

    def parse(text: str, subject: str) -> Value:
        # At most 300 characters: the value is finite.
        if len(text) > 300 or not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text):
            raise _refusal(subject, form, text)
        value = float(text)
        if value < low or (high is not None and value > high):
            raise _refusal(subject, form, text)
        return value

    def text(value: float) -> str:
        from decimal import Decimal  # imported here: few commands need it

        # Without an exponent, which `parse` does not accept: Python writes 1e+16 and 1e-05.
        return format(Decimal(repr(value)), "f").removesuffix(".0")

    return Kind(form=form, parse=parse, text=text, is_plain=True)


def _boolean() -> Kind:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

    def parse(text: str, subject: str) -> Value:
        if text.lower() not in words:
            raise InvalidInput(subject, f"expected true or false, got {short_repr(text)}", hint="true or false")
        return words[text.lower()]

    return Kind(form="true or false", parse=parse, text=lambda value: "true" if value else "false", is_plain=True)


def _duration(low_ms: int, high_ms: int, *, nothing: str | None = None, zero_is_nothing: bool = False) -> Kind:
    """`nothing` is the word for None, if the duration is optional."""
    limits = (
        f"from {format_duration(low_ms)} to {'100 years' if high_ms == MAX_DURATION_MS else format_duration(high_ms)}"
    )
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
            raise InvalidInput(subject, f"expected {limits}, got {short_repr(text)}", hint=f"{subject} takes {form}")
        return ms

    return Kind(form=form, parse=parse, text=lambda ms: str(nothing) if ms is None else format_duration(ms))


def _size(low: int, high: int) -> Kind:
    limits = f"from {format_size(low)} to {format_size(high)}"

    def parse(text: str, subject: str) -> Value:
        # One error for all: the limits in the message of `parse_size` are wider than those of the key.
        refusal = InvalidInput(
            subject,
            f"expected a size {limits}, got {short_repr(text)}",
            hint=f"{subject} takes a size like 64KiB, 10MB",
        )
        try:
            size = parse_size(text, subject=subject)
        except InvalidInput as error:
            raise refusal from error
        if not low <= size <= high:
            raise refusal
        return size

    return Kind(form=f"a size {limits} (64KiB, 10MB)", parse=parse, text=format_size)


def _url() -> Kind:
    def parse(text: str, subject: str) -> Value:
        # Imported here: few settings are URLs, and `enqueue` has to start quickly.
        from queuectl.webhooks.rules import parse_url_or_none

        return parse_url_or_none(text, subject) or None

    def redacted(url: str) -> str:
        from queuectl.webhooks.rules import redact_url

        return redact_url(url)

    form = "an http or https URL, or none"
    return Kind(form=form, parse=parse, text=lambda url: url or "none", redacted=redacted)


def _secret() -> Kind:
    form = f"{MIN_WEBHOOK_SECRET_CHARS} to {MAX_WEBHOOK_SECRET_CHARS} visible ASCII characters, or none"

    def parse(text: str, subject: str) -> Value:
        if text.lower() == "none":
            return None
        if (
            not MIN_WEBHOOK_SECRET_CHARS <= len(text) <= MAX_WEBHOOK_SECRET_CHARS
            or not text.isascii()
            or not text.isprintable()
        ):
            # Without the value, which may be a secret except for one character.
            hint = f"make one: openssl rand -hex 32 | queuectl config set {subject} -"
            raise InvalidInput(subject, f"expected {form}", hint=hint)
        return text

    return Kind(form=form, parse=parse, text=lambda secret: secret or "none", redacted=lambda _: HIDDEN)


def _ageing() -> Kind:
    return Kind(form=AGEING_FORM, parse=lambda text, subject: parse_ageing(text, subject=subject), text=format_ageing)


class Key(NamedTuple):
    name: str
    kind: Kind
    default: Value
    about: str  # a short description
    unit: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """Its name in Settings."""
        return self.name.replace("-", "_") + self.unit

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple("QUEUECTL_" + name.upper().replace("-", "_") for name in (self.name, *self.aliases))

    @property
    def form(self) -> str:
        """A description of the accepted values."""
        return self.kind.form

    def parse(self, text: str, *, subject: str) -> Value:
        return self.kind.parse(text.strip(), subject)

    def text(self, value: Value) -> str:
        return self.kind.text(value)

    def redacted(self, value: Value) -> str:
        """`text` without secrets."""
        return (self.kind.text if value is None else self.kind.redacted or self.kind.text)(value)

    def json(self, value: Value) -> Json:
        if value is None or self.kind.is_plain:
            return value  # type: ignore[return-value] # no Ageing
        return self.redacted(value)


# fmt: off
KEYS: Final = (
    Key("max-retries", _integer(0, 1_000_000), 3, "failed attempts after which a job is dead",
        aliases=("default-max-retries", "max-attempts")),
    Key("backoff-base", _number(1, None), 2.0, "a retry waits base ** attempts seconds", aliases=("base-backoff",)),
    Key("backoff-max", _duration(0, MAX_DURATION_MS), HOUR_MS, "maximum backoff", unit="_ms"),
    Key("backoff-jitter", _number(0, 1), 0.0, "random variation of the backoff, as a fraction of it"),
    Key("first-attempt-is-free", _boolean(), False, "max-retries does not count the first attempt"),
    Key("max-crashes", _integer(1, 1_000_000), 3, "crashes of its worker after which a job is dead"),
    Key("timeout", _duration(1, MAX_DURATION_MS, nothing="none", zero_is_nothing=True), None, "time limit of a run",
        unit="_ms", aliases=("job-timeout", "default-timeout")),
    Key("kill-grace", _duration(0, DAY_MS), 5_000, "time between SIGTERM and SIGKILL", unit="_ms"),
    Key("priority", _integer(-1_000_000, 1_000_000), 0, "default priority of a job"),
    Key("ageing", _ageing(), Strict(), "how waiting raises the priority"),
    Key("worker-count", _integer(1, 1_000), 1, "slots of a worker started without --count"),
    Key("poll-interval", _duration(10, HOUR_MS), 1_000, "how often a worker polls without a wake-up", unit="_ms"),
    Key("heartbeat", _duration(100, HOUR_MS), 5_000, "how often a worker sends a heartbeat", unit="_ms"),
    Key("lease", _duration(200, DAY_MS), 30_000, "time without a heartbeat after which a worker is lost", unit="_ms"),
    Key("log-limit", _size(KIB, 1024 * GIB), 64 * MIB, "maximum size of the log of a job"),
    Key("output-limit", _size(0, GIB), 64 * KIB, "output of a run that show prints and PostgreSQL stores"),
    Key("retain-completed", _duration(0, MAX_DURATION_MS, nothing="forever"), 30 * DAY_MS,
        "how long completed jobs are kept", unit="_ms"),
    Key("retain-dead", _duration(0, MAX_DURATION_MS, nothing="forever"), None, "how long dead jobs are kept", unit="_ms"),
    Key("retain-audit", _duration(0, MAX_DURATION_MS, nothing="forever"), 365 * DAY_MS,
        "how long the audit log is kept", unit="_ms"),
    Key("webhook-success", _url(), None, "default webhook for completed jobs"),
    Key("webhook-failure", _url(), None, "default webhook for failed runs"),
    Key("webhook-dead", _url(), None, "default webhook for dead jobs"),
    Key("webhook-secret", _secret(), None, "signs webhooks; never shown"),
    Key("webhook-allow-private", _boolean(), False, "webhooks of jobs may have private addresses"),
)
# fmt: on

_BY_NAME: Final = {name: key for key in KEYS for name in (key.name, *key.aliases)}


def resolve_key(name: str) -> Key:
    """The key of that name or alias, with dashes or underscores. Raises UnknownName."""
    wanted = name.strip().lower().replace("_", "-")
    key = _BY_NAME.get(wanted)
    if key is None:
        raise UnknownName("key", name, nearest=closest_match(wanted, _BY_NAME), known=[key.name for key in KEYS])
    return key


class SettingEntry(NamedTuple):
    """A setting as `config list` shows it: typed for JSON, `text` for tables."""

    key: str
    value: Json
    default: Json
    source: str  # env | stored | default
    text: str

    def to_dict(self) -> dict[str, Json]:
        return {"key": self.key, "value": self.value, "default": self.default, "source": self.source}


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
    webhook_success: str | None
    webhook_failure: str | None
    webhook_dead: str | None
    webhook_secret: str | None
    webhook_allow_private: bool
    origins: Mapping[str, str]  # name of a key -> env | stored | default

    @classmethod
    def of(cls, values: Mapping[str, Value], origins: Mapping[str, str]) -> Settings:
        """From parsed values by attribute. Raises InvalidInput if they contradict each other."""
        fields: dict[str, Any] = dict(values)
        settings = cls(origins=origins, **fields)
        # One heartbeat may be late without its worker being declared dead.
        if settings.lease_ms < 2 * settings.heartbeat_ms:
            lease, heartbeat = settings._describe("lease"), settings._describe("heartbeat")
            raise InvalidInput(
                "lease",
                f"{lease} is less than twice the heartbeat of {heartbeat}",
                hint=f"set lease to {format_duration(2 * settings.heartbeat_ms)} or more, or heartbeat to "
                f"{format_duration(settings.lease_ms // 2)} or less",
            )
        return settings

    def _describe(self, name: str) -> str:
        key = resolve_key(name)
        return self.text(key) + (f" ({key.variables[0]})" if self.origins.get(name) == "env" else "")

    def text(self, key: Key) -> str:
        """The value in canonical form, without secrets, as `config get` prints it."""
        return key.redacted(getattr(self, key.attribute))

    def entry(self, name: str) -> SettingEntry:
        """The entry of a key or alias. Raises UnknownName, with the closest match."""
        wanted = resolve_key(name).name
        return next(entry for entry in self.entries() if entry.key == wanted)

    def entries(self) -> list[SettingEntry]:
        """Every setting, in the order of the reference."""
        return [
            SettingEntry(
                key.name,
                key.json(getattr(self, key.attribute)),
                key.json(key.default),
                self.origins[key.name],
                self.text(key),
            )
            for key in KEYS
        ]


def retention(settings: Settings) -> dict[State, int | None]:
    """For each final state, how many milliseconds after its end a job is kept; None: forever."""
    return {
        State.COMPLETED: settings.retain_completed_ms,
        # A cancelled job has no error to analyze and no result to keep.
        State.CANCELLED: settings.retain_completed_ms,
        State.DEAD: settings.retain_dead_ms,
    }
