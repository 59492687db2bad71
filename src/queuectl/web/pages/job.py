"""One job: what it is, why it is not running, what it printed, what is around it, and all that can be done to it."""

from __future__ import annotations

from typing import Any, Final

from queuectl.config import host_name
from queuectl.errors import UnknownName, UsageError
from queuectl.job.change import read_change
from queuectl.job.hooks import hidden
from queuectl.job.lifecycle import WAITING, is_final
from queuectl.job.model import Job, iso, to_ms
from queuectl.job.resources import LIMITS
from queuectl.job.retry import allowed_failures
from queuectl.queue import amend, explain, graph, inspect
from queuectl.web.desk import Desk
from queuectl.web.pages import verbs
from queuectl.web.pages.asked import Ask, Done, Fields, Shown, back_to, confirm
from queuectl.web.pages.enqueue import WHOLE, whole
from queuectl.web.pages.family import family
from queuectl.web.pages.joblog import TAIL, read_log
from queuectl.web.pages.limits import typed
from queuectl.web.pages.notices import Notice, done
from queuectl.web.pages.reasons import told
from queuectl.web.pages.timeline import timeline
from queuectl.web.pages.wording import part

_EDITABLE: Final = ("command", "argv", "queue", "priority", "max_retries", "timeout", "run_at", *LIMITS)
_MAY_BE_EMPTIED: Final = ("timeout", *LIMITS)  # there need not be one


def show(desk: Desk, ask: Ask) -> Shown:
    reads, serves = desk.reads, desk.is_serving()
    job_id = reads.resolve(ask.param("id"))
    shown = inspect.show(reads, job_id, host=host_name(), output_limit=0, is_alive=serves)
    job = shown.job
    run = ask.query.one("run")
    number = int(run) if run is not None and run.isascii() and run.isdigit() and len(run) < 10 else None
    find = ask.query.one("find")
    values: dict[str, Any] = {
        "job": job,
        "hooks": hidden(job.hooks or {}),
        "history": list(reversed(shown.history)),
        "allowed": allowed_failures(job.max_retries, first_is_free=job.first_is_free),
        "reasons": [told(one, job) for one in explain.explain(reads, job_id, is_alive=serves).reasons],
        "timeline": timeline(job, shown.history, reads.now_ms()),
        "family": family(graph.graph(reads, job_id)),
        "log": read_log(reads, job_id, run=number, find=find),
        "log_run": number,
        "log_find": find or "",
        "tail": TAIL,
        "is_final": is_final(job.state),
        "may_edit": job.state in WAITING,
        "verbs": [verb for verb in verbs.VERBS.values() if verb.fits(job)],
        "as_of": to_ms(job.updated_at),
        "run_at_text": iso(job.run_at),
        "limits": typed(job.limits),
    }
    return Shown("job.html", f"Job {job.id}", values)


def do(desk: Desk, ask: Ask) -> Shown | Done:
    verb, job_id = verbs.verb_of(ask.param("verb")), desk.reads.resolve(ask.param("id"))
    here = f"/jobs/{part(job_id)}"
    if verb.undo is None and not ask.is_confirmed:
        return confirm(ask, verb.label, "job", verb.about, name=job_id, back=here, is_grave=verb.is_grave)
    notice = verbs.do_to_named(desk, verb, [job_id], exact=True)
    is_gone = verb.name == "purge" and notice.kind == "done"
    return Done("/dlq" if is_gone else back_to(ask.form, here), notice)


def clone(desk: Desk, ask: Ask) -> Shown | Done:
    if not ask.is_confirmed:
        original = desk.reads.resolve(ask.param("id"))
        text = "Enqueue a new job with the same fields. It runs as soon as a worker has a free slot."
        return confirm(ask, "Clone", "job", text, name=original, back=f"/jobs/{part(original)}")
    job = desk.clone(ask.param("id"))
    return Done(f"/jobs/{part(job.id)}", done(f"Job {job.id} added, a copy of {ask.param('id')}"))


def edit(desk: Desk, ask: Ask) -> Done:
    job = desk.get(ask.param("id"))
    to = back_to(ask.form, f"/jobs/{part(job.id)}")
    change = _changes(job, ask.form)
    if not change:
        return Done(to, done("The job is as it was"))
    as_of = whole(ask.form.one("as_of") or "", "as_of")
    if not isinstance(as_of, int):
        raise UsageError("the form does not say which version it changes", hint="load the page again")
    answer = amend.edit(desk.open_store(), [job.id], read_change(change), as_of=as_of, exact=True)
    for _, error in answer.refused:
        raise error
    earlier = {name: _before(job, name) for name in change}

    def back(again: Desk) -> Notice:
        again.edit(job.id, **earlier)
        return done(f"Job {job.id} is as it was")

    words = ", ".join(name.replace("_", " ") for name in change)
    return Done(to, done(f"Job {job.id} changed: {words}", undo=back))


def _changes(job: Job, form: Fields) -> dict[str, Any]:
    """What of the form is not as it is."""
    found: dict[str, Any] = {}
    for name in _EDITABLE:
        text = form.text("command") if name == "command" else form.one(name)
        if text is None and name in _MAY_BE_EMPTIED and form.has(name):
            text = ""
        if name == "argv" or text is None or text == str(_shown(job, name)):
            continue
        found[name] = 0 if not text else whole(text, name) if name in WHOLE else text
    if "command" in found and job.argv is not None:
        raise UnknownName("field", "command", nearest="argv", known=_EDITABLE)
    return found


def _shown(job: Job, name: str) -> object:
    """As the form has it."""
    if name == "run_at":
        return iso(job.run_at)
    if name in LIMITS:
        return typed(job.limits)[name] or ""
    value = getattr(job, name)
    return "" if value is None else value


def _before(job: Job, name: str) -> object:
    if name == "timeout":
        return 0 if job.timeout is None else job.timeout
    if name in LIMITS:
        return (job.limits or {}).get(name, 0)
    return _shown(job, name)
