"""What all parts of a store share: named statements, write transactions, state counters, audit entries and wake-ups.

A write transaction collects the state transitions of its jobs and adds them to the counters at its end. Triggers would write once per
job, and most jobs of a transaction make the same few transitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from queuectl.jobs.priority import Ageing, Strict, parse_ageing
from queuectl.store.types import Row

if TYPE_CHECKING:
    from queuectl.clock import Clock
    from queuectl.jobs.audit import Act, Actor
    from queuectl.jobs.spec import QueueDefaults
    from queuectl.jobs.unique import Holder
    from queuectl.store.statements import Statements

Parameters = Mapping[str, Any] | Sequence[Any]
Keys = Sequence[tuple[str, str]]  # queues and concurrency keys

OUTSIDE: Final = ""  # the state of a job before it is enqueued and after it is removed
ELSEWHERE: Final = "elsewhere"  # the state of a job in another queue: moving is neither an enqueue nor a removal
NO_RUN: Final = ""  # the ending of a transition that ends no run
REFUSED: Final = "refused"  # the ending of a claim that a policy refused
GIVEN_BACK: Final = "given back"  # the ending of a claim that its worker returned unused
_JSON_ESCAPES: Final = {number: f"\\u{number:04x}" for number in (*range(32), 127)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


class Query(NamedTuple):
    """A statement and its values."""

    text: str
    values: Parameters = ()


class Transitions:
    """The state transitions of the jobs in one transaction. Every end of a run is one of them."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str, str, str], int] = {}

    def add(self, queue: str, was: str, now: str, *, ending: str = NO_RUN, jobs: int = 1) -> None:
        transition = (queue, was, now, ending)
        self._jobs[transition] = self._jobs.get(transition, 0) + jobs

    def net(self, queue: str, state: str) -> int:
        """By how many the jobs of a queue in this state have increased."""
        return sum(
            jobs * ((now == state) - (was == state)) for (of, was, now, _), jobs in self._jobs.items() if of == queue
        )

    def relocate(self, queue: str, to: str | None, state: str, *, jobs: int = 1) -> None:
        """Jobs in this state move to another queue, unless `to` is None or the same."""
        if to is not None and to != queue:
            self.add(queue, state, ELSEWHERE, jobs=jobs)
            self.add(to, ELSEWHERE, state, jobs=jobs)

    def rows(self) -> list[tuple[str, str, str, str, int]]:
        """Queue, state before, state after, ending, and number of jobs: each combination once."""
        return [(*transition, jobs) for transition, jobs in self._jobs.items()]


class Database(Protocol):
    """A connection, as the parts that are the same for both dialects use it. Statements are given by name."""

    def query(self, *queries: Query, plan_freely: bool = False) -> list[list[Row]]:
        """The rows of some reads, all as of one moment. `plan_freely`: for reads of whole tables."""
        ...

    def execute(self, text: str, values: Parameters = ()) -> int:
        """Within a transaction: the number of changed rows."""
        ...

    def executemany(self, text: str, rows: Iterable[Parameters]) -> None: ...

    def pages(self, text: str, values: Parameters = (), *, size: int) -> Iterator[list[Row]]: ...

    def defer(self, text: str, values: Parameters = ()) -> None:
        """Within a transaction: a statement without a result, sent at the latest with the commit."""
        ...

    def close(self) -> None: ...


class Transactions(ABC):
    """Base of the two dialects. `actor`: the user that audit entries name; None: no entries are written."""

    long_seconds: float | None = None  # the time limit for statements that go through a whole table
    locked_schedule = "schedule"  # the statement that reads a schedule and locks it

    def __init__(self, db: Database, sql: Statements, clock: Clock) -> None:
        self._database = db
        self.sql = sql
        self.clock = clock
        self.actor: Actor | None = None

    # ── statements by name ──────────────────────────────────────────────────────────────────────────────────────────

    def all(self, name: str, values: Parameters = (), *, plan_freely: bool = False) -> list[Row]:
        return self._database.query(Query(self.sql[name], values), plan_freely=plan_freely)[0]

    def raw(self, text: str, values: Parameters = (), *, plan_freely: bool = False) -> list[Row]:
        """The rows of a statement that was composed at run time."""
        return self._database.query(Query(text, values), plan_freely=plan_freely)[0]

    def raw_execute(self, text: str, values: Parameters = ()) -> int:
        return self._database.execute(text, values)

    def pages(self, text: str, values: Parameters = (), *, size: int) -> Iterator[list[Row]]:
        """Within a transaction: all rows, `size` at a time, as they were when the first was read."""
        return self._database.pages(text, values, size=size)

    def one(self, name: str, values: Parameters = ()) -> Row | None:
        return next(iter(self.all(name, values)), None)

    def value(self, name: str, values: Parameters = (), *, plan_freely: bool = False) -> Any:
        """The first column of the first row, None if there is none."""
        return next((row[0] for row in self.all(name, values, plan_freely=plan_freely)), None)

    def each(self, *queries: tuple[str, Parameters], plan_freely: bool = False) -> list[list[Row]]:
        """The rows of several statements, as of one moment."""
        named = (Query(self.sql[name], values) for name, values in queries)
        return self._database.query(*named, plan_freely=plan_freely)

    def execute(self, name: str, values: Parameters = ()) -> int:
        """Within a transaction: the number of changed rows."""
        return self._database.execute(self.sql[name], values)

    def executemany(self, name: str, rows: Iterable[Parameters]) -> None:
        self._database.executemany(self.sql[name], rows)

    def defer_each(self, name: str, rows: Iterable[Parameters]) -> None:
        for values in rows:
            self._database.defer(self.sql[name], values)

    # ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def write(
        self,
        *locks: str | tuple[str, Parameters],
        notify: bool = False,
        seconds: float | None = None,
        plan_freely: bool = False,
    ) -> AbstractContextManager[Transitions]:
        """A write transaction. `locks`: statements that PostgreSQL begins with; SQLite has one writer. `notify`: wake the workers
        after the commit. `seconds`: the time limit of a statement."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Several reads as of one moment."""

    @abstractmethod
    def long_snapshot(self) -> AbstractContextManager[None]:
        """The same for reads of a whole table."""

    @abstractmethod
    def read_pages(
        self, text: str, values: Parameters, *, size: int, plan_freely: bool = True
    ) -> AbstractContextManager[tuple[Transactions, Iterable[list[Row]]]]:
        """All rows of a statement, as of one moment, and a way to read more as of that moment. The caller may take any time, and
        may use the store meanwhile."""

    @abstractmethod
    def write_each(self, name: str, rows: Sequence[Mapping[str, Any]], **shared: Any) -> None:
        """Run a statement for each row of values. `shared`: values that are the same for all."""

    @abstractmethod
    def array(self, values: Iterable[Any]) -> Any:
        """A list, as the statements of this dialect take it."""

    def write_ageing(self, ageing: Ageing) -> None:  # noqa: B027 - not every dialect has to
        """Within a transaction that changes the setting: for statements that compute with it. SQLite has none."""

    @abstractmethod
    def admit(self, keys: Keys) -> None:
        """Within a transaction that has freed slots of these concurrency keys, or may have: let the next jobs be claimed."""

    def lock_keys(self, keys: Sequence[str]) -> None:  # noqa: B027 - not every dialect has to
        """Within a transaction: exclude other decisions about these unique keys. SQLite has one writer."""

    def holders(self, keys: Sequence[str]) -> dict[str, Holder]:
        """The jobs that have these unique keys, which must be locked."""
        if not keys:
            return {}
        from queuectl.store.unique import holders  # here, since few jobs have a unique key

        return holders(self.all("holders", {"keys": self.array(keys)}))

    def record(self, act: Act | None, by: Actor | None = None) -> None:
        """Write an audit entry in this transaction, unless there is no actor or no target."""
        by = by or self.actor
        if by is not None and act is not None and act.targets:
            self._database.defer(*self.audit_query(act, by))

    def audit_query(self, act: Act, by: Actor) -> Query:
        return Query(self.sql["add_audit"], audit_values(by, act, at_ms=self.clock.now_ms()))

    # ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        self._database.close()

    def config(self) -> dict[str, str]:
        return dict(self.all("config"))

    def queue_defaults(self) -> QueueDefaults:
        from queuectl.store.enqueue import read_defaults

        return read_defaults(self.all("queue_defaults"))

    def ageing(self) -> Ageing:
        return read_ageing(self.value("ageing"))

    def last_seq(self) -> int:
        return int(self.value("last_seq"))


class StoreBase:
    """What every store has: a connection, and the stored settings."""

    def __init__(self, tx: Transactions) -> None:
        self.tx = tx

    def close(self) -> None:
        self.tx.close()

    def config(self) -> dict[str, str]:
        """The stored settings, as text."""
        return self.tx.config()

    def queue_defaults(self) -> QueueDefaults:
        """The defaults that queues have for their jobs."""
        return self.tx.queue_defaults()


def read_ageing(stored: str | None) -> Ageing:
    return Strict() if stored is None else parse_ageing(stored, subject="ageing")


def audit_values(actor: Actor, act: Act, *, at_ms: int) -> dict[str, Any]:
    """The parameters of `add_audit`."""
    return {
        "at": at_ms,
        "actor": _to_json(actor._asdict()),
        "action": act.action,
        "targets": _to_json_list(act.targets),
        "before": None if act.before is None else _to_json(act.before),
        "after": None if act.after is None else _to_json(act.after),
    }


def _to_json(value: Any) -> str:
    # Loading the module json takes longer than everything else that `enqueue` does here.
    match value:
        case str():
            return f'"{value.translate(_JSON_ESCAPES)}"'
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ",".join(f"{_to_json(str(key))}:{_to_json(part)}" for key, part in value.items()) + "}"
        case _:
            return _to_json_list(value)


def _to_json_list(values: Sequence[Any]) -> str:
    # One check for all: a hundred thousand job IDs need no escapes.
    if values and isinstance(values[0], str) and all(isinstance(one, str) and one.isalnum() for one in values):
        return '["' + '","'.join(values) + '"]'
    return "[" + ",".join(map(_to_json, values)) + "]"
