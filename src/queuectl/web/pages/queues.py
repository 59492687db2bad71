"""The queues: what is in them, what limits them, and changing that."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from queuectl.errors import UnknownName, UsageError
from queuectl.job.hooks import shown_url
from queuectl.job.lifecycle import WAITING
from queuectl.job.limits import Rules
from queuectl.job.nearest import nearest
from queuectl.job.resources import LIMITS
from queuectl.queue import queues as use
from queuectl.queue.queues import QueueView
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, Shown, back_to, confirm
from queuectl.web.pages.limits import typed
from queuectl.web.pages.notices import Notice, done
from queuectl.web.pages.trend import lately
from queuectl.web.pages.wording import plural

HOOKS: Final = ("on_success", "on_failure", "on_dead")  # shown without what may not be seen
RULES: Final = ("concurrency", "rate", "per_key", "priority", "max_retries", "timeout", *LIMITS, *HOOKS)
MOST_SHOWN: Final = 100  # the others are found by their names
MOST_DRAWN: Final = 40  # each is a question to the store
_DEEDS: Final = ("pause", "resume", "set", "move")


def show(desk: Desk, ask: Ask) -> Shown:
    oldest, part = desk.reads.oldest_waiting_ms(), ask.query.one("name") or ""
    known = use.list_queues(desk.reads)
    found = [one for one in known if part in one.name]
    rows = [
        {
            **_rules(one),
            "waiting": sum(one.states[state.value] for state in WAITING),
            "running": one.states["processing"],
            "oldest_ms": oldest.get(one.name),
            "lately": lately(desk, one.name) if index < MOST_DRAWN else None,
            "next_start_at": None if one.brake is None or one.brake.opens_at is None else one.brake.opens_at,
        }
        for index, one in enumerate(found[:MOST_SHOWN])
    ]
    values = {
        "queues": rows,
        "rules": RULES,
        "known": len(known),
        "found": len(found),
        "most": MOST_SHOWN,
        "part": part,
    }
    return Shown("queues.html", "Queues", values)


def do(desk: Desk, ask: Ask) -> Shown | Done:
    name, verb = use.check_queue(ask.param("name")), ask.param("verb")
    to = back_to(ask.form, "/queues")
    match verb:
        case "pause" | "resume":
            return Done(to, pause(desk, name, paused=verb == "pause"))
        case "set":
            return Done(to, _set(desk, name, ask))
        case "move":
            return _move(desk, name, ask)
        case _:
            raise UnknownName("action", verb, nearest=nearest(verb, _DEEDS), known=list(_DEEDS))


def pause(desk: Desk, name: str, *, paused: bool) -> Notice:
    desk.set_queue(name, paused=paused)
    undo = partial(_pause_back, name, not paused)
    return done(f"Queue {name} {'paused: nothing more of it starts' if paused else 'goes on'}", undo=undo)


def _pause_back(name: str, paused: bool, desk: Desk) -> Notice:
    return pause(desk, name, paused=paused)._replace(undo=None)


def _set(desk: Desk, name: str, ask: Ask) -> Notice:
    """What was left empty is taken away: the form shows all that holds."""
    before, rules = _rules(use.view(desk.reads, name)), desk.reads.rules().get(name, Rules())
    said = {rule: ask.form.one(rule) for rule in RULES if ask.form.has(rule)}
    changes = {
        rule: use.NOTHING if text is None else text for rule, text in said.items() if text != _text(before[rule])
    }
    if not changes:
        return done(f"Queue {name} is as it was")
    desk.set_queue(name, **changes)
    whole = {**before, **{hook: getattr(rules, hook) for hook in HOOKS}}
    earlier = {rule: use.NOTHING if whole[rule] is None else whole[rule] for rule in changes}

    def back(again: Desk) -> Notice:
        again.set_queue(name, **earlier)
        return done(f"Queue {name} is as it was")

    return done(f"Queue {name} changed: {', '.join(_told(changes))}", undo=back)


def _rules(one: QueueView) -> dict[str, Any]:
    """As `queue list` has them, and each limit of a run by itself, as it is typed."""
    return {**one.to_dict(), **typed(one.rules.limits)}


def _told(changes: dict[str, Any]) -> list[str]:
    shown = {rule: shown_url(value) if rule in HOOKS else value for rule, value in changes.items()}
    return [f"{rule.replace('_', ' ')} {value}" for rule, value in shown.items()]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _move(desk: Desk, name: str, ask: Ask) -> Shown | Done:
    to = ask.form.one("to")
    if to is None:
        raise UsageError("no queue is named", hint="enter the name of the queue to move the jobs to")
    if not ask.is_confirmed:
        text = "All waiting jobs of the queue are moved. This cannot be undone."
        return confirm(ask, "Move", "jobs", text, name=f"from {name} to {to}", back="/queues")
    moved = use.move(name, to, reads=lambda: desk.reads, open_store=desk.open_store).done
    return Done(back_to(ask.form, "/queues"), done(f"{plural(len(moved), 'job')} moved from {name} to {to}"))
