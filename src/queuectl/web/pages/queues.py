"""The pages of queues: all of them, and one with its trend, the reasons why its jobs wait, its workers and its settings."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any, Final

from queuectl.errors import InvalidInput, QueuectlError, Unavailable, UsageError
from queuectl.jobs.queue_limits import QueueSettings
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.states import WAITING
from queuectl.operations import queues as use
from queuectl.operations.queues import QueueView
from queuectl.store_threads import WebSession
from queuectl.text import WEBHOOK_QUEUE, plural
from queuectl.units import format_duration
from queuectl.web.api.queues import queue_waiting
from queuectl.web.pages.job_form import limit_texts
from queuectl.web.pages.render import Notice, PageRequest, View, confirm, done, part, refused_form
from queuectl.web.pages.trend import WINDOWS, queue_sparkline, trend
from queuectl.webhooks.rules import redact_url

HOOKS: Final = ("on_success", "on_failure", "on_dead")  # shown as redacted URLs
RULES: Final = ("concurrency", "rate", "per_key", "priority", "max_retries", "timeout", *LIMITS, *HOOKS)
MAX_SHOWN: Final = 100  # the others are found by name
MAX_CHARTS: Final = 40  # each is a query


def show(session: WebSession, ask: PageRequest) -> View:
    oldest, part = session.reads.oldest_waiting_ms(), ask.query.one("name") or ""
    known = use.list_queues(session.reads)
    found = [one for one in known if part in one.name]
    unsampled = session.reads.samples.unsampled()
    rows = [
        {
            **_row(one, oldest.get(one.name)),
            "spark": queue_sparkline(session, one.name, unsampled) if index < MAX_CHARTS else None,
        }
        for index, one in enumerate(sorted(found, key=lambda one: (one.name == WEBHOOK_QUEUE, one.name))[:MAX_SHOWN])
    ]
    values = {"queues": rows, "known": len(known), "found": len(found), "most": MAX_SHOWN, "part": part}
    return View("queues.html", "Queues", values)


def show_one(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    name = use.check_queue(ask.param("name"))
    one, form = use.view(session.reads, name), ask.form
    present = {**_rules(one), **{rule: _shown(one, rule) for rule in RULES}}
    workers = sorted(session.workers(), key=attrgetter("id"))
    at = error.subject if isinstance(error, InvalidInput) else None
    values: dict[str, Any] = {
        **_row(one, session.reads.oldest_waiting_ms().get(name)),
        "states": list(one.states),
        "counts": one.states,
        "trend": trend(session, ask.query.one("span"), name),
        "windows": WINDOWS,
        "reasons": queue_waiting(session, name),
        "workers": [worker for worker in workers if worker.state != "lost" and use.serves(worker, name)],
        "value_of": (lambda rule: form.one(rule) or "") if error else present.__getitem__,
        "in_force": [(rule, present[rule]) for rule in RULES if present[rule]],
        "error": error,
        "error_at": at if at in RULES else None,
        **refused_form(ask, f"/queues/{part(name)}", error),
    }
    return View("queue.html", f"Queue {name}", values, status=200 if error is None else 422)


def _row(one: QueueView, oldest_ms: int | None) -> dict[str, Any]:
    return {
        **_rules(one),
        "waiting": sum(one.states[state.value] for state in WAITING),
        "running": one.states["processing"],
        "oldest_ms": oldest_ms,
        "is_internal": one.name == WEBHOOK_QUEUE,
    }


def _shown(one: QueueView, rule: str) -> str:
    """The value of a setting as its field has it; empty if it is not set."""
    value = _rules(one)[rule]
    if value is None:
        return ""
    return format_duration(round(value * 1000)) if rule == "timeout" and value else str(value)


def set_paused(session: WebSession, ask: PageRequest, *, paused: bool) -> View | Notice:
    name = use.check_queue(ask.param("name"))
    if use.view(session.reads, name).rules.paused is paused:
        return done(
            f"Queue {name} is already {'paused' if paused else 'running'}"
        )  # an undo would revert an earlier action
    if paused and not ask.is_confirmed:
        text = "No new jobs start until the queue is resumed. Running jobs continue."
        return confirm(ask, "Pause", "queue", text, name=name, back="/queues")
    return _set_paused(name, paused, session)._replace(undo=partial(_set_paused, name, not paused))


def _set_paused(name: str, paused: bool, session: WebSession) -> Notice:
    session.set_queue(name, paused=paused)
    return done(f"Queue {name} {'paused. No new jobs start.' if paused else 'resumed'}")


def change_settings(session: WebSession, ask: PageRequest) -> View | Notice:
    """Change the settings of a queue. The form has all settings; an empty field removes one."""
    name = use.check_queue(ask.param("name"))
    before, rules = _rules(use.view(session.reads, name)), session.reads.queues.rules().get(name, QueueSettings())
    given = {rule: ask.form.one(rule) or use.NO_VALUE for rule in RULES if ask.form.has(rule)}
    shown = use.view(session.reads, name)
    changes = {rule: text for rule, text in given.items() if text != (_shown(shown, rule) or use.NO_VALUE)}
    if not changes:
        return done("Nothing to change")
    try:
        session.set_queue(name, **changes)
    except Unavailable:
        raise
    except QueuectlError as error:
        return show_one(session, ask, error)
    whole = {**before, **{hook: getattr(rules, hook) for hook in HOOKS}}
    earlier = {rule: _text(whole[rule]) for rule in changes}

    def back(again: WebSession) -> Notice:
        again.set_queue(name, **earlier)
        return done(f"Queue {name} restored")

    changed = (
        f"{rule.replace('_', ' ')} {redact_url(value) if rule in HOOKS else value}" for rule, value in changes.items()
    )
    return done(f"Queue {name} changed: {', '.join(changed)}", undo=back)


def _rules(one: QueueView) -> dict[str, Any]:
    """The settings as in `queue list`, and each resource limit as text."""
    return {**one.to_dict(), **limit_texts(one.rules.limits)}


def _text(value: object) -> str:
    return use.NO_VALUE if value is None else str(value)


def move(session: WebSession, ask: PageRequest) -> View | Notice:
    name, to = use.check_queue(ask.param("name")), ask.form.one("to")
    if to is None:
        raise UsageError("the name of the target queue is missing", hint="enter the queue to move the jobs to")
    if not ask.is_confirmed:
        text = "All waiting jobs of the queue are moved. This cannot be undone."
        return confirm(ask, "Move", "jobs", text, name=f"from {name} to {to}", back="/queues")
    moved = use.move(name, to, reads=lambda: session.reads, open_store=session.open_store).done
    return done(f"{plural(len(moved), 'job')} moved from {name} to {to}")
