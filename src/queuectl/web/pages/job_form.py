"""The form of a job: for a new one, for a copy with changes, and to edit a waiting one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import DuplicateId, InvalidInput, KeyTaken, QueuectlError, Unavailable, UsageError
from queuectl.errors.jobs import ParentEnded, ParentNotFound
from queuectl.jobs.dependencies import Dependency, Need
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.model import Job
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.spec import HOOK_NAMES, PackedLimits, readers
from queuectl.jobs.states import WAITING, State
from queuectl.operations import control
from queuectl.store_threads import WebSession
from queuectl.units import format_duration, iso, parse_duration_ms, to_ms
from queuectl.web.pages.render import Fields, Notice, PageRequest, Redirect, View, back_to, done, part
from queuectl.webhooks.rules import Origin, redact_hooks

_TEXT_FIELDS: Final = (
    *("id", "queue", "timeout", "cwd", "unique_key", "key", "batch", "memory", "cpu_time", "file_size"),
    *HOOK_NAMES,
)
_NUMBER_FIELDS: Final = ("priority", "max_attempts", "max_retries", "backoff_base", "nice", "open_files", "processes")
_LIST_FIELDS: Final = ("tags", "secrets")
PARENT_FIELDS: Final = {"after": Need.COMPLETED, "after_any": Need.ENDED, "after_fail": Need.FAILED}
_FORM_NAMES: Final = {"argv": "command", "delay": "start", "run_at": "start", "depends_on": "after"}  # if they differ
_FIELDS_OF_ERRORS: Final = {ParentNotFound: "after", ParentEnded: "after", DuplicateId: "id", KeyTaken: "unique_key"}

# A cleared field removes these from a waiting job.
_CLEARABLE: Final[Mapping[str, Any]] = {"timeout": 0, "secrets": [], **dict.fromkeys(LIMITS, 0)}
_EDITABLE: Final = (
    "command",
    "queue",
    "priority",
    "max_attempts",
    "max_retries",
    "timeout",
    "start",
    "secrets",
    *LIMITS,
)


class FieldError(NamedTuple):
    text: str
    hint: str

    @classmethod
    def of(cls, error: QueuectlError) -> FieldError:
        return cls(error.problem if isinstance(error, InvalidInput) else error.message, error.hint)


class Draft(NamedTuple):
    """What a form says: fields as the API takes them, and the errors by field of the form."""

    fields: dict[str, Any]
    errors: dict[str, FieldError]


# ── show ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def show(session: WebSession, ask: PageRequest) -> View:
    """Empty, or with the values of the query, of a job to copy (`clone`), or of a waiting job (`edit`)."""
    cloned, edited = ask.query.one("clone"), ask.query.one("edit")
    if cloned is not None:
        original = session.get(cloned)
        return _form(session, Fields([*values_of(original).items()]), original=original)
    if edited is not None:
        job = session.get(edited)
        if job.state not in WAITING:
            raise UsageError(f"job {job.id!r} is {job.state}: only waiting jobs can be edited", hint="clone it instead")
        return _form(session, Fields([*values_of(job).items()]), edited=job)
    return _form(session, ask.query)


def _form(
    session: WebSession,
    fields: Fields,
    *,
    original: Job | None = None,
    edited: Job | None = None,
    errors: Mapping[str, FieldError] | None = None,
    error: QueuectlError | None = None,
) -> View:
    job = edited or original
    title = f"Edit {edited.id}" if edited else f"Clone {original.id}" if original else "New job"
    settings = session.settings
    values: dict[str, Any] = {
        "value_of": lambda name: fields.text(name) or "",
        "errors": errors or {},
        "error": error,
        "edited": edited,
        "original": original,
        "as_of": None if edited is None else fields.one("as_of") or to_ms(edited.updated_at),
        "hooks": redact_hooks(job.hooks or {}) if job else {},
        "limit_names": [*LIMITS],
        "attempts_field": "max_retries" if edited and edited.first_is_free else "max_attempts",
        "attempts_default": allowed_failures(settings.max_retries, first_is_free=settings.first_attempt_is_free),
        "queue_names": sorted(session.reads.tally()),
        "defaults": {entry.key: entry.text for entry in settings.entries()},
    }
    return View("enqueue.html", title, values, status=422 if errors or error else 200)


def limit_texts(limits: PackedLimits | None) -> Mapping[str, str | None]:
    """The limits as text for a form, which parses to the same values; None if there is no limit."""
    given = limits or {}
    return {name: limit.text(given[name]) if name in given else None for name, limit in LIMITS.items()}


def values_of(job: Job) -> dict[str, str]:
    """The fields of the form for a job, without secrets: values of variables, and URLs of webhooks."""
    waiting = job.depends_on if job.state is State.BLOCKED else ()
    return {
        "how": "shell" if job.argv is None else "argv",
        "command": shlex.join(job.argv) if job.argv is not None else job.command or "",
        "queue": job.queue,
        "priority": str(job.priority),
        "max_attempts": str(allowed_failures(job.max_retries, first_is_free=job.first_is_free)),
        "max_retries": str(job.max_retries),
        "backoff_base": f"{job.backoff_base:g}",
        "timeout": "" if job.timeout_ms is None else format_duration(job.timeout_ms),
        "start": (iso(job.run_at) or "") if job.state in WAITING else "",
        "cwd": job.cwd,
        "tags": " ".join(job.tags),
        "secrets": " ".join(job.secrets),
        "key": job.key or "",
        **{name: _ids(waiting, need) for name, need in PARENT_FIELDS.items()},
        **{name: text or "" for name, text in limit_texts(job.limits).items()},
    }


def _ids(parents: tuple[Dependency, ...], need: Need) -> str:
    return " ".join(parent.id for parent in parents if parent.when is need)


# ── read ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(form: Fields) -> Draft:
    """Parse all fields that are not empty, with the errors of all."""
    draft = Draft({}, {})
    command = form.text("command") or ""
    if form.one("how") == "argv":
        _add(draft, "argv", command, _split)
    else:
        _add(draft, "command", command, str)
    for name in _TEXT_FIELDS:
        _add(draft, name, form.one(name), str)
    for name in _NUMBER_FIELDS:
        _add(draft, name, form.one(name), _number)
    for name in _LIST_FIELDS:
        _add(draft, name, form.one(name), _names)
    start = form.one("start")
    _add(draft, "delay" if start and _is_duration(start) else "run_at", start, str)
    if (env := form.text("env")) and env.strip():
        _add(draft, "env", env, _variables)
    _add_parents(draft, form)
    return draft


def _add(draft: Draft, name: str, text: str | None, parse: Any) -> None:
    """Add a field if it is valid, else its error."""
    if text is None:
        return
    try:
        value = parse(text)
        readers()[name][1](value, name)
    except UsageError as error:
        found = FieldError.of(error)
        # The hint is for JSON.
        draft.errors[_FORM_NAMES.get(name, name)] = found._replace(hint=found.hint.replace(f'"{name}": ', ""))
    else:
        draft.fields[name] = value


def _add_parents(draft: Draft, form: Fields) -> None:
    parents: list[dict[str, str]] = []
    for name, need in PARENT_FIELDS.items():
        own = [{"id": one, "when": need.value} for one in _names(form.one(name) or "")]
        try:
            readers()["depends_on"][1]([*parents, *own], name)
        except UsageError as error:
            draft.errors[name] = FieldError.of(error)
        parents += own
    if parents:
        draft.fields["depends_on"] = parents


def _is_duration(text: str) -> bool:
    try:
        parse_duration_ms(text, subject="start")
    except UsageError:
        return False
    return True


def _number(text: str) -> float | str:
    """A number if it is one; else the text, which the parser of the field rejects with a message."""
    digits = text.removeprefix("-")
    if len(digits) > 17 or not digits.isascii():
        return text
    if digits.isdigit():
        return int(text)
    whole, _, fraction = digits.partition(".")
    return float(text) if whole.isdigit() and fraction.isdigit() else text


def _names(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as exc:
        raise InvalidInput("command", f"cannot be split into arguments: {exc}", hint="close every quote") from exc


def _variables(text: str) -> dict[str, str]:
    pairs = {}
    for line in filter(str.strip, text.split("\n")):
        name, sign, value = line.partition("=")
        if not sign:
            raise InvalidInput("env", f"expected NAME=VALUE, got {line!r}", hint="one variable per line")
        pairs[name.strip()] = value
    return pairs


# ── enqueue ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def enqueue(session: WebSession, ask: PageRequest) -> View | Redirect:
    """Enqueue the job. After an error the form keeps its values."""
    draft = read(ask.form)
    cloned = ask.form.one("clone")
    original = None if cloned is None else session.get(cloned)
    if draft.errors:
        return _form(session, ask.form, original=original, errors=draft.errors)
    try:
        job = session.enqueue(**draft.fields | ({} if original is None else _hidden_fields(original, draft.fields)))
    except Unavailable:
        raise
    except QueuectlError as error:
        return _refuse(session, ask.form, error, original=original)
    message = f"Job {job.id} already existed" if job.is_duplicate else f"Job {job.id} enqueued"
    return Redirect(f"/jobs/{part(job.id)}", done(message + (f" as a clone of {original.id}" if original else "")))


def _hidden_fields(original: Job, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a copy gets from the original although the form does not show it."""
    found: dict[str, Any] = {"env": {**original.env, **fields.get("env", {})}}
    if original.places is not None and fields.get("key") == original.key:
        found["places"] = original.places
    hooks = original.hooks or {}
    return found | {
        f"on_{event}": url
        for event, (url, origin) in hooks.items()
        if origin == Origin.JOB and f"on_{event}" not in fields
    }


def _refuse(
    session: WebSession, form: Fields, error: QueuectlError, *, original: Job | None = None, edited: Job | None = None
) -> View:
    """Show an error at its field, or above the form."""
    name = error.subject if isinstance(error, InvalidInput) else _FIELDS_OF_ERRORS.get(type(error))
    name = _FORM_NAMES.get(name or "", name)
    if name in {"command", "start", "env", *_TEXT_FIELDS, *_NUMBER_FIELDS, *_LIST_FIELDS, *PARENT_FIELDS}:
        return _form(session, form, original=original, edited=edited, errors={name: FieldError.of(error)})
    return _form(session, form, original=original, edited=edited, error=error)


# ── edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def edit(session: WebSession, ask: PageRequest) -> View | Redirect:
    """Change the fields whose values differ from those that the form showed."""
    job = session.get(ask.param("id"))
    to = back_to(ask.form, f"/jobs/{part(job.id)}")
    draft = read(ask.form)
    if draft.errors:
        return _form(session, ask.form, edited=job, errors=draft.errors)
    change = _changed_fields(job, ask.form, draft.fields)
    if not change:
        return Redirect(to, done("Nothing to change"))
    try:
        as_of = _number(ask.form.one("as_of") or "")
        if not isinstance(as_of, int):
            raise UsageError("the form is incomplete", hint="reload the page and try again")
        _apply(session, job, change, as_of=as_of)
    except Unavailable:
        raise
    except QueuectlError as error:
        return _refuse(session, ask.form, error, edited=job)
    earlier, edited_at = _earlier(job, change), to_ms(session.get(job.id).updated_at)

    def back(again: WebSession) -> Notice:
        _apply(again, job, earlier, as_of=edited_at)
        return done(f"Job {job.id} restored")

    # An edit makes a time in the past the present, so that of a job that was due cannot be restored.
    is_exact = "run_at" not in earlier or to_ms(job.run_at) > session.reads.now_ms()
    names = ", ".join(_FORM_NAMES.get(name, name).replace("_", " ") for name in change)
    return Redirect(to, done(f"Job {job.id} changed: {names}", undo=back if is_exact else None))


def _apply(session: WebSession, job: Job, change: Mapping[str, Any], *, as_of: int) -> None:
    """Raises an error if the job has changed since then."""
    answer = control.edit(session.open_store(), [job.id], parse_edit(change), as_of=as_of, exact=True)
    for _, error in answer.refused:
        raise error


def _changed_fields(job: Job, form: Fields, fields: Mapping[str, Any]) -> dict[str, Any]:
    shown, change = values_of(job), dict[str, Any]()
    for name in _EDITABLE:
        text = (form.text(name) if name == "command" else form.one(name)) or ""
        is_same = text == shown[name] and (name != "command" or (form.one("how") or "shell") == shown["how"])
        if is_same or not form.has(name):
            continue
        own = next(
            (own for own in (name, "argv", "delay", "run_at") if _FORM_NAMES.get(own, own) == name and own in fields),
            None,
        )
        if own is not None:
            change[own] = fields[own]
        elif name in _CLEARABLE:
            change[name] = _CLEARABLE[name]
        elif name == "start":
            change["delay"] = 0
    return change


def _earlier(job: Job, change: Mapping[str, Any]) -> dict[str, Any]:
    """The change that restores the job."""
    before = {**job.to_dict(), **(job.limits or {}), "max_attempts": job.max_retries}
    earlier: dict[str, Any] = {}
    for name in change:
        if name in {"command", "argv"}:
            earlier |= {"command": job.command} if job.argv is None else {"argv": list(job.argv)}
        elif name in {"delay", "run_at"}:
            earlier["run_at"] = iso(job.run_at)
        else:
            earlier[name] = before.get(name) or _CLEARABLE[name] if name in _CLEARABLE else before[name]
    return earlier
