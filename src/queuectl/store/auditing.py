"""The seam for the audit, and what each change looks like in it, the same for every dialect. The chain itself is in job/audit.py.

A change and its record are one transaction: neither is ever there without the other. Only what somebody wished is recorded; what workers
make of it is in the history of the jobs. Values of environment variables are no business of the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from queuectl.job.audit import FORGET, Act, Actor, Ends, Entry, Link, alike

if TYPE_CHECKING:
    from queuectl.job.alert import Alert
    from queuectl.job.change import Change
    from queuectl.job.cron.model import Schedule, Tick
    from queuectl.job.limits import Rules
    from queuectl.job.newjob import NewJob
    from queuectl.store.rows import Subject
    from queuectl.store.runs import End

TOLD_IN_FULL: Final = 20  # jobs; of more that are added at once, their ids have to do
LONGEST: Final = 1000  # characters of a command
HIDDEN_SETTINGS: Final = ("secret",)
HOOKS: Final = ("on_", "webhook-")  # of fields, of rules and of settings
_TIMES: Final = ("created_ms", "updated_ms", "tick_ms", "start_ms", "look_ms", "last_ms", "waiting")


class AuditReads(Protocol):
    def audit_ends(self) -> Ends: ...

    def audit(
        self, *, since_ms: int = 0, has: str | None = None, newest: bool = False, behind: int | None = None
    ) -> Iterator[Entry]:
        """The records of then or later, in bounded memory, the oldest first or the newest. `has`: with this text anywhere in them.
        `behind`: only those that come after this one in that order."""
        ...


class Audited(Protocol):
    actor: Actor | None  # for whom all this is done; None: for nobody, and nothing is recorded

    def note(self, act: Act) -> None:
        """Record something that was done beside the store."""
        ...

    def forget_audit(self, *, before_ms: int, rows: int, by: Actor) -> int:
        """Remove the oldest records that were written before then, and record that. Returns how many: at most `rows`."""
        ...


# ── what changes look like ──────────────────────────────────────────────────────────────────────────────────────────


def added(jobs: Sequence[NewJob], ids: Sequence[str]) -> Act:
    if len(ids) <= TOLD_IN_FULL and len(ids) == len(jobs):
        return Act("enqueue", ids, after={"jobs": [_job(job) for job in jobs]})
    return Act("enqueue", ids, after={"queues": Counter(job.queue for job in jobs)})


def _job(job: NewJob) -> dict[str, Any]:
    said = {"queue": job.queue, "priority": job.priority, "batch": job.batch, "unique": job.unique_key}
    return {"command": _cut(" ".join(job.argv) if job.argv else job.command or ""), **_given(said)}


def refused(ends: Iterable[End]) -> Iterator[tuple[Act, Actor]]:
    """What the policies of workers were against, each by itself: each has its own reason."""
    for end in ends:
        if end.by is not None and end.settlement.ending is None and not end.settlement.is_given_back:
            after = {"state": end.settlement.state.value, "error": end.settlement.error}
            yield Act("policy refuse", [end.claim.id], {"state": "pending"}, after), end.by


def of_states(what: str, found: Iterable[Subject], *, after: Mapping[str, Any] | None = None) -> Act:
    states = {job.id: job.state.value for job in found}
    return Act(what, list(states), before={"state": alike(states)}, after=after)


def changed(change: Change, rows: Iterable[tuple[Any, ...]]) -> Act:
    """`rows`: of audit_before.sql, as they were. Of jobs that are so already nothing is told."""
    after = _given(change._asdict())
    if change.hooks is not None:
        after["hooks"] = {name: _hidden("on_", hook and hook[0]) for name, hook in change.hooks.items()}
    if times := [after.pop(name) for name in ("delay_ms", "run_at_ms") if name in after]:
        after["run_at"] = times[0]
    import json  # here, since enqueue has to be quick

    names = ("command", "argv", "queue", "priority", "max_retries", "timeout_ms", "limits", "run_at", "held")
    before = {id_: dict(zip(names, [*values, bool(held)], strict=True)) for id_, *values, held in rows}
    for values in before.values():
        was = json.loads(values["limits"] or "{}")
        values["limits"] = {name: was.get(name) for name in change.limits or ()}
    before = {id_: values for id_, values in before.items() if not after.items() <= values.items()}
    told = {name: alike({id_: values[name] for id_, values in before.items()}) for name in names if name in after}
    what = "edit" if change.held is None else "hold" if change.held else "release"
    return Act(what, list(before), before=told, after=after)


def moved(ids: Sequence[str], queue: str, to: str) -> Act:
    return Act("queue move", ids, before={"queue": queue}, after={"queue": to})


def ruled(queue: str, before: Rules, after: Rules) -> Act:
    from queuectl.job.limits import format_rate  # here, since enqueue has to be quick

    was, now = (rules._asdict() | {"rate": rules.rate and format_rate(rules.rate)} for rules in (before, after))
    differs = [name for name in now if was[name] != now[name]]
    what = {"paused": "queue pause" if after.paused else "queue resume"}.get(",".join(differs), "queue set")
    return Act(what, [queue], *({name: _hidden(name, told[name]) for name in differs} for told in (was, now)))


def scheduled(before: Schedule | None, after: Schedule | None) -> Act | None:
    """None: only the time has passed."""
    was, now = _schedule(before), _schedule(after)
    one = after or before
    assert one is not None
    if was is not None and now is not None:
        differs = [name for name in now if was[name] != now[name]]
        if not differs:
            return None
        was, now = ({name: values[name] for name in differs} for values in (was, now))
    what = "cron add" if was is None else "cron remove" if now is None else "cron change"
    return Act(what, [one.name], was, now)


def alert_added(alert: Alert) -> Act:
    """Without the path of a URL, which may be a secret."""
    shown = alert.to_dict()
    return Act(
        "alert add", [alert.name], after={"when": alert.condition, "tells": shown["webhook"] or shown["command"]}
    )


def alert_tested(alert: Alert) -> Act:
    return alert_added(alert)._replace(what="alert test")


def run_by_hand(ticks: Iterable[Tick]) -> Act:
    return Act("cron run", [str(tick.job.id) for tick in ticks if tick.is_by_hand and tick.job is not None])


def _schedule(one: Schedule | None) -> dict[str, Any] | None:
    if one is None:
        return None
    fields = {name: sorted(value) if name == "env" else _hidden(name, value) for name, value in one.fields.items()}
    values = one._asdict() | {"fields": fields, "overlap": one.overlap.value}
    return {name: value for name, value in values.items() if name not in _TIMES}


def configured(before: Mapping[str, str], changes: Mapping[str, str | None]) -> Act:
    was = {name: _hidden(name, before.get(name)) for name in changes}
    what = "config unset" if all(value is None for value in changes.values()) else "config set"
    return Act(what, sorted(changes), was, {name: _hidden(name, value) for name, value in changes.items()})


def forgotten_until(base: Link) -> Act:
    return Act(FORGET, [str(base.seq)], after=base._asdict())


def _hidden(name: str, value: Any) -> Any:
    """Without what may not be seen: secrets, and what of a webhook's URL leads further than to its host."""
    if isinstance(value, str) and name.startswith(HOOKS):
        from queuectl.job.hooks import shown_url  # here, since enqueue has to be quick

        value = shown_url(value)
    return "***" if value is not None and name.endswith(HIDDEN_SETTINGS) else value


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
