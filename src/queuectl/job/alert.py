"""When somebody is to be told that things go wrong, and when that it is over.

An alert fires when its value has been at or above its threshold for a while, and is over when it has been below four fifths of
it for the same while. In between it stays as it is: a value that goes up and down there tells nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, assert_never

from queuectl.job.cron.model import moment
from queuectl.job.duration import MINUTE_MS, format_duration
from queuectl.job.hooks import shown_url
from queuectl.job.names import WEBHOOKS

MOST_UNTOLD: Final = 20  # of one alert: who has not been reached for so long is not helped by the first of them
TRY_AGAIN_MS: Final = MINUTE_MS  # what somebody set out to tell is left to them for so long


class Kind(StrEnum):
    """What is looked at. The threshold is a number of jobs, or milliseconds."""

    DEAD = "dead"  # how many jobs are dead, or died within a while
    OLDEST = "oldest"  # for how long the oldest job that is due has waited
    NO_WORKER = "no-worker"  # for how long nobody has been there to take jobs


class Word(StrEnum):
    """What somebody is told."""

    FIRING = "firing"
    STILL_FIRING = "still-firing"  # said again, for those who asked for it
    OVER = "over"
    TEST = "test"


class Telling(NamedTuple):
    """One thing that somebody is to be told. `id` is the same however often it is tried."""

    id: str
    word: Word
    value: int
    at_ms: int


class Alert(NamedTuple):
    name: str
    kind: Kind
    threshold: int
    within_ms: int | None  # of dead jobs: only those that died so lately
    queue: str | None  # None: all but the one of the webhooks
    for_ms: int
    repeat_ms: int | None
    url: str | None  # whom to call, or
    command: str | None  # what to run
    cwd: str
    created_ms: int
    # How it stands, as whoever looked last has found it.
    is_firing: bool = False
    changed_ms: int | None = None  # when it began to fire, or was over
    since_ms: int | None = None  # since when it has looked as if that were about to change
    told_ms: int | None = None  # when something to tell was last decided, whether it has arrived or not
    seen_ms: int | None = None  # when a worker was last seen
    checked_ms: int | None = None
    value: int | None = None
    untold: tuple[Telling, ...] = ()  # what no job has been made of, since nobody was there to run it
    tried_ms: int | None = None  # when somebody last set out to tell that without a worker
    turn: int = 0  # how often it was written: of those who have seen the same, one writes

    @property
    def state(self) -> str:
        return "firing" if self.is_firing else "ok"

    def is_owed(self, now_ms: int) -> bool:
        """Whether there is something to tell that nobody else is about to."""
        return bool(self.untold) and (self.tried_ms is None or not 0 <= now_ms - self.tried_ms < TRY_AGAIN_MS)

    def to_dict(self, message: str | None = None) -> dict[str, Any]:
        """`message`: what became of the last one, see store/messages.py."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "threshold": self.plain(self.threshold),
            "within": _seconds(self.within_ms),
            "queue": self.queue,
            "for": _seconds(self.for_ms),
            "repeat": _seconds(self.repeat_ms),
            "webhook": None if self.url is None else shown_url(self.url),
            "command": self.command,
            "state": self.state,
            "value": self.plain(self.value),
            "changed_at": moment(self.changed_ms),
            "checked_at": moment(self.checked_ms),
            "told_at": moment(self.told_ms),
            "message": message,
            "untold": len(self.untold),
            "created_at": moment(self.created_ms),
        }

    def plain(self, value: int | None) -> float | None:
        """For programs: a number of jobs, or of seconds."""
        return value if self.kind is Kind.DEAD else _seconds(value)

    @property
    def condition(self) -> str:
        """For people: what it waits for."""
        where = "" if self.queue is None else f" in {self.queue}"
        match self.kind:
            case Kind.DEAD:
                lately = "" if self.within_ms is None else f" within {format_duration(self.within_ms)}"
                return f"{_jobs(self.threshold)} dead{lately}{where}"
            case Kind.OLDEST:
                return f"oldest job waits {format_duration(self.threshold)}{where}"
            case Kind.NO_WORKER:
                return f"no worker takes jobs for {format_duration(self.threshold)}{where}"
            case unreachable:
                assert_never(unreachable)

    def describe(self, value: int) -> str:
        """For people: how it is."""
        where = "" if self.queue is None else f" of {self.queue}"
        whole = format_duration(value - value % 1000)
        match self.kind:
            case Kind.DEAD:
                lately = "are dead" if self.within_ms is None else f"died within {format_duration(self.within_ms)}"
                lately = lately.replace("are", "is") if value == 1 else lately
                return f"{_jobs(value)}{where} {lately}"
            case Kind.OLDEST:
                return f"the oldest job{where} has waited for {whole}" if value else f"no job{where} waits"
            case Kind.NO_WORKER:
                # One that is stopping is there, but takes no more.
                return f"no worker takes jobs{where}, for {whole} now" if value else f"a worker takes jobs{where}"
            case unreachable:
                assert_never(unreachable)


# Of a worker that is serving: its queues (None: all), and when it was last known to live.
Served = tuple[tuple[str, ...] | None, int]


class Figures(NamedTuple):
    """What alerts go by, by queue."""

    now_ms: int
    dead: Mapping[str, int]
    died: Mapping[int, Mapping[str, int]]  # by how lately
    oldest: Mapping[str, int]  # milliseconds
    served: Sequence[Served]


class Decision(NamedTuple):
    alert: Alert
    telling: Telling | None


def look(alert: Alert, figures: Figures) -> Alert:
    """The same with its value now."""
    now_ms = figures.now_ms
    match alert.kind:
        case Kind.DEAD:
            counts = figures.dead if alert.within_ms is None else figures.died[alert.within_ms]
            return alert._replace(value=sum(_of(alert, counts)), checked_ms=now_ms)
        case Kind.OLDEST:
            return alert._replace(value=max(_of(alert, figures.oldest), default=0), checked_ms=now_ms)
        case Kind.NO_WORKER:
            serving = [
                at for queues, at in figures.served if queues is None or alert.queue is None or alert.queue in queues
            ]
            # A clock that was put back must not make it a long time. A worker of another host that dies counts as serving until the
            # end of its lease; after that, the time counts from its last heartbeat.
            seen = min(max([alert.seen_ms or alert.created_ms, *serving]), now_ms)
            return alert._replace(value=0 if serving else now_ms - seen, seen_ms=seen, checked_ms=now_ms)
        case unreachable:
            assert_never(unreachable)


def decide(alert: Alert, value: int, *, now_ms: int, new_id: Callable[[], str]) -> Decision:
    """What becomes of an alert with this value, and what somebody is to be told."""
    is_turning = value * 5 < alert.threshold * 4 if alert.is_firing else value >= alert.threshold
    # A clock that was put back makes it wait anew, not for ever.
    since = min(alert.since_ms or now_ms, now_ms) if is_turning else None
    if since is not None and now_ms - since >= alert.for_ms:
        word = Word.OVER if alert.is_firing else Word.FIRING
        turned = alert._replace(is_firing=not alert.is_firing, changed_ms=now_ms, since_ms=None, told_ms=now_ms)
        return Decision(turned, Telling(new_id(), word, value, now_ms))
    alert = alert._replace(since_ms=since)
    if is_due_again(alert, now_ms):
        return Decision(alert._replace(told_ms=now_ms), Telling(new_id(), Word.STILL_FIRING, value, now_ms))
    return Decision(alert, None)


def is_due_again(alert: Alert, now_ms: int) -> bool:
    if not alert.is_firing or alert.repeat_ms is None or alert.untold:
        return False
    return not 0 <= now_ms - (alert.told_ms or 0) < alert.repeat_ms


def owe(alert: Alert, telling: Telling) -> Alert:
    """It is to be told, and there is nobody to run a job that does."""
    return alert._replace(untold=(*alert.untold, telling)[-MOST_UNTOLD:])


def variables(alert: Alert, telling: Telling) -> dict[str, str]:
    """What a command that is run for it finds in its environment, and whoever makes a call has to know."""
    return {
        "QUEUECTL_ALERT": alert.name,
        "QUEUECTL_ALERT_ID": telling.id,
        "QUEUECTL_ALERT_STATE": telling.word.value,
        "QUEUECTL_ALERT_KIND": alert.kind.value,
        "QUEUECTL_ALERT_VALUE": str(alert.plain(telling.value)),
        "QUEUECTL_ALERT_THRESHOLD": str(alert.plain(alert.threshold)),
        "QUEUECTL_ALERT_QUEUE": alert.queue or "",
        "QUEUECTL_ALERT_AT": str(moment(telling.at_ms)),
        "QUEUECTL_ALERT_TEXT": alert.describe(telling.value),
    }


def _of(alert: Alert, figures: Mapping[str, int]) -> list[int]:
    """Of all queues but the one of the webhooks: what tells of trouble is no such trouble itself, or it would never end."""
    if alert.queue is not None:
        return [figures.get(alert.queue, 0)]
    return [figure for queue, figure in figures.items() if queue != WEBHOOKS]


def _jobs(number: int) -> str:
    return f"{number:,} job" if number == 1 else f"{number:,} jobs"


def _seconds(ms: int | None) -> float | None:
    if ms is None:
        return None
    return ms // 1000 if ms % 1000 == 0 else ms / 1000
