"""The page of one job: why it waits, timeline, log, dependency graph, actions and changes; and the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from queuectl.config import host_name
from queuectl.jobs.model import Job, Run
from queuectl.jobs.outcome import Ending
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import WAITING, State, is_final
from queuectl.jobs.wait_reason import Wait
from queuectl.operations import explain, inspect
from queuectl.operations.explain import Reason
from queuectl.operations.inspect import Recorded
from queuectl.store.reads import Reads
from queuectl.store_threads import WebSession
from queuectl.units import from_ms, iso, to_ms
from queuectl.web.pages import actions
from queuectl.web.pages.charts import draw_graph, rounded
from queuectl.web.pages.log import read_log
from queuectl.web.pages.render import (
    PageRequest,
    Redirect,
    View,
    back_to,
    confirm,
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
