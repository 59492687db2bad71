"""What `enqueue` accepts: from the fields that somebody wrote to a job that can be stored, or a clear refusal.

New field? Also: fields.py, NewJob, docs/reference/json.md, and the flags of `enqueue`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job import fields as read
from queuectl.job import seldom
from queuectl.job.moment import parse_moment_ms
from queuectl.job.nearest import nearest
from queuectl.job.newjob import NO_URLS, NewJob, QueueDefaults, Urls
from queuectl.job.reserved import queue_for_jobs
from queuectl.job.settings import Settings
from queuectl.job.shown import cut, shown

NOTHING_SAID: Final[QueueDefaults] = {}


class Defaults(NamedTuple):
    """What a job gets that does not say otherwise: from the settings, and from where enqueue was called."""

    priority: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    cwd: str  # absolute
    queue: str = "default"
    by_queue: QueueDefaults = NOTHING_SAID
    urls: Urls = NO_URLS  # whom to tell

    @classmethod
    def of(cls, settings: Settings, *, cwd: str, by_queue: QueueDefaults = NOTHING_SAID) -> Defaults:
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
_NOWHERE: Final = len(_SLOT)  # looked at, then forgotten
_ON_SUCCESS: Final = _NOWHERE + 1  # these three become one
_MEMORY: Final = _ON_SUCCESS + 3  # and so do these
_NOTHING_OWN: Final = [None] * (3 + len(seldom.LIMITS))

_Reader = Callable[[object, str], object]


# Every spelling -> where it goes in a NewJob, and who reads it.
_FIELDS: Final[dict[str, tuple[int, _Reader]]] = {
    "command": (_COMMAND, read.command),
    "argv": (_ARGV, read.argv),
    "id": (_SLOT["id"], read.job_id),
    "queue": (_SLOT["queue"], queue_for_jobs),
    "priority": (_SLOT["priority"], read.priority),
    "max_retries": (_SLOT["max_retries"], read.retries),
    "max_attempts": (_SLOT["max_retries"], read.retries),
    "backoff_base": (_SLOT["backoff_base"], read.backoff_base),
    "base_backoff": (_SLOT["backoff_base"], read.backoff_base),
    "timeout": (_SLOT["timeout_ms"], read.timeout),
    "timeout_seconds": (_SLOT["timeout_ms"], read.timeout),
    "timeout_sec": (_SLOT["timeout_ms"], read.timeout),
    "timeout_ms": (_SLOT["timeout_ms"], read.timeout_in_ms),
    # A moment also needs the local zone: validate reads these four itself.
    "run_at": (_RUN_AT, read.ignored),
    "available_at": (_RUN_AT, read.ignored),
    "run_after": (_RUN_AT, read.ignored),
    "next_run_at": (_RUN_AT, read.ignored),
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
    "secrets": (_SLOT["secrets"], seldom.secrets),
    "on_success": (_ON_SUCCESS, seldom.hook),
    "on_failure": (_ON_SUCCESS + 1, seldom.hook),
    "on_dead": (_ON_SUCCESS + 2, seldom.hook),
    **{name: (_MEMORY + at, seldom.limit(name)) for at, name in enumerate(seldom.LIMITS)},
    # The rest of a job record of another tool.
    "state": (_NOWHERE, read.only_pending),
    "attempts": (_NOWHERE, read.only_zero),
    "created_at": (_NOWHERE, read.ignored),
    "updated_at": (_NOWHERE, read.ignored),
    "stdout_log": (_NOWHERE, read.ignored),
    "waiting_time": (_NOWHERE, read.ignored),
}
_SHARED: Final = frozenset(
    _SLOT[name] for name in ("max_retries", "backoff_base", "timeout_ms", "run_at_ms", "depends_on")
)
_TIMEOUTS: Final = frozenset({"timeout", "timeout_seconds", "timeout_sec", "timeout_ms"})
# Of these, one that is given later takes the place of the others.
_RIVALS: Final = (
    frozenset({"command", "argv"}),
    frozenset({"run_at", "available_at", "run_after", "next_run_at", "delay"}),
    frozenset({"max_retries", "max_attempts"}),
    frozenset({"backoff_base", "base_backoff"}),
    _TIMEOUTS,
    frozenset({"depends_on", "after"}),
)


def validate(fields: Mapping[str, object], defaults: Defaults, *, local: tzinfo | None = None) -> NewJob:
    """The job that `fields` describe. `local` is the zone of times without one, None for this machine's.

    Raises InvalidInput or UnknownName, which name the field; never anything else, whatever the values are.
    """
    if type(fields) is not dict and not isinstance(fields, Mapping):
        raise InvalidInput("job", f"expected an object, got {shown(fields)}", hint='like {"command": "echo hi"}')
    # One list in the order of NewJob: a bulk enqueue spends its time here.
    draft: list[Any] = [
        None,
        None,
        None,
        defaults.queue,
        defaults.priority,
        defaults.max_retries,
        defaults.first_is_free,
        defaults.backoff_base,
        defaults.timeout_ms,
        None,
        None,
        None,
        None,
        (),
        None,
        None,
        None,
        None,
        None,
        (),
        None,
        None,
        None,
        (),
        None,
        *_NOTHING_OWN,
    ]
    spelled: dict[int, tuple[str, object]] = {}
    for name, value in fields.items():
        field = _FIELDS.get(name)
        if field is None:
            raise _unknown(name)
        if value is None:
            continue
        slot, reader = field
        kept = parse_moment_ms(value, subject=name, local=local) if slot == _RUN_AT else reader(value, name)
        if slot in _SHARED:
            other, before = spelled.setdefault(slot, (name, kept))
            if before != kept:
                raise InvalidInput(
                    name, f"{shown(value)} contradicts {other}: {shown(fields[other])}", hint="give one of the two"
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
        raise InvalidInput(name, "there is no unique_key", hint="say what may not be there twice, like --unique report")
    if draft[_PLACES] is not None and draft[_KEY] is None:
        raise InvalidInput("places", "there is no key", hint='say whose places: "key": "customer-7"')
    if defaults.by_queue:
        _take_from_queue(draft, fields, defaults)
    draft[_CWD] = defaults.cwd if draft[_CWD] is None else read.absolute(draft[_CWD], defaults.cwd)
    own = draft[_ON_SUCCESS:]
    if own != _NOTHING_OWN or defaults.urls != NO_URLS or defaults.by_queue:
        of_queue = defaults.by_queue.get(draft[_SLOT["queue"]])
        draft[_HOOKS] = seldom.hooks((own[0], own[1], own[2]), of_queue, defaults.urls)
        draft[_LIMITS] = seldom.limits(own[3:], of_queue)
    del draft[_NOWHERE:]
    return NewJob._make(draft)


def alike(first: NewJob) -> Callable[[object], NewJob]:
    """Makes jobs that differ from it by their command only: what else they have was looked at once."""
    others, read_command, make = first[1:], read.command, NewJob._make
    return lambda given: make((read_command(given, "command"), *others))


def _take_from_queue(draft: list[Any], fields: Mapping[str, object], defaults: Defaults) -> None:
    """What its queue says goes before the settings, for what the job itself does not say."""
    of_queue = defaults.by_queue.get(draft[_SLOT["queue"]])
    if of_queue is None:
        return
    priority, max_retries, timeout_ms, *_ = of_queue
    if priority is not None and fields.get("priority") is None:
        draft[_SLOT["priority"]] = priority
    if max_retries is not None and all(fields.get(name) is None for name in ("max_retries", "max_attempts")):
        draft[_SLOT["max_retries"]] = max_retries
    if timeout_ms is not None and all(fields.get(name) is None for name in _TIMEOUTS):
        draft[_SLOT["timeout_ms"]] = timeout_ms or None


def check_field(name: str, value: object, *, spelled: str, local: tzinfo | None = None) -> None:
    """Raise InvalidInput for a value that the field `name` cannot have, in the words of an option that is `spelled` so."""
    slot, reader = _FIELDS[name]
    if slot == _RUN_AT:
        parse_moment_ms(value, subject=spelled, local=local)
    else:
        reader(value, spelled)


def merge(fields: Mapping[str, object], flags: Mapping[str, object]) -> dict[str, object]:
    """`fields` with `flags` on top. A flag takes the place of every spelling of its field and of what it rules out:
    `delay` of `run_at`, `command` of `argv`. Of `env` and `secrets`, each variable counts for itself."""
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
        merged["secrets"] = seldom.merged_secrets(fields["secrets"], flags["secrets"])
    return merged


def _unknown(name: object) -> UnknownName:
    wanted = cut(str(name))
    found = nearest(wanted.lower().replace("-", "_"), _FIELDS)
    return UnknownName("field", wanted, nearest=found, known=list(_FIELDS))


def _not_one_command(*, both: bool) -> InvalidInput:
    if both:
        return InvalidInput("argv", "not together with command", hint="command is for the shell, argv runs without one")
    return InvalidInput(
        "command", "missing", hint='say what to run, like "command": "echo hi" or "argv": ["echo", "hi"]'
    )
