"""The page of queues: job counts, settings, and forms to change them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from queuectl.errors import UnknownName, UsageError
from queuectl.jobs.queue_limits import QueueSettings
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.states import WAITING
from queuectl.operations import queues as use
from queuectl.operations.queues import QueueView
from queuectl.store_threads import WebSession
from queuectl.text import closest_match, plural
from queuectl.web.pages.charts import last_hour
from queuectl.web.pages.job import limit_texts
from queuectl.web.pages.render import Notice, PageRequest, View, confirm, done
from queuectl.webhooks.rules import redact_url

HOOKS: Final = ("on_success", "on_failure", "on_dead")  # shown as redacted URLs
RULES: Final = ("concurrency", "rate", "per_key", "priority", "max_retries", "timeout", *LIMITS, *HOOKS)
MAX_SHOWN: Final = 100  # the others are found by name
MAX_CHARTS: Final = 40  # each is a query
_ACTIONS: Final = ("pause", "resume", "set", "move")


def show(session: WebSession, ask: PageRequest) -> View:
    oldest, part = session.reads.oldest_waiting_ms(), ask.query.one("name") or ""
    known = use.list_queues(session.reads)
    found = [one for one in known if part in one.name]
    rows = [
        {
            **_rules(one),
            "waiting": sum(one.states[state.value] for state in WAITING),
            "running": one.states["processing"],
            "oldest_ms": oldest.get(one.name),
            "last_hour": last_hour(session, one.name) if index < MAX_CHARTS else None,
        }
        for index, one in enumerate(found[:MAX_SHOWN])
    ]
    values = {"queues": rows, "rules": RULES, "known": len(known), "found": len(found), "most": MAX_SHOWN, "part": part}
    return View("queues.html", "Queues", values)


def do(session: WebSession, ask: PageRequest) -> View | Notice:
    name, verb = use.check_queue(ask.param("name")), ask.param("verb")
    match verb:
        case "pause" | "resume":
            return pause(session, name, paused=verb == "pause")
        case "set":
            return _set(session, name, ask)
        case "move":
            return _move(session, name, ask)
        case _:
            raise UnknownName("action", verb, nearest=closest_match(verb, _ACTIONS), known=list(_ACTIONS))


def pause(session: WebSession, name: str, *, paused: bool) -> Notice:
    session.set_queue(name, paused=paused)
    undo = partial(_undo_pause, name, not paused)
    return done(f"Queue {name} {'paused: no more jobs start' if paused else 'resumed'}", undo=undo)


def _undo_pause(name: str, paused: bool, session: WebSession) -> Notice:
    return pause(session, name, paused=paused)._replace(undo=None)


def _set(session: WebSession, name: str, ask: PageRequest) -> Notice:
    """Change the settings of a queue. The form has all settings; an empty field removes one."""
    before, rules = _rules(use.view(session.reads, name)), session.reads.queues.rules().get(name, QueueSettings())
    given = {rule: ask.form.one(rule) for rule in RULES if ask.form.has(rule)}
    changes = {
        rule: use.NO_VALUE if text is None else text for rule, text in given.items() if text != _text(before[rule])
    }
    if not changes:
        return done("Nothing changed")
    session.set_queue(name, **changes)
    whole = {**before, **{hook: getattr(rules, hook) for hook in HOOKS}}
    earlier = {rule: use.NO_VALUE if whole[rule] is None else whole[rule] for rule in changes}

    def back(again: WebSession) -> Notice:
        again.set_queue(name, **earlier)
        return done(f"Queue {name} restored")

    return done(f"Queue {name} changed: {', '.join(_describe_changes(changes))}", undo=back)


def _rules(one: QueueView) -> dict[str, Any]:
    """The settings as in `queue list`, and each resource limit as text."""
    return {**one.to_dict(), **limit_texts(one.rules.limits)}


def _describe_changes(changes: dict[str, Any]) -> list[str]:
    shown = {rule: redact_url(value) if rule in HOOKS else value for rule, value in changes.items()}
    return [f"{rule.replace('_', ' ')} {value}" for rule, value in shown.items()]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _move(session: WebSession, name: str, ask: PageRequest) -> View | Notice:
    to = ask.form.one("to")
    if to is None:
        raise UsageError("no queue is named", hint="enter the name of the queue to move the jobs to")
    if not ask.is_confirmed:
        text = "All waiting jobs of the queue are moved. This cannot be undone."
        return confirm(ask, "Move", "jobs", text, name=f"from {name} to {to}", back="/queues")
    moved = use.move(name, to, reads=lambda: session.reads, open_store=session.open_store).done
    return done(f"{plural(len(moved), 'job')} moved from {name} to {to}")
