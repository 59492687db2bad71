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


# The position of each field: _AT.queue is 3.
_AT: Final[Any] = NewJob._make(range(len(NewJob._fields)))
_DEFAULTED: Final = _AT.run_at_ms - _AT.priority
_NOWHERE: Final = len(_AT)  # validated, not stored
_ON_SUCCESS: Final = _NOWHERE + 1  # three fields that become `hooks`
_MEMORY: Final = _ON_SUCCESS + 3  # six fields that become `limits`
_NOTHING_OWN: Final = [None] * (3 + len(LIMIT_NAMES))
_EMPTY_DRAFT: Final = [NewJob._field_defaults.get(name) for name in NewJob._fields] + [None, *_NOTHING_OWN]
_EMPTY_DRAFT[_AT.tags] = ()

# Every name of a field -> its position in NewJob, and its parser.
_FIELDS: Final[dict[str, tuple[int, _Reader]]] = {
    "command": (_AT.command, read.command),
    "argv": (_AT.argv, read.argv),
    "id": (_AT.id, read.job_id),
    "queue": (_AT.queue, parse_user_queue),
    "priority": (_AT.priority, read.priority),
    "max_retries": (_AT.max_retries, read.retries),
    "max_attempts": (_AT.max_retries, read.retries),
    "backoff_base": (_AT.backoff_base, read.backoff_base),
    "base_backoff": (_AT.backoff_base, read.backoff_base),
    **dict.fromkeys(("timeout", "timeout_seconds", "timeout_sec"), (_AT.timeout_ms, read.timeout)),
    "timeout_ms": (_AT.timeout_ms, read.timeout_in_ms),
    **dict.fromkeys(("run_at", "available_at", "run_after", "next_run_at"), (_AT.run_at_ms, read.run_at)),
    "delay": (_AT.delay_ms, read.delay),
    "cwd": (_AT.cwd, read.cwd),
    "env": (_AT.env, read.env),
    "tags": (_AT.tags, read.tags),
    "depends_on": (_AT.depends_on, read.depends_on),
    "after": (_AT.depends_on, read.depends_on),
    "unique_key": (_AT.unique_key, read.unique_key),
    "unique_for": (_AT.unique_for_ms, read.delay),
    "if_exists": (_AT.if_exists, read.if_exists),
    "batch": (_AT.batch, read.batch),
    "key": (_AT.key, read.key),
    "places": (_AT.places, read.places),
    "secrets": (_AT.secrets, parse_secrets),
    **{name: (_ON_SUCCESS + at, parse_hook) for at, name in enumerate(HOOK_NAMES)},
    **{name: (_MEMORY + at, _lazy("jobs.resources", "parse_limit", limit=name)) for at, name in enumerate(LIMIT_NAMES)},
    # Other fields of job records of other tools.
    "state": (_NOWHERE, read.only_pending),
    "attempts": (_NOWHERE, read.only_zero),
    **dict.fromkeys(("created_at", "updated_at", "stdout_log", "waiting_time"), (_NOWHERE, read.ignored)),
}
# Fields with several names.
_SHARED: Final = frozenset({_AT.max_retries, _AT.backoff_base, _AT.timeout_ms, _AT.run_at_ms, _AT.depends_on})


def _names_of(*slots: int) -> frozenset[str]:
    return frozenset(name for name, (slot, _) in _FIELDS.items() if slot in slots)


# Names of which an option replaces the others.
_RIVALS: Final = (
    _names_of(_AT.command, _AT.argv),
    _names_of(_AT.run_at_ms, _AT.delay_ms),
    *(_names_of(slot) for slot in _SHARED - {_AT.run_at_ms}),
)


def validate(fields: Mapping[str, object], defaults: Defaults) -> NewJob:
    """The job that `fields` describe. Times without a zone are in the zone of this host.

    Raises only InvalidInput and UnknownName, which name the field, for any values.
    """
    if type(fields) is not dict and not isinstance(fields, Mapping):
        raise InvalidInput("job", f"expected an object, got {short_repr(fields)}", hint='like {"command": "echo hi"}')
    # One list in the order of NewJob: this is the hot path of a bulk enqueue.
    draft: list[Any] = _EMPTY_DRAFT.copy()
    draft[_AT.queue] = defaults.queue
    draft[_AT.priority : _AT.run_at_ms] = defaults[:_DEFAULTED]  # priority to timeout_ms, in the same order
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
                draft[_AT.first_is_free] = False
        draft[slot] = kept
    if (draft[_AT.command] is None) is (draft[_AT.argv] is None):
        raise _not_one_command(both=draft[_AT.command] is not None)
    if draft[_AT.delay_ms] is not None and draft[_AT.run_at_ms] is not None:
        raise InvalidInput("delay", f"not together with {spelled[_AT.run_at_ms][0]}", hint="give one of the two")
    if draft[_AT.unique_key] is None and (draft[_AT.unique_for_ms] is not None or draft[_AT.if_exists] is not None):
        name = "unique_for" if draft[_AT.unique_for_ms] is not None else "if_exists"
        raise InvalidInput(name, "there is no unique_key", hint="give a unique key, like --unique report")
    if draft[_AT.places] is not None and draft[_AT.key] is None:
        raise InvalidInput("places", "there is no key", hint='add a key: "key": "customer-7"')
    if defaults.by_queue:
        _apply_queue_defaults(draft, fields, spelled, defaults)
    draft[_AT.cwd] = defaults.cwd if draft[_AT.cwd] is None else read.absolute(draft[_AT.cwd], defaults.cwd)
    own = draft[_ON_SUCCESS:]
    if own != _NOTHING_OWN or defaults.urls != NO_URLS or defaults.by_queue:
        queue_default = defaults.by_queue.get(draft[_AT.queue])
        draft[_AT.hooks] = choose_hooks((own[0], own[1], own[2]), queue_default, defaults.urls)
        draft[_AT.limits] = choose_limits(own[3:], queue_default)
    del draft[_NOWHERE:]
    return NewJob._make(draft)


def command_variants(first: NewJob) -> Callable[[object], NewJob]:
    """A function that makes jobs which differ from `first` only by their command: the rest is validated once."""
    others, read_command, make = first[1:], read.command, NewJob._make
    return lambda given: make((read_command(given, "command"), *others))


def _apply_queue_defaults(
    draft: list[Any], fields: Mapping[str, object], spelled: Mapping[int, object], defaults: Defaults
) -> None:
    """Defaults of the queue take precedence over the settings, for fields that the job does not set. `spelled`: those of several names
    that it sets."""
    queue_default = defaults.by_queue.get(draft[_AT.queue])
    if queue_default is None:
        return
    priority, max_retries, timeout_ms, *_ = queue_default
    if priority is not None and fields.get("priority") is None:
        draft[_AT.priority] = priority
    if max_retries is not None and _AT.max_retries not in spelled:
        draft[_AT.max_retries] = max_retries
    if timeout_ms is not None and _AT.timeout_ms not in spelled:
        draft[_AT.timeout_ms] = timeout_ms or None


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
