"""The page of one job: why it waits, timeline, log, dependency graph, actions and changes; and the form for a new one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from queuectl.config import host_name
from queuectl.errors import InvalidInput, QueuectlError, Unavailable, UnknownName, UsageError
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.model import Job, Run
from queuectl.jobs.outcome import Ending
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.spec import PackedLimits
from queuectl.jobs.states import WAITING, State, is_final
from queuectl.jobs.wait_reason import Wait
from queuectl.operations import control, explain, inspect
from queuectl.operations.explain import Reason
from queuectl.operations.inspect import Recorded
from queuectl.store.reads import Reads
from queuectl.store_threads import WebSession
from queuectl.units import from_ms, iso, to_ms
from queuectl.web.pages import actions
from queuectl.web.pages.charts import draw_graph, rounded
from queuectl.web.pages.log import read_log
from queuectl.web.pages.render import (
    Fields,
    Notice,
    PageRequest,
    Redirect,
    View,
    back_to,
    confirm,
    done,
    part,
    span,
)
from queuectl.webhooks.rules import redact_hooks

WIDTH: Final = 1000
MIN_BAR_WIDTH: Final = 4.0  # so that short runs stay visible
MAX_RUNS_DRAWN: Final = 100
MAX_AUDIT_ENTRIES: Final = 20


class TimelineBar(NamedTuple):
    x: float
    width: float
    kind: str
    title: str


class Timeline(NamedTuple):
    bars: list[TimelineBar]
    begin_ms: int
    end_ms: int
    summary: str  # alternative text


def timeline(job: Job, history: Sequence[Run], now_ms: int) -> Timeline:
    runs = [run for run in history if run.started_at is not None][-MAX_RUNS_DRAWN:]
    begin = to_ms(job.created_at)
    # finished_at of a job that will be retried is the end of its last run.
    end = to_ms(job.finished_at) if is_final(job.state) and job.finished_at is not None else now_ms
    if runs and runs[0].started_at is not None and len(runs) == MAX_RUNS_DRAWN:
        begin = to_ms(runs[0].started_at)
    end = max(end, begin + 1, *(to_ms(run.finished_at) for run in runs if run.finished_at is not None), 0)
    bars = [_bar(run, begin, end, now_ms) for run in runs]
    parts = [f"run {run.number} {run.outcome.value}" for run in runs]
    summary = f"{span(end - begin)} since it was enqueued: " + (", ".join(parts) or "no runs yet")
    return Timeline(bars, begin, end, summary)


def _bar(run: Run, begin: int, end: int, now_ms: int) -> TimelineBar:
    assert run.started_at is not None
    start = to_ms(run.started_at)
    stop = now_ms if run.finished_at is None else to_ms(run.finished_at)
    scale = WIDTH / (end - begin)
    wide = max(MIN_BAR_WIDTH, (stop - start) * scale)
    x = min(max(0.0, (start - begin) * scale), WIDTH - wide)
    title = (
        f"run {run.number}: {run.outcome.value} {'for' if run.finished_at is None else 'after'} {span(stop - start)}"
    )
    return TimelineBar(rounded(max(0.0, x)), rounded(wide), _kind(run.outcome), title)


def _kind(outcome: Ending) -> str:
    match outcome:
        case Ending.RUNNING:
            return "processing"
        case Ending.COMPLETED:
            return "completed"
        case Ending.CANCELLED | Ending.RELEASED:
            return "cancelled"
        case _:
            return "failed"


class ReasonText(NamedTuple):
    text: str
    label: str = ""
    url: str = ""  # of a page with details
    resumes: str = ""  # the paused queue


_PAGES_OF_REASONS: Final[Mapping[str, tuple[str, str]]] = {
    Wait.PAUSED: ("Queues", "/queues"),
    **dict.fromkeys((Wait.FULL, Wait.RATE, Wait.KEY), ("Queue limits", "/queues")),
    **dict.fromkeys(("no-worker", Wait.UNSERVED, "slots-busy", "next", "worker-lost"), ("Workers", "/workers")),
}
_ADVICE: Final[Mapping[str, str]] = {
    Wait.HELD: " Release it to let it run.",
    "worker-lost": " Another worker rescues the job.",
    **dict.fromkeys((State.DEAD, State.CANCELLED), " Retry runs it again."),
}


def describe_reason(reason: Reason, job: Job) -> ReasonText:
    sentence = reason.sentence + "."
    if reason.code == Wait.HELD and job.cron is not None:
        return ReasonText(sentence, "Schedule", f"/cron#{part(job.cron)}")
    if reason.code == "behind-others":
        return ReasonText(sentence, "Pending jobs", f"/jobs?state=pending&queue={part(job.queue)}")
    if (parent := reason.facts.get("parent")) is not None:
        return ReasonText(sentence + _ADVICE[State.CANCELLED], parent["id"], f"/jobs/{part(parent['id'])}")
    label, url = _PAGES_OF_REASONS.get(reason.code, ("", ""))
    resumes = job.queue if reason.code == Wait.PAUSED else ""
    return ReasonText(sentence + _ADVICE.get(reason.code, ""), label, url, resumes)


def limit_texts(limits: PackedLimits | None) -> Mapping[str, str | None]:
    """The limits as text for a form, which parses to the same values; None if there is no limit."""
    given = limits or {}
    return {name: limit.text(given[name]) if name in given else None for name, limit in LIMITS.items()}


def show(session: WebSession, ask: PageRequest) -> View:
    reads, serves = session.reads, session.is_serving()
    job_id = reads.resolve(ask.param("id"))
    shown = inspect.show(reads, job_id, host=host_name(), output_limit=0, is_alive=serves)
    job = shown.job
    run, line, first = (_positive(ask.query.one(name)) for name in ("run", "line", "from"))
    find = ask.query.one("find")
    values: dict[str, Any] = {
        "job": job,
        "hooks": redact_hooks(job.hooks or {}),
        "history": [run for run in reversed(shown.history) if not _is_given_back(run)],
        "allowed": allowed_failures(job.max_retries, first_is_free=job.first_is_free),
        "reasons": [describe_reason(one, job) for one in explain.explain(reads, job_id, is_alive=serves).reasons],
        "timeline": timeline(job, shown.history, reads.now_ms()),
        "graph": draw_graph(inspect.graph(reads, job_id)),
        "log": None if ask.is_update else read_log(reads, job_id, run=run, find=find, line=line, first=first),
        "log_run": run,
        "log_find": find or "",
        "audit": None if ask.is_update else _audit_entries(reads, job),
        "is_final": is_final(job.state),
        "may_edit": job.state in WAITING,
        "verbs": [verb for verb in actions.VERBS.values() if verb.fits(job)],
        "as_of": to_ms(job.updated_at),
        "run_at_text": iso(job.run_at),
        "limits": limit_texts(job.limits),
    }
    return View("job.html", f"Job {job.id}", values)


def _audit_entries(reads: Reads, job: Job) -> list[tuple[datetime, Recorded]]:
    """The latest. Reads the audit log since the job was enqueued, which may be long: not for every update."""
    since = iso(job.created_at)
    found = inspect.audit_records(reads, since=since, subject=job.id, limit=MAX_AUDIT_ENTRIES, now_ms=reads.now_ms)
    return [(from_ms(entry.at), entry) for entry in found]


def _positive(text: str | None) -> int | None:
    """A number of the query; None for anything else, so that an edited address still shows the job."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 and int(text) else None


def _is_given_back(run: Run) -> bool:
    """Whether its worker claimed the job and did not start it."""
    return run.outcome is Ending.RELEASED and run.started_at is None


def do(session: WebSession, ask: PageRequest) -> View | Redirect:
    verb, job_id = actions.find_verb(ask.param("verb")), session.reads.resolve(ask.param("id"))
    here = f"/jobs/{part(job_id)}"
    if verb.undo is None and not ask.is_confirmed:
        return confirm(ask, verb.label, "job", verb.about, name=job_id, back=here, is_grave=verb.is_grave)
    notice = actions.perform_on_named(session, verb, [job_id], exact=True)
    is_gone = verb.name == "prune" and notice.kind == "done"
    return Redirect("/jobs" if is_gone else back_to(ask.form, here), notice)


def clone(session: WebSession, ask: PageRequest) -> View | Redirect:
    if not ask.is_confirmed:
        original = session.reads.resolve(ask.param("id"))
        text = "Enqueue a copy of the job. It runs as soon as a worker has a free slot."
        return confirm(ask, "Clone", "job", text, name=original, back=f"/jobs/{part(original)}")
    job = session.clone(ask.param("id"))
    return Redirect(f"/jobs/{part(job.id)}", done(f"Job {job.id} enqueued as a clone of {ask.param('id')}"))


_EDITABLE: Final = ("command", "queue", "priority", "max_retries", "timeout", "run_at", *LIMITS)
_CLEARABLE: Final = ("timeout", *LIMITS)  # an empty field removes the limit


def edit(session: WebSession, ask: PageRequest) -> Redirect:
    job = session.get(ask.param("id"))
    to = back_to(ask.form, f"/jobs/{part(job.id)}")
    change = _changed_fields(job, ask.form)
    if not change:
        return Redirect(to, done("Nothing to change"))
    as_of = _parse_integer(ask.form.one("as_of") or "", "as_of")
    if not isinstance(as_of, int):
        raise UsageError("the form is incomplete", hint="reload the page and try again")
    answer = control.edit(session.open_store(), [job.id], parse_edit(change), as_of=as_of, exact=True)
    for _, error in answer.refused:
        raise error
    before = {**job.to_dict(), **(job.limits or {})}
    # 0 removes the timeout and every limit.
    earlier = {name: before.get(name) or 0 if name in _CLEARABLE else before[name] for name in change}

    def back(again: WebSession) -> Notice:
        again.edit(job.id, **earlier)
        return done(f"Job {job.id} restored")

    names = ", ".join(name.replace("_", " ") for name in change)
    return Redirect(to, done(f"Job {job.id} changed: {names}", undo=back))


def _changed_fields(job: Job, form: Fields) -> dict[str, Any]:
    """The fields whose values differ from those that the form showed."""
    shown = {**job.to_dict(), **limit_texts(job.limits)}
    found: dict[str, Any] = {}
    for name in _EDITABLE:
        text = form.text("command") if name == "command" else form.one(name)
        is_cleared = text is None and name in _CLEARABLE and form.has(name)
        before = "" if shown[name] is None else str(shown[name])
        if (is_cleared or text is not None) and (text or "") != before:
            found[name] = 0 if not text else _parse_integer(text, name) if name in _INTEGER_FIELDS else text
    if "command" in found and job.argv is not None:
        raise UnknownName("field", "command", nearest="argv", known=("argv", *_EDITABLE))
    return found


# ── a new job ───────────────────────────────────────────────────────────────────────────────────────────────────────

_TEXT_FIELDS: Final = (
    "id",
    "queue",
    "timeout",
    "delay",
    "run_at",
    "cwd",
    "unique_key",
    "memory",
    "cpu_time",
    "file_size",
)
_LIST_FIELDS: Final = {"tags": "tags", "secrets": "secrets", "after": "depends_on"}  # by their names in the form
_INTEGER_FIELDS: Final = ("priority", "max_retries", "nice", "open_files", "processes")


def show_new(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    fields = ask.query if error is None else ask.form
    values: dict[str, Any] = {
        "value_of": lambda name: fields.text(name) or "",
        "limits": {name: fields.text(name) for name in LIMITS},
        "error": error,
        "queue_names": sorted(session.reads.tally()),
        "defaults": {entry.key: entry.text for entry in session.settings.entries()},
    }
    return View("enqueue.html", "New job", values, status=200 if error is None else 422)


def enqueue(session: WebSession, ask: PageRequest) -> View | Redirect:
    """Enqueue the job. After an error the form keeps its values."""
    try:
        job = session.enqueue(**_read_fields(ask.form))
    except Unavailable:
        raise
    except QueuectlError as error:
        return show_new(session, ask, error)
    message = f"Job {job.id} already existed" if job.is_duplicate else f"Job {job.id} enqueued"
    return Redirect(f"/jobs/{part(job.id)}", done(message))


def _read_fields(form: Fields) -> dict[str, Any]:
    """The fields for `enqueue`, without those that are empty."""
    fields: dict[str, Any] = {name: value for name in _TEXT_FIELDS if (value := form.one(name)) is not None}
    command = form.text("command") or ""
    is_argv = form.one("how") == "argv"
    fields["argv" if is_argv else "command"] = _split(command) if is_argv else command
    for name in _INTEGER_FIELDS:
        if (text := form.one(name)) is not None:
            fields[name] = _parse_integer(text, name)
    for name, field in _LIST_FIELDS.items():
        if (text := form.one(name)) is not None:
            fields[field] = text.replace(",", " ").split()
    if (env := form.text("env")) is not None and env.strip():
        fields["env"] = dict(_variables(env))
    return fields


def _parse_integer(text: str, name: str) -> int | str:
    """An integer if it is one; else the text, which `enqueue` rejects with a message."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 18 else text


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as exc:
        raise InvalidInput("command", f"cannot be split into arguments: {exc}", hint="close every quote") from exc


def _variables(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in filter(str.strip, text.split("\n")):
        name, sign, value = line.partition("=")
        if not sign:
            raise InvalidInput("env", f"expected NAME=VALUE, got {line!r}", hint="one variable per line")
        pairs.append((name.strip(), value))
    return pairs
