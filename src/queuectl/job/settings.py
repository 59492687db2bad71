"""The settings there are: name, accepted form, default, and how each is read and written.

New key? Also: an attribute of Settings, docs/reference/configuration.md (scripts/docs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job import kinds
from queuectl.job.duration import DAY_MS, HOUR_MS, LONGEST_MS, format_duration
from queuectl.job.kinds import GIB, KIB, MIB, Json, Kind
from queuectl.job.kinds import Value as Value
from queuectl.job.nearest import nearest
from queuectl.job.rank import Ageing, Strict


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

    def shown(self, value: Value) -> str:
        """`text` without what is secret in it."""
        return self.kind.shown(value)

    def json(self, value: Value) -> Json:
        return self.kind.json(value)


# fmt: off
KEYS: Final = (
    Key("max-retries", kinds.integer(0, 1_000_000), 3, "failed runs after which a job is dead",
        aliases=("default-max-retries", "max-attempts")),
    Key("backoff-base", kinds.number(1, None), 2.0, "a retry waits base ** attempts seconds", aliases=("base-backoff",)),
    Key("backoff-max", kinds.duration(0, LONGEST_MS), HOUR_MS, "no retry waits longer", unit="_ms"),
    Key("backoff-jitter", kinds.number(0, 1), 0.0, "how far a wait may stray from that, as a share of it"),
    Key("first-attempt-is-free", kinds.boolean(), False, "max-retries counts the runs after the first"),
    Key("max-crashes", kinds.integer(1, 1_000_000), 3, "lost workers after which a job is dead"),
    Key("timeout", kinds.duration(1, LONGEST_MS, nothing="none", zero_is_nothing=True), None, "time limit of a run",
        unit="_ms", aliases=("job-timeout", "default-timeout")),
    Key("kill-grace", kinds.duration(0, DAY_MS), 5_000, "time between TERM and KILL", unit="_ms"),
    Key("priority", kinds.integer(-1_000_000, 1_000_000), 0, "priority of a job that names none"),
    Key("ageing", kinds.ageing(), Strict(), "what waiting is worth"),
    Key("worker-count", kinds.integer(1, 1_000), 1, "slots of a worker started without --count"),
    Key("poll-interval", kinds.duration(10, HOUR_MS), 1_000, "how often a worker looks without being woken", unit="_ms"),
    Key("heartbeat", kinds.duration(100, HOUR_MS), 5_000, "how often a worker says that it lives", unit="_ms"),
    Key("lease", kinds.duration(200, DAY_MS), 30_000, "silence after which a worker counts as gone", unit="_ms"),
    Key("log-limit", kinds.size(KIB, 1024 * GIB), 64 * MIB, "disk that the log of one job may take"),
    Key("output-limit", kinds.size(0, GIB), 64 * KIB, "bytes of output that show prints, and PostgreSQL keeps of a run"),
    Key("retain-completed", kinds.duration(0, LONGEST_MS, nothing="forever"), 30 * DAY_MS,
        "how long completed jobs are kept", unit="_ms"),
    Key("retain-dead", kinds.duration(0, LONGEST_MS, nothing="forever"), None, "how long dead jobs are kept", unit="_ms"),
    Key("retain-audit", kinds.duration(0, LONGEST_MS, nothing="forever"), 365 * DAY_MS,
        "how long it is known who changed what", unit="_ms"),
    Key("webhook-success", kinds.url(), None, "who is called when a job completes that says nothing else"),
    Key("webhook-failure", kinds.url(), None, "who is called when a run fails"),
    Key("webhook-dead", kinds.url(), None, "who is called when a job fails for good"),
    Key("webhook-secret", kinds.secret(), None, "what calls are signed with; never shown"),
    Key("webhook-allow-private", kinds.boolean(), False, "jobs may have private addresses called"),
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
    webhook_success: str | None
    webhook_failure: str | None
    webhook_dead: str | None
    webhook_secret: str | None
    webhook_allow_private: bool
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
        """The value in its canonical form, without what is secret in it: what `config get` prints."""
        return key.shown(getattr(self, key.attribute))

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
