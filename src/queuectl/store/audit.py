"""The audit log, and its entry for each kind of change.

The entry is written in the transaction of the change, so neither exists without the other. Only changes by users are recorded: the
actions of workers are in the history of the jobs. Values of environment variables are never recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from queuectl.jobs.audit import FORGET, Act, Actor, Entry, alike
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.transactions import Transactions

if TYPE_CHECKING:
    from queuectl.alerts.rules import Alert
    from queuectl.cron.schedule import RunDecision, Schedule
    from queuectl.jobs.edit import JobEdit
    from queuectl.jobs.queue_limits import QueueSettings
    from queuectl.store.rows import Subject
    from queuectl.store.types import End

HIDDEN_SETTINGS: Final = ("secret",)
URL_PREFIXES: Final = ("on_", "webhook-")  # names of fields, rules and settings with webhook URLs
_TIMES: Final = ("created_ms", "updated_ms", "tick_ms", "start_ms", "look_ms", "last_ms", "waiting")


def refused(ends: Iterable[End]) -> Iterator[tuple[Act, Actor]]:
    """Jobs that the policies of workers refused: an entry each, since each has its own reason."""
    for end in ends:
        if end.by is not None and end.settlement.ending is None and not end.settlement.is_given_back:
            after = {"state": end.settlement.state.value, "error": end.settlement.error}
            yield Act("policy refuse", [end.claim.id], {"state": "pending"}, after), end.by


def state_change(action: str, found: Iterable[Subject], *, after: Mapping[str, Any] | None = None) -> Act:
    states = {job.id: job.state.value for job in found}
    return Act(action, list(states), before={"state": alike(states)}, after=after)


def changed(change: JobEdit, rows: Iterable[tuple[Any, ...]]) -> Act:
    """`rows`: of `audit_before`. Jobs that the change leaves as they are get no entry."""
    after = {name: value for name, value in change._asdict().items() if value is not None}
    if change.hooks is not None:
        after["hooks"] = {name: _hidden("on_", hook and hook[0]) for name, hook in change.hooks.items()}
    if times := [after.pop(name) for name in ("delay_ms", "run_at_ms") if name in after]:
        after["run_at"] = times[0]
    import json  # here, to keep enqueue fast

    names = ("command", "argv", "queue", "priority", "max_retries", "timeout_ms", "limits", "run_at", "held")
    before = {id_: dict(zip(names, [*values, bool(held)], strict=True)) for id_, *values, held in rows}
    for values in before.values():
        was = json.loads(values["limits"] or "{}")
        values["limits"] = {name: was.get(name) for name in change.limits or ()}
    before = {id_: values for id_, values in before.items() if not after.items() <= values.items()}
    old = {name: alike({id_: values[name] for id_, values in before.items()}) for name in names if name in after}
    what = "edit" if change.held is None else "hold" if change.held else "release"
    return Act(what, list(before), before=old, after=after)


def moved(ids: Sequence[str], queue: str, to: str) -> Act:
    return Act("queue move", ids, before={"queue": queue}, after={"queue": to})


def ruled(queue: str, before: QueueSettings, after: QueueSettings) -> Act:
    from queuectl.jobs.queue_limits import format_rate  # here, to keep enqueue fast

    was, now = (rules._asdict() | {"rate": rules.rate and format_rate(rules.rate)} for rules in (before, after))
    differs = [name for name in now if was[name] != now[name]]
    what = {"paused": "queue pause" if after.paused else "queue resume"}.get(",".join(differs), "queue set")
    return Act(what, [queue], *({name: _hidden(name, values[name]) for name in differs} for values in (was, now)))


def scheduled(before: Schedule | None, after: Schedule | None) -> Act | None:
    """None if only the times of its runs differ."""
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
    """The path of a URL may be a secret, so it is redacted."""
    return Act("alert add", [alert.name], after=_alert(alert))


def alert_changed(action: str, before: Alert, after: Alert) -> Act:
    was, now = ({**_alert(one), **_details(one)} for one in (before, after))
    differs = [name for name in now if was[name] != now[name]]
    return Act(action, [after.name], *({name: values[name] for name in differs} for values in (was, now)))


def _alert(alert: Alert) -> dict[str, Any]:
    shown = alert.to_dict()
    return {"when": alert.condition, "tells": shown["webhook"] or shown["command"]}


def _details(alert: Alert) -> dict[str, Any]:
    shown = alert.to_dict()
    return {"for": shown["for"], "repeat": shown["repeat"], "paused": alert.is_paused}


def alert_tested(alert: Alert) -> Act:
    return alert_added(alert)._replace(action="alert test")


def run_by_hand(ticks: Iterable[RunDecision]) -> Act:
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


def _hidden(name: str, value: Any) -> Any:
    """Redact secrets, and the part of a webhook URL after its host."""
    if isinstance(value, str) and name.startswith(URL_PREFIXES):
        from queuectl.webhooks.rules import redact_url  # here, to keep enqueue fast

        value = redact_url(value)
    return "***" if value is not None and name.endswith(HIDDEN_SETTINGS) else value


AUDIT_PAGE_SIZE: Final = 500
MAX_SEQ: Final = 2**63 - 1


class AuditLog:
    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    def entries(
        self,
        *,
        since_ms: int = 0,
        has: str | None = None,
        who: str | None = None,
        what: str | None = None,
        newest: bool = False,
        behind: int | None = None,
    ) -> Iterator[Entry]:
        """The audit entries since then, in bounded memory, the oldest or the newest first. `has`: with this text in their targets.
        `who`: with this text in their actor. `what`: with this action, or with one of this group, such as `queue` for `queue pause`.
        `behind`: only those after the entry with this number, in that order."""
        if behind is None:
            behind = MAX_SEQ if newest else 0
        while True:
            values = {"behind": behind, "since": since_ms, "has": has, "who": who, "limit": AUDIT_PAGE_SIZE}
            values |= {"what": what, "whats": None if what is None else f"{what} %"}
            page = self._tx.all("audit_newest" if newest else "audit", values)
            yield from map(Entry._make, page)
            if len(page) < AUDIT_PAGE_SIZE:
                return
            behind = page[-1][0]

    @retry_conflicts
    def add(self, act: Act) -> None:
        """Write an audit entry for an action outside of the database."""
        with self._tx.write():
            self._tx.record(act)

    @retry_conflicts
    def forget(self, *, before_ms: int, rows: int, by: Actor) -> int:
        """Remove the oldest audit entries, of before then, and record that. Returns how many: at most `rows`."""
        with self._tx.write():
            forgotten = self._tx.execute("forget_audit", {"before": before_ms, "rows": rows})
            if forgotten:
                self._tx.record(Act(FORGET, ["audit"], before={"records": forgotten}), by)
            return forgotten
