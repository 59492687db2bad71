"""A whole store into another, in all four directions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl import errors
from queuectl.alerts.rules import AlertEvent, Kind, Notification, add_unsent
from queuectl.clock import SystemClock
from queuectl.cron.schedule import RunDecision
from queuectl.errors import JobsRunning, SameStore, StoreNotEmpty
from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.outcome import Ending, Exited, NotStarted, Released, Signalled, TimedOut
from queuectl.jobs.queue_limits import Rate
from queuectl.jobs.states import State
from queuectl.operations.backup import CopyResult, copy_store
from queuectl.store.dependencies import MAX_CHILDREN_PER_STEP
from queuectl.store.store import Store
from queuectl.store.transfer import SAMPLES, TABLES
from queuectl.store.types import End, Filter, OutputPiece
from tests.clock import FakeClock
from tests.factories import new_job, settlement
from tests.store.backends import BACKENDS, Backend
from tests.store.hands import BAD, PID, Hands
from tests.store.invariants import check_invariants
from tests.store.test_alerts import alert
from tests.store.test_schedules import firing, schedule, tick

PAIRS = list(itertools.product(BACKENDS, repeat=2))
MADE_UP = {"last_token", "ready_since", "token"}  # of PostgreSQL only; see store/postgres/transfer.py
BIG = 2**53 - 1


class Move:
    """Two stores, and the way from one to the other."""

    def __init__(self, source: Backend, target: Backend, clock: FakeClock) -> None:
        self.backends = source, target
        self.source, self.target = source.open(clock), target.open(clock)
        self._clock = clock
        self._hands: list[Hands] = []

    def hire(self, name: str = "w1") -> Hands:
        self._hands.append(Hands(self.source, self.backends[0].home, name=name))
        return self._hands[-1]

    def __call__(
        self, *, force: bool = False, is_alive: bool = False, advance: Callable[[int, int | None], None] | None = None
    ) -> CopyResult:
        return copy_store(
            self.source,
            lambda: self.backends[1].open(self._clock),
            clock=SystemClock(),
            is_alive=lambda worker: is_alive,
            force=force,
            advance=advance or (lambda done, of: None),
        )

    def close(self) -> None:
        for hands in self._hands:
            hands.wakeup.close()
        check_invariants(self.target, self.backends[1])
        for store, backend in zip((self.source, self.target), self.backends, strict=True):
            store.close()
            backend.close()


@pytest.fixture(params=PAIRS, ids="-to-".join)
def move(request: pytest.FixtureRequest, home: Path, clock: FakeClock) -> Iterator[Move]:
    source, target = request.param
    (home / "a").mkdir(parents=True)
    made = Move(BACKENDS[source](home / "a"), BACKENDS[target](home / "b"), clock)
    yield made
    made.close()


def fill(store: Store, hands: Hands, clock: FakeClock, backend: Backend) -> None:
    """Every state but processing, every kind of end, and every field with something and with nothing in it."""
    store.set_config({"lease": "1m", "ageing": "10m", "max-retries": "7"})
    store.queues.set_rules("default", {"rate": Rate(1000, 1)})
    store.queues.set_rules(
        "idle",
        {"paused": True, "concurrency": 2, "rate": Rate(3, 60_000), "priority": -5, "timeout_ms": 0, "per_key": 1},
    )
    store.enqueue([new_job(f"key {n}", queue="idle", key="c\\N 7") for n in range(3)])
    store.enqueue([new_job(f"place {n}", queue="idle", key="array:x", places=2) for n in range(3)])
    ends = {
        "completed": Exited(0),
        "dead": BAD,
        "signalled": Signalled(9),
        "timeout": TimedOut(5000, Signalled(15)),
        "unstartable": NotStarted("no such directory: /nié"),
        "released": Released(None),
    }
    store.enqueue([new_job(name, max_retries=1 + (name == "signalled"), priority=1000) for name in ends])
    for claim in hands.claim(len(ends)):
        clock.advance(1.5)
        hands.end(claim, ends[claim.id], age=1.25, duration=1.25, log=(10, 20))
    names = ("lost", "again", "fails", "cancelled")
    store.enqueue([new_job(name, max_retries=3, backoff_base=1.5, tags=("again",)) for name in names])
    other = Hands(store, backend.home, name="w2")
    other.claim(20)
    store.claims.rescue("w2", max_crashes=5)
    other.wakeup.close()
    clock.advance(100)
    for _ in range(2):  # a history of several runs, of different ends
        for claim in hands.claim(20):
            if claim.id == "cancelled":
                store.cancel([claim.id])
            hands.end(claim, BAD if claim.id in {"again", "fails"} else Exited(0))
        store.retry(["again"], states=frozenset(State))
    store.enqueue([new_job("off"), new_job("gone", max_retries=0, priority=1_000_000)])
    store.cancel(["off"])
    hands.end(hands.claim_one(), BAD)
    store.purge(["gone"])
    hooks = {"success": ["https://example.org/ü \\N\t", "job"], "dead": ["https://example.org/", "config"]}
    store.enqueue([new_job("tells", hooks=hooks, priority=1_000_000, tags=("x",))])
    hands.end(hands.claim_one(), Exited(0))
    store.enqueue(
        [
            new_job("argv", command=None, argv=("printf", "%s\n", 'a "b" \\ ü\t\x7f 漢字 🐝'), tags=("a", "b.c:d")),
            new_job("env", env={"PATH": "/bin", "ÜBER": "ja\nnein", "EMPTY": ""}, cwd="/wo/ö h"),
            new_job("big", priority=1_000_000, max_retries=1_000_000, backoff_base=1.0000000000000002, timeout_ms=BIG),
            new_job("later", delay_ms=3_600_000, queue="mail", first_is_free=True, priority=-1_000_000),
            new_job("held"),
            new_job("blocked"),
            new_job("text", command="echo '\\N' \\t \\. \t\n\r |;\"'"),  # what COPY itself has a meaning for
            new_job("grouped", batch="nightly", unique_key="once"),
        ],
        on_complete=new_job(command="echo 'done\t\\N'", batch="nightly"),
    )
    backend.force("held", held=1, ready=0)
    backend.force("blocked", state="blocked", ready=0)
    store.schedules.add(schedule("s", fields={"argv": ["ü", "\\N"], "env": {"A": "\t"}}, until_ms=BIG))
    store.schedules.add(schedule("t", is_paused=True, tick_ms=None, start_ms=None, look_ms=None))
    store.schedules.change(
        "s", firing(tick("fired"), RunDecision(BIG, None, "why", times=9), waiting="fired", last_ms=BIG)
    )
    store.alerts.add(alert("a", queue="mail", repeat_ms=BIG, url="https://example.org/\\N", command=None))
    store.alerts.add(alert("b", kind=Kind.NO_WORKER, command="echo '\t\\N'"))
    store.alerts.update(
        add_unsent(store.alerts.get("b")._replace(is_firing=True), Notification("t", AlertEvent.FIRING, BIG, BIG))
    )
    store.enqueue([new_job("asked")], idempotency=("ü \\N\t", "digest"))
    clock.advance(60)
    store.samples.record()


def everything(store: Store, backend: Backend) -> dict[str, Any]:
    """Everything in the store, by its interface and in its tables."""
    jobs = list(store.jobs(descending=False))
    tables = {table.name: backend.rows(table.name) for table in TABLES if table.name != "moves"}
    return {
        "jobs": [job.to_dict(show_env=True) for job in jobs],
        "history": {job.id: [run.to_dict() for run in store.history(job.id)] for job in jobs},
        "batches": store.batches.all(),
        "tagged": [job.id for job in store.jobs(Filter(tags=frozenset({"a", "b.c:d"})))],
        "tally": store.tally(),
        "totals": store.totals(),
        "config": store.config(),
        "ticks of s": store.schedules.runs("s", limit=100),
        "last": store.resolve("last"),
        **{name: sorted((plain(row) for row in rows), key=repr) for name, rows in tables.items()},
    }


def plain(row: dict[str, Any]) -> dict[str, Any]:
    bare = {name: int(value) if isinstance(value, bool) else value for name, value in row.items()}
    return {name: bare[name] for name in sorted(bare) if name not in MADE_UP}


def test_all_of_a_store_arrives_as_it_was(move: Move, clock: FakeClock) -> None:
    hands = move.hire()
    fill(move.source, hands, clock, move.backends[0])
    states = {job.state for job in move.source.jobs()}
    endings = {run.outcome for job in move.source.jobs() for run in move.source.history(job.id)}
    assert states == set(State) - {State.PROCESSING}
    assert endings == set(Ending) - {Ending.RUNNING}
    before = everything(move.source, move.backends[0])
    done = move()
    assert everything(move.target, move.backends[1]) == before == everything(move.source, move.backends[0])
    assert [count.source for count in done.counts] == [count.target for count in done.counts]
    assert {count.what: count.target for count in done.counts} == {
        "jobs": len(before["jobs"]),
        "runs": sum(map(len, before["history"].values())),
        "pieces of output": 0,
        "tags": 7,
        "batches": 1,
        "dependencies": 0,
        "settings": 3,
        "schedules": 2,
        "alerts": 2,
        "rules of queues": 2,
        "keyed requests": 1,
        "calls to make": 1,
        "points for charts": len(before["points"]),
        "jobs ever enqueued": 29,
    }
    assert done.given_back == 0
    assert all(before[name] for name in SAMPLES)


def test_the_copy_works_on_where_the_source_stopped(move: Move, clock: FakeClock) -> None:
    fill(move.source, move.hire(), clock, move.backends[0])
    move()
    numbers = []
    for store, backend in ((move.source, move.backends[0]), (move.target, move.backends[1])):
        store.enqueue([new_job("new", tags=("x",))])
        numbers.append(store.get("new").seq)
        hands = Hands(store, backend.home, name="w9")
        claims = hands.claim(50)
        for claim in claims:
            hands.end(claim, Exited(0))
        hands.wakeup.close()
        numbers.append([(claim.id, claim.run) for claim in claims])
    assert numbers[0] == numbers[2]
    assert numbers[1] == numbers[3]
    assert [run.number for run in move.target.history("again")] == [1, 2, 3, 4]


def test_output_that_is_kept_arrives_too(move: Move) -> None:
    hands = move.hire()
    move.source.enqueue([new_job("talks")])
    claim = hands.claim_one()
    printed = bytes(range(256)) * 40
    pieces = [OutputPiece(claim, at, printed[at : at + 1000], 0) for at in range(0, len(printed), 1000)]
    for piece in pieces:
        move.source.claims.exchange(hands.name, outputs=[piece])
    hands.end(claim)
    move()
    arrived = move.target.output("talks", 1)
    assert arrived == move.source.output("talks", 1)
    assert b"".join(piece.data for piece in arrived) == printed


def test_ageing_by_enqueues_goes_on_counting(move: Move) -> None:
    move.source.set_config({"ageing": "enqueues"})
    move.source.enqueue([new_job("old"), *(new_job() for _ in range(5))])
    move()
    move.target.enqueue([new_job("young", priority=3), new_job("strong", priority=100)])
    assert move.target.get("old").effective_priority == 7
    hands = Hands(move.target, move.backends[1].home)
    assert [claim.id for claim in hands.claim(2)] == ["strong", "old"]
    hands.wakeup.close()


def test_an_empty_store_can_be_copied(move: Move) -> None:
    assert sum(count.target for count in move().counts) == 0
    move.target.enqueue([new_job("first")])
    assert move.target.get("first").seq == 1


@pytest.mark.parametrize("what", ["a job", "a setting", "a past"])
def test_a_target_that_is_not_empty_is_refused_and_left_alone(move: Move, what: str) -> None:
    move.source.enqueue([new_job("a")])
    if what == "a setting":
        move.target.set_config({"lease": "1m"})
    else:
        move.target.enqueue([new_job("there")])
    if what == "a past":
        move.target.reset()
    jobs, config = list(move.target.jobs()), move.target.config()
    with pytest.raises(StoreNotEmpty):
        move(force=True)
    assert (list(move.target.jobs()), move.target.config()) == (jobs, config)


def test_a_store_is_not_copied_into_itself(move: Move, clock: FakeClock) -> None:
    store = move.source
    again = move.backends[0].open(clock)
    with pytest.raises(SameStore):
        copy_store(
            store,
            lambda: again,
            clock=SystemClock(),
            is_alive=lambda worker: False,
            force=True,
            advance=lambda done, of: None,
        )


def test_a_source_whose_workers_live_is_refused_before_the_target_is_touched(move: Move) -> None:
    move.hire("bee")
    with pytest.raises(errors.WorkersAlive, match="bee"):
        move(is_alive=True)
    assert move(is_alive=True, force=True).given_back == 0
    assert move.target.workers() == []


def test_a_source_with_running_jobs_is_refused(move: Move) -> None:
    hands = move.hire()
    move.source.enqueue([new_job("a")])
    hands.claim_one()
    with pytest.raises(JobsRunning, match="1 job runs"):
        move()
    assert move.target.count() == 0


def test_what_runs_waits_again_in_the_copy_and_nothing_is_charged(move: Move, clock: FakeClock) -> None:
    hands = move.hire()
    move.source.set_config({"ageing": "enqueues"})
    move.source.enqueue([new_job("runs", max_retries=5), new_job("cancelled"), new_job("waits")])
    hands.end(hands.claim_one(), BAD)
    clock.advance(10)
    claims = hands.claim(2)
    move.source.cancel(["cancelled"])
    move.source.enqueue([new_job(), new_job()])
    clock.advance(10)
    done = move(force=True)
    assert done.given_back == 1
    job = move.target.get("runs")
    assert (job.state, job.attempts, job.runs, job.crashes) == (State.PENDING, 1, 2, 0)
    assert [run.outcome for run in move.target.history("runs")] == [Ending.FAILED, Ending.RELEASED]
    assert move.target.get("cancelled").state is State.CANCELLED
    assert [job.state for job in move.source.jobs(Filter(ids=("runs",)))] == [State.PROCESSING]
    # What the worker of the source goes on to say is about another store.
    end = End(claims[0], settlement(claims[0]), PID, 0, 0, None, None)
    other = Hands(move.target, move.backends[1].home, name=hands.name)
    assert move.target.claims.exchange(other.name, ends=[end]).lost == [end]
    assert "runs" in [claim.id for claim in other.claim(5)]
    other.wakeup.close()


class Broken(Exception):
    pass


def test_a_copy_that_fails_half_way_leaves_the_target_empty(move: Move) -> None:
    move.source.set_config({"lease": "1m"})
    move.source.enqueue([new_job(tags=("t",)) for _ in range(500)])

    def fail(done: int, of: int | None) -> None:
        if done > 250:
            raise Broken

    with pytest.raises(Broken):
        move(advance=fail)
    assert (move.target.count(), move.target.config(), move.target.totals()) == (0, {}, {})
    assert move().counts[0].target == 500


def test_what_is_enqueued_during_a_copy_is_not_in_it(move: Move) -> None:
    move.source.enqueue([new_job() for _ in range(300)])
    seen: list[tuple[int, int | None]] = []

    def interrupt(done: int, of: int | None) -> None:
        if not seen:
            move.source.enqueue([new_job("late")])
        seen.append((done, of))

    move(advance=interrupt)
    assert move.target.count() == 300
    assert seen[-1] == (301, 301)  # with the one row of what was counted


def test_both_dialects_have_the_same_to_copy(home: Path, clock: FakeClock) -> None:
    found = []
    for name, backend in BACKENDS.items():
        made = backend(home / name)
        store = made.open(clock)
        with store.transfers.dump() as dump:
            found.append({table.name: sorted(dump.columns(table)) for table in TABLES})
        store.close()
        made.close()
    assert found[0] == found[1]
    assert all(columns for columns in found[0].values())


def test_a_copy_contains_dependencies_and_unresolved_parents(move: Move) -> None:
    hands = move.hire()
    many = MAX_CHILDREN_PER_STEP + 1
    children = [new_job(f"k{number}", depends_on=(Dependency("a"),)) for number in range(many)]
    move.source.enqueue([new_job("a"), new_job("b"), new_job("c", depends_on=(Dependency("b"),)), *children])
    assert hands.end(hands.claim_one()).undecided
    move()
    while move.target.dependencies.decide():
        pass
    assert move.target.get("c").reason == "waits for b (pending)"
    assert move.target.count(Filter(states=frozenset({State.PENDING}))) == many + 1
