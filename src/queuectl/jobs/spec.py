"""Validate the input of enqueue: from the fields a user gave to a NewJob, or an error that names the field.

A new field also needs: fields.py, NewJob, docs/reference/json.md, the options of `enqueue`, and its JSON Schema in web/schemas.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.jobs import fields as read
from queuectl.jobs.fields import queue
from queuectl.settings import Settings
from queuectl.text import WEBHOOK_QUEUE, short_repr, unknown_name

if TYPE_CHECKING:
    from queuectl.jobs.dependencies import Dependency

_Reader = Callable[[object, str], object]
# Event -> URL and its origin, as plain data, see webhooks/rules.py.
PackedHooks = Mapping[str, Sequence[str]]
# Webhooks for success, failure and death.
Urls = tuple[str | None, str | None, str | None]
# Resource -> limit of a run, see jobs/resources.py.
PackedLimits = Mapping[str, int]
# The defaults of a queue: priority, max_retries, timeout_ms (0: none), webhooks, resource limits. None: not set.
QueueDefault = tuple[int | None, int | None, int | None, Urls, PackedLimits | None]
QueueDefaults = Mapping[str, QueueDefault]
NO_URLS: Final[Urls] = (None, None, None)


class NewJob(NamedTuple):
    """A valid job that is not stored yet. A tuple: a bulk enqueue creates a million of them."""

    command: str | None
    argv: tuple[str, ...] | None
    id: str | None
    queue: str
    priority: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    run_at_ms: int | None
    delay_ms: int | None
    cwd: str
    env: Mapping[str, str] | None
    tags: tuple[str, ...]
    unique_key: str | None = None
    unique_for_ms: int | None = None  # compared with the existing job, not stored
    if_exists: str | None = None  # skip, error or replace; None: skip
    batch: str | None = None
    key: str | None = None  # concurrency key
    depends_on: tuple[Dependency, ...] = ()
    places: int | None = None  # concurrency of its key, before that of its queue
    hooks: PackedHooks | None = None  # webhooks
    limits: PackedLimits | None = None  # resource limits of a run
    secrets: tuple[str, ...] = ()  # variables that its worker resolves, see secrets/rules.py


def parse_user_queue(value: object, name: str) -> str:
    """The name of a queue that users may add jobs to."""
    found = queue(value, name)
    if found == WEBHOOK_QUEUE:
        raise InvalidInput(
            name, f"{WEBHOOK_QUEUE} is reserved for webhook deliveries", hint="see --on-success, --on-dead and others"
        )
    return found


HOOK_NAMES: Final = ("on_success", "on_failure", "on_dead")
LIMIT_NAMES: Final = ("memory", "cpu_time", "nice", "open_files", "processes", "file_size")


def _lazy(module: str, parser: str, **arguments: str) -> _Reader:
    """A parser whose module is imported when it is needed: few jobs have these fields, and `enqueue` has to start quickly."""

    def parse(value: object, name: str) -> object:
        from importlib import import_module

        found: _Reader = getattr(import_module(f"queuectl.{module}"), parser)
        return found(value, name, **arguments)

    return parse


parse_hook = _lazy("webhooks.rules", "parse_url_or_none")
parse_secrets = _lazy("secrets.rules", "parse_secrets")


def choose_hooks(own: Urls, queue_default: QueueDefault | None, of_all: Urls) -> PackedHooks | None:
    queue_value = NO_URLS if queue_default is None else queue_default[3]
    if own == queue_value == of_all == NO_URLS:
        return None
    from queuectl.webhooks.rules import choose_hooks, pack_hooks

    return pack_hooks(choose_hooks(own, queue_value, of_all))


def choose_limits(own: Sequence[int | None], queue_default: QueueDefault | None) -> PackedLimits | None:
    queue_value = (None if queue_default is None else queue_default[4]) or {}
    if not queue_value and not any(value is not None for value in own):
        return None
    from queuectl.jobs.resources import pack_limits

    given = zip(LIMIT_NAMES, own, strict=True)
    return pack_limits({name: queue_value.get(name) if value is None else value for name, value in given})


NO_QUEUE_DEFAULTS: Final[QueueDefaults] = {}


class Defaults(NamedTuple):
    """The values of fields that a job does not set: from the settings, the queue, and the working directory."""

    priority: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    cwd: str  # absolute
    queue: str = "default"
    by_queue: QueueDefaults = NO_QUEUE_DEFAULTS
    urls: Urls = NO_URLS  # webhooks of the settings

    @classmethod
    def of(cls, settings: Settings, *, cwd: str, by_queue: QueueDefaults = NO_QUEUE_DEFAULTS) -> Defaults:
        return cls(
            priority=settings.priority,
            max_retries=settings.max_retries,
            first_is_free=settings.first_attempt_is_free,
            backoff_base=settings.backoff_base,
            timeout_ms=settings.timeout_ms,
            cwd=cwd,
            by_queue=by_queue,
            urls=(settings.webhook_success, settings.webhook_failure, settings.webhook_dead),
        )


_SLOT: Final = {name: at for at, name in enumerate(NewJob._fields)}
_COMMAND: Final = _SLOT["command"]
_ARGV: Final = _SLOT["argv"]
_QUEUE: Final = _SLOT["queue"]
_PRIORITY: Final = _SLOT["priority"]
_FIRST_IS_FREE: Final = _SLOT["first_is_free"]
_RUN_AT: Final = _SLOT["run_at_ms"]
_DELAY: Final = _SLOT["delay_ms"]
_CWD: Final = _SLOT["cwd"]
_UNIQUE_KEY: Final = _SLOT["unique_key"]
_UNIQUE_FOR: Final = _SLOT["unique_for_ms"]
_IF_EXISTS: Final = _SLOT["if_exists"]
_KEY: Final = _SLOT["key"]
_PLACES: Final = _SLOT["places"]
_HOOKS: Final = _SLOT["hooks"]
_LIMITS: Final = _SLOT["limits"]
_NOWHERE: Final = len(_SLOT)  # validated, not stored
_ON_SUCCESS: Final = _NOWHERE + 1  # three fields that become `hooks`
_MEMORY: Final = _ON_SUCCESS + 3  # six fields that become `limits`
_NOTHING_OWN: Final = [None] * (3 + len(LIMIT_NAMES))
_EMPTY_DRAFT: Final = [NewJob._field_defaults.get(name) for name in NewJob._fields] + [None, *_NOTHING_OWN]
_EMPTY_DRAFT[_SLOT["tags"]] = ()

# Every name of a field -> its position in NewJob, and its parser.
_FIELDS: Final[dict[str, tuple[int, _Reader]]] = {
    "command": (_COMMAND, read.command),
    "argv": (_ARGV, read.argv),
    "id": (_SLOT["id"], read.job_id),
    "queue": (_QUEUE, parse_user_queue),
    "priority": (_PRIORITY, read.priority),
    "max_retries": (_SLOT["max_retries"], read.retries),
    "max_attempts": (_SLOT["max_retries"], read.retries),
    "backoff_base": (_SLOT["backoff_base"], read.backoff_base),
    "base_backoff": (_SLOT["backoff_base"], read.backoff_base),
    **dict.fromkeys(("timeout", "timeout_seconds", "timeout_sec"), (_SLOT["timeout_ms"], read.timeout)),
    "timeout_ms": (_SLOT["timeout_ms"], read.timeout_in_ms),
    **dict.fromkeys(("run_at", "available_at", "run_after", "next_run_at"), (_RUN_AT, read.run_at)),
    "delay": (_DELAY, read.delay),
    "cwd": (_CWD, read.cwd),
    "env": (_SLOT["env"], read.env),
    "tags": (_SLOT["tags"], read.tags),
    "depends_on": (_SLOT["depends_on"], read.depends_on),
    "after": (_SLOT["depends_on"], read.depends_on),
    "unique_key": (_UNIQUE_KEY, read.unique_key),
    "unique_for": (_UNIQUE_FOR, read.delay),
    "if_exists": (_IF_EXISTS, read.if_exists),
    "batch": (_SLOT["batch"], read.batch),
    "key": (_SLOT["key"], read.key),
    "places": (_SLOT["places"], read.places),
    "secrets": (_SLOT["secrets"], parse_secrets),
    **{name: (_ON_SUCCESS + at, parse_hook) for at, name in enumerate(HOOK_NAMES)},
    **{name: (_MEMORY + at, _lazy("jobs.resources", "parse_limit", limit=name)) for at, name in enumerate(LIMIT_NAMES)},
    # Other fields of job records of other tools.
    "state": (_NOWHERE, read.only_pending),
    "attempts": (_NOWHERE, read.only_zero),
    **dict.fromkeys(("created_at", "updated_at", "stdout_log", "waiting_time"), (_NOWHERE, read.ignored)),
}
_SHARED: Final = frozenset(
    _SLOT[name] for name in ("max_retries", "backoff_base", "timeout_ms", "run_at_ms", "depends_on")
)
_TIMEOUTS: Final = frozenset({"timeout", "timeout_seconds", "timeout_sec", "timeout_ms"})
# Fields of which an option replaces the others.
_RIVALS: Final = (
    frozenset({"command", "argv"}),
    frozenset({"run_at", "available_at", "run_after", "next_run_at", "delay"}),
    frozenset({"max_retries", "max_attempts"}),
    frozenset({"backoff_base", "base_backoff"}),
    _TIMEOUTS,
    frozenset({"depends_on", "after"}),
)


def validate(fields: Mapping[str, object], defaults: Defaults) -> NewJob:
    """The job that `fields` describe. Times without a zone are in the zone of this host.

    Raises only InvalidInput and UnknownName, which name the field, for any values.
    """
    if type(fields) is not dict and not isinstance(fields, Mapping):
        raise InvalidInput("job", f"expected an object, got {short_repr(fields)}", hint='like {"command": "echo hi"}')
    # One list in the order of NewJob: this is the hot path of a bulk enqueue.
    draft: list[Any] = _EMPTY_DRAFT.copy()
    draft[_QUEUE] = defaults.queue
    draft[_PRIORITY:_RUN_AT] = defaults[: _RUN_AT - _PRIORITY]  # priority to timeout_ms, in the same order
    spelled: dict[int, tuple[str, object]] = {}
    for name, value in fields.items():
        field = _FIELDS.get(name)
        if field is None:
            raise unknown_name("field", name, _FIELDS)
        if value is None:
            continue
        slot, reader = field
        kept = reader(value, name)
        if slot in _SHARED:
            other, before = spelled.setdefault(slot, (name, kept))
            if before != kept:
                raise InvalidInput(
                    name,
                    f"{short_repr(value)} contradicts {other}: {short_repr(fields[other])}",
                    hint="give one of the two",
                )
            if name == "max_attempts":
                draft[_FIRST_IS_FREE] = False
        draft[slot] = kept
    if (draft[_COMMAND] is None) is (draft[_ARGV] is None):
        raise _not_one_command(both=draft[_COMMAND] is not None)
    if draft[_DELAY] is not None and draft[_RUN_AT] is not None:
        raise InvalidInput("delay", f"not together with {spelled[_RUN_AT][0]}", hint="give one of the two")
    if draft[_UNIQUE_KEY] is None and (draft[_UNIQUE_FOR] is not None or draft[_IF_EXISTS] is not None):
        name = "unique_for" if draft[_UNIQUE_FOR] is not None else "if_exists"
        raise InvalidInput(name, "there is no unique_key", hint="give a unique key, like --unique report")
    if draft[_PLACES] is not None and draft[_KEY] is None:
        raise InvalidInput("places", "there is no key", hint='add a key: "key": "customer-7"')
    if defaults.by_queue:
        _apply_queue_defaults(draft, fields, defaults)
    draft[_CWD] = defaults.cwd if draft[_CWD] is None else read.absolute(draft[_CWD], defaults.cwd)
    own = draft[_ON_SUCCESS:]
    if own != _NOTHING_OWN or defaults.urls != NO_URLS or defaults.by_queue:
        queue_default = defaults.by_queue.get(draft[_QUEUE])
        draft[_HOOKS] = choose_hooks((own[0], own[1], own[2]), queue_default, defaults.urls)
        draft[_LIMITS] = choose_limits(own[3:], queue_default)
    del draft[_NOWHERE:]
    return NewJob._make(draft)


def command_variants(first: NewJob) -> Callable[[object], NewJob]:
    """A function that makes jobs which differ from `first` only by their command: the rest is validated once."""
    others, read_command, make = first[1:], read.command, NewJob._make
    return lambda given: make((read_command(given, "command"), *others))


def _apply_queue_defaults(draft: list[Any], fields: Mapping[str, object], defaults: Defaults) -> None:
    """Defaults of the queue take precedence over the settings, for fields that the job does not set."""
    queue_default = defaults.by_queue.get(draft[_QUEUE])
    if queue_default is None:
        return
    priority, max_retries, timeout_ms, *_ = queue_default
    if priority is not None and fields.get("priority") is None:
        draft[_PRIORITY] = priority
    if max_retries is not None and all(fields.get(name) is None for name in ("max_retries", "max_attempts")):
        draft[_SLOT["max_retries"]] = max_retries
    if timeout_ms is not None and all(fields.get(name) is None for name in _TIMEOUTS):
        draft[_SLOT["timeout_ms"]] = timeout_ms or None


def check_field(name: str, value: object, *, spelled: str) -> None:
    """Raise InvalidInput for a value that the field `name` does not accept; the message names the option `spelled`."""
    _FIELDS[name][1](value, spelled)


def merge_fields(fields: Mapping[str, object], flags: Mapping[str, object]) -> dict[str, object]:
    """`fields` overridden by `flags`.

    A flag replaces every name of its field and the fields that exclude it: `delay` replaces `run_at`, `command` replaces
    `argv`. `env` and `secrets` are merged by variable.
    """
    merged = dict(fields)
    for name in flags:
        for rivals in _RIVALS:
            if name in rivals:
                for rival in rivals:
                    merged.pop(rival, None)
    merged.update(flags)
    before, on_top = fields.get("env"), flags.get("env")
    if isinstance(before, Mapping) and isinstance(on_top, Mapping):
        merged["env"] = {**before, **on_top}
    if "secrets" in fields and "secrets" in flags:
        from queuectl.secrets.rules import merge_secrets

        merged["secrets"] = merge_secrets(fields["secrets"], flags["secrets"])
    return merged


def readers() -> dict[str, tuple[str, _Reader]]:
    """Every field of a new job -> its preferred name and its parser, without those that are validated and then ignored."""
    preferred: dict[int, str] = {}
    return {
        name: (preferred.setdefault(slot, name), reader) for name, (slot, reader) in _FIELDS.items() if slot != _NOWHERE
    }


def _not_one_command(*, both: bool) -> InvalidInput:
    if both:
        return InvalidInput("argv", "not together with command", hint="command is for the shell, argv runs without one")
    return InvalidInput(
        "command", "missing", hint='say what to run, like "command": "echo hi" or "argv": ["echo", "hi"]'
    )
