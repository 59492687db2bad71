"""The page of queues: job counts, settings, and forms to change them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from queuectl.errors import UsageError
from queuectl.jobs.queue_limits import QueueSettings
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.states import WAITING
from queuectl.operations import queues as use
from queuectl.operations.queues import QueueView
from queuectl.store_threads import WebSession
from queuectl.text import plural
from queuectl.web.pages.job_form import limit_texts
from queuectl.web.pages.render import Notice, PageRequest, View, confirm, done
from queuectl.web.pages.trend import queue_sparkline
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
            **_rules(one),
            "waiting": sum(one.states[state.value] for state in WAITING),
            "running": one.states["processing"],
            "oldest_ms": oldest.get(one.name),
            "spark": queue_sparkline(session, one.name, unsampled) if index < MAX_CHARTS else None,
        }
        for index, one in enumerate(found[:MAX_SHOWN])
    ]
    values = {"queues": rows, "rules": RULES, "known": len(known), "found": len(found), "most": MAX_SHOWN, "part": part}
    return View("queues.html", "Queues", values)


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


def change_settings(session: WebSession, ask: PageRequest) -> Notice:
    """Change the settings of a queue. The form has all settings; an empty field removes one."""
    name = use.check_queue(ask.param("name"))
    before, rules = _rules(use.view(session.reads, name)), session.reads.queues.rules().get(name, QueueSettings())
    given = {rule: ask.form.one(rule) or use.NO_VALUE for rule in RULES if ask.form.has(rule)}
    changes = {rule: text for rule, text in given.items() if text != _text(before[rule])}
    if not changes:
        return done("Nothing to change")
    session.set_queue(name, **changes)
    whole = {**before, **{hook: getattr(rules, hook) for hook in HOOKS}}
    earlier = {rule: _text(whole[rule]) for rule in changes}

    def back(again: WebSession) -> Notice:
        again.set_queue(name, **earlier)
        return done(f"Queue {name} restored")

    shown = (
        f"{rule.replace('_', ' ')} {redact_url(value) if rule in HOOKS else value}" for rule, value in changes.items()
    )
    return done(f"Queue {name} changed: {', '.join(shown)}", undo=back)


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
