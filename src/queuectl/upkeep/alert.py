"""Looking whether somebody is to be told that things go wrong, or that it is over. Any worker does it; where none lives, the
dashboard and `queuectl alert check` do, and tell it themselves: there is nobody to run a job that would.

A decision is written with the job that tells of it, by one of all who look. Without a worker it is written with what is to
be told, and that is taken away once it has been.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from queuectl.config import Here
from queuectl.errors import AlertNotFound, QueuectlError, StoreFailed, StoreFull, StoreReadOnly, StoreRefused
from queuectl.events import AlertTold, Sink, StoreTrouble
from queuectl.job.alert import Alert, Figures, Kind, Telling, decide, look, owe
from queuectl.job.lifecycle import State
from queuectl.job.settings import Settings
from queuectl.store.alerting import telling_job
from queuectl.store.ids import new_job_ids
from queuectl.store.protocol import Reads, Store
from queuectl.upkeep.liveness import last_seen_ms

EVERY: Final = 2.0
NONE_EVERY: Final = 5.0  # where there is no alert
HINT_EVERY: Final = 0.5  # somebody writes all the time
FRESH_MS: Final = 5_000  # how old what is shown of an alert may be
UNABLE_PAUSE: Final = 60.0
ATTEMPTS: Final = 10

Tell = Callable[[Alert, Telling], object]  # raises what kept it from being told


class Told(NamedTuple):
    """What somebody is told. `error`: why they could not be reached; it is tried again."""

    alert: Alert
    telling: Telling
    by_job: bool
    error: QueuectlError | None = None


class AlertDuty:
    adds_work: Final = True

    def __init__(self, *, store: Store, here: Here, settings: Callable[[], Settings], emit: Sink) -> None:
        self._store = store
        self._here = here
        self._settings = settings
        self._emit = emit
        self._looked = self._again = 0.0
        self._said: str | None = None

    def step(self, now: float) -> float:
        if now < self._again and now < self._looked + HINT_EVERY:
            return min(self._again, self._looked + HINT_EVERY)
        self._looked = now
        try:
            alerts = self._store.alerts()
            self._again = now + (EVERY if alerts else NONE_EVERY)
            told = check(self._store, here=self._here, settings=self._settings, alerts=alerts)
        except (StoreFailed, StoreFull, StoreReadOnly, StoreRefused) as exc:
            # Not our caller's trouble: the store may serve all that jobs need.
            if exc.message != self._said:
                self._said = exc.message
                self._emit(StoreTrouble(exc.message))
            self._looked = self._again = now + UNABLE_PAUSE
            return self._again
        for one in told:
            self._emit(AlertTold(one.alert.name, one.telling.word, one.alert.describe(one.telling.value)))
        return now if told else self._again


def check(
    store: Store,
    *,
    here: Here,
    settings: Callable[[], Settings],
    alerts: Sequence[Alert] | None = None,
    tell: Tell | None = None,
) -> list[Told]:
    """Decide about all alerts. `tell`: how to tell it where no worker lives; without it the caller is one."""
    found = store.alerts() if alerts is None else alerts
    if not found:
        return []
    figures = measure(store, found, here=here, settings=settings)
    has_hands = bool(figures.served)
    if tell is None and not has_hands:
        return []  # the last worker, about to leave: nobody would run a job that it makes now
    told: list[Told] = []
    for alert in found:
        seen = look(alert, figures)
        assert seen.value is not None
        after, telling = decide(seen, seen.value, now_ms=figures.now_ms, new_id=lambda: new_job_ids(1)[0])
        told += _queue(store, alert, after, telling) if has_hands else _direct(store, alert, after, telling, tell)
    return told


def measure(reads: Reads, alerts: Sequence[Alert], *, here: Here, settings: Callable[[], Settings]) -> Figures:
    """No more of it than these alerts go by; who is there, always."""
    now_ms, kinds = reads.now_ms(), {alert.kind for alert in alerts}
    lately = {alert.within_ms for alert in alerts if alert.within_ms is not None}
    tally = reads.tally() if Kind.DEAD in kinds else {}
    workers = [worker for worker in reads.workers(busy=False) if worker.state == "running"]
    lease_ms = settings().lease_ms if workers else 0
    return Figures(
        now_ms,
        dead={queue: states.get(State.DEAD, 0) for queue, states in tally.items()},
        died={within: reads.died_since(now_ms - within) for within in lately},
        oldest=reads.oldest_waiting_ms() if Kind.OLDEST in kinds else {},
        served=[
            (worker.queues, seen_ms)
            for worker in workers
            if (seen_ms := last_seen_ms(worker, here=here, now_ms=now_ms, lease_ms=lambda: lease_ms)) is not None
        ],
    )


def _queue(store: Store, before: Alert, after: Alert, telling: Telling | None) -> list[Told]:
    """By jobs: what is to be told now, and what nobody could be told when there was no worker."""
    tellings: tuple[Telling, ...] = () if telling is None else (telling,)
    if after.is_owed(_looked_at(after)):
        tellings = (*after.untold, *tellings)
        after = after._replace(untold=(), tried_ms=None)
    if not _is_worth_writing(before, after, tellings):
        return []
    if not store.turn_alert(after, [telling_job(after, one) for one in tellings]):
        return []  # somebody else has decided
    return [Told(after, one, by_job=True) for one in tellings]


def _direct(store: Store, before: Alert, after: Alert, telling: Telling | None, tell: Tell | None) -> list[Told]:
    assert tell is not None
    if telling is not None:
        after = owe(after, telling)
    is_ours = after.is_owed(_looked_at(after))
    if is_ours:
        after = after._replace(tried_ms=_looked_at(after))
    if not _is_worth_writing(before, after, ()) or not store.turn_alert(after) or not is_ours:
        return []
    told: list[Told] = []
    for one in after.untold:
        try:
            tell(after, one)
        except QueuectlError as error:
            told.append(Told(after, one, by_job=False, error=error))
            break  # in order: what comes after it would not be understood
        told.append(Told(after, one, by_job=False))
        _take_away(store, after.name, one.id)
    return told


def _take_away(store: Store, name: str, telling: str) -> None:
    """It has been told. Others may write at the same time how the alert stands."""
    for _ in range(ATTEMPTS):
        try:
            alert = store.alert(name)
        except AlertNotFound:
            return
        rest = tuple(one for one in alert.untold if one.id != telling)
        if rest == alert.untold or store.turn_alert(
            alert._replace(untold=rest, tried_ms=alert.tried_ms if rest else None)
        ):
            return


def _is_worth_writing(before: Alert, after: Alert, tellings: Sequence[Telling]) -> bool:
    """That nothing has changed is written now and then, so that one can see that somebody looks."""
    same = before._replace(value=after.value, seen_ms=after.seen_ms, checked_ms=after.checked_ms)
    age = _looked_at(after) - (before.checked_ms or 0)
    return bool(tellings) or same != after or not 0 <= age < FRESH_MS


def _looked_at(alert: Alert) -> int:
    """When it was looked at."""
    assert alert.checked_ms is not None
    return alert.checked_ms
