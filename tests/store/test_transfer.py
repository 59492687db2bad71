"""Jobs out of a store as records, and into another one, in all four directions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from queuectl import errors
from queuectl.alerts.operations import AlertRequest
from queuectl.alerts.operations import parse_alert as read_alert
from queuectl.errors import ParentNotFound
from queuectl.jobs.dependencies import Dependency, Need
from queuectl.jobs.import_record import ImportRecord, parse_record
from queuectl.jobs.outcome import Ending, Exited, NotStarted, Outcome, Released, Signalled, TimedOut
from queuectl.jobs.resources import Usage
from queuectl.jobs.spec import Defaults, NewJob
from queuectl.jobs.states import State
from queuectl.operations.export import export_jobs
from queuectl.store.store import Store
from queuectl.store.transfer import Importer
from queuectl.store.types import End, Filter
from tests.clock import FakeClock
from tests.factories import new_job, settlement
from tests.store.backends import BACKENDS, Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands
from tests.store.invariants import check_invariants
from tests.store.wakeups import drain, wakes

PAIRS = list(itertools.product(BACKENDS, repeat=2))
DEFAULTS = Defaults(priority=0, max_retries=3, first_is_free=False, backoff_base=2.0, timeout_ms=None, cwd="/")
ENDS: dict[str, Outcome] = {
    "completed": Exited(0),
    "dead": BAD,
    "signalled": Signalled(9),
    "timeout": TimedOut(5000, Signalled(15)),
    "unstartable": NotStarted("no such directory: /nié"),
    "released": Released(None),
}
MANY = ("lost", "again", "fails", "waits", "called-off")
Pair = tuple[Backend, Backend, Store, Store]


@pytest.fixture(params=PAIRS, ids="-to-".join)
def pair(request: pytest.FixtureRequest, home: Path, clock: FakeClock) -> Iterator[Pair]:
    home.mkdir()
    a, b = (BACKENDS[name](home / folder) for name, folder in zip(request.param, "ab", strict=True))
    source, target = a.open(clock), b.open(clock)
    yield a, b, source, target
    check_invariants(target, b)
    for opened in (source, target, a, b):
        opened.close()


@contextmanager
def at_work(store: Store, backend: Backend, name: str = "w1") -> Iterator[Hands]:
    hands = Hands(store, backend.home, name=name)
    yield hands
    hands.wakeup.close()


def fill(store: Store, backend: Backend, clock: FakeClock) -> None:
    """Every state but processing, every kind of end, and fields with something and with nothing in them."""
    with at_work(store, backend) as hands, at_work(store, backend, "w2") as doomed:
        store.enqueue([new_job(name, max_retries=1 + (name == "signalled"), priority=1000) for name in ENDS])
        for claim in hands.claim(len(ENDS)):
            clock.advance(1.5)
            done = settlement(claim, ENDS[claim.id])
            end = End(claim, done, 7, 1.25, 1.25, 10, 20, Usage(1, 2, 2**40, 4, 5), f"\\N \\t 漢字 {claim.id}")
            store.claims.exchange(hands.name, ends=[end])
        store.enqueue([new_job(name, max_retries=3, tags=("many",)) for name in MANY])
        doomed.claim(20)
        store.claims.rescue("w2", max_crashes=5)
        clock.advance(100)
        for claim in hands.claim(20):
            if claim.id == "called-off":
                store.cancel([claim.id])
            outcome = BAD if claim.id in {"again", "fails", "waits"} else Exited(0)
            hands.end(claim, outcome, last_output=f"order {claim.seq}")
        store.retry(["again"], states=frozenset(State))
        store.enqueue([new_job("off")])
        store.cancel(["off"])
        store.cancel(["fails"])  # between two runs: its end is no longer that of a run
    store.enqueue(
        [
            new_job("argv", command=None, argv=("printf", 'a "b" \\ ü\t\x7f 漢字 🐝'), tags=("a", "b.c:d")),
            new_job("grouped", batch="nightly", unique_key="once"),
            new_job("env", env={"PATH": "/bin", "ÜBER": "ja\nnein", "EMPTY": ""}, cwd="/wo/ö h"),
            new_job(
                "big", priority=1_000_000, max_retries=1_000_000, backoff_base=1.0000000000000002, timeout_ms=1_234
            ),
            new_job("limited", limits={"memory": 2**31, "nice": -5}),
            new_job("later", delay_ms=3_600_000, queue="mail", first_is_free=True, priority=-1_000_000),
            new_job("held"),
            new_job("blocked"),
            new_job("text", command="echo '\\N' \\t \\. \t\n\r |;\"'"),  # what COPY itself has a meaning for
        ]
    )
    backend.force("held", held=1, ready=0)
    backend.force("blocked", state="blocked", ready=0)


def exported(store: Store, where: Filter = Filter(), *, history: bool = True) -> list[dict[str, Any]]:
    """As they come out of the file that holds them."""
    found: list[dict[str, Any]] = json.loads(
        json.dumps(list(export_jobs(store, where, history=history, show_env=True)))
    )
    return found


def records(values: Sequence[dict[str, Any]]) -> list[ImportRecord]:
    return [parse_record(value, DEFAULTS) for value in values]


def put(store: Store, values: Sequence[dict[str, Any]]) -> None:
    with store.transfers.importer({}) as door:
        door.add(records(values))


def bare(values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what belongs to one host: the log, and whether there is a worker."""
    return [{**value, "log": None, "reason": None} for value in values]


def test_all_of_a_store_comes_out_and_in_as_it_was(pair: Pair, clock: FakeClock) -> None:
    a, _, source, target = pair
    fill(source, a, clock)
    values = exported(source)
    assert {value["state"] for value in values} == set(State) - {State.PROCESSING}
    assert {run["outcome"] for value in values for run in value["history"]} == set(Ending) - {Ending.RUNNING}
    put(target, values)
    assert bare(exported(target)) == bare(values)
    assert {value["log"] for value in exported(target)} == {None}
    assert target.tally() == source.tally()
    assert target.failures(limit=99) == source.failures(limit=99) != []
    assert [job.id for job in target.jobs(Filter(tags=frozenset({"many"})))] == list(reversed(MANY))


def test_what_came_in_works_on_where_it_stopped(pair: Pair, clock: FakeClock) -> None:
    a, b, source, target = pair
    fill(source, a, clock)
    put(target, exported(source))
    ran = []
    for store, backend in ((source, a), (target, b)):
        store.enqueue([new_job("new", tags=("x",))])
        with at_work(store, backend, "w9") as hands:
            claims = hands.claim(50)
            for claim in claims:
                hands.end(claim, Exited(0))
        ran.append([(claim.id, claim.run) for claim in claims])
    assert ran[0] == ran[1]
    assert [run.number for run in target.history("again")] == [1, 2, 3]
    target.retry(["fails", "off", "dead"], states=frozenset(State))
    assert {target.get(name).state for name in ("fails", "off", "dead")} == {State.PENDING}
    assert target.get("fails").error == "exit code 3"


def test_what_ran_waits_again_with_nothing_charged(pair: Pair) -> None:
    a, b, source, target = pair
    source.enqueue([new_job("runs")])
    with at_work(source, a) as hands:
        hands.start(hands.claim_one())
        values = exported(source)
    assert values[0]["history"][0]["outcome"] == "running"
    put(target, values)
    job, history = target.get("runs"), target.history("runs")
    assert (job.state, job.attempts, job.runs, job.crashes) == (State.PENDING, 0, 1, 0)
    assert [(run.number, run.outcome) for run in history] == [(1, Ending.RELEASED)]
    assert history[0].error == "it ran when it was exported"
    with at_work(target, b) as hands:
        assert hands.run().run == 2
    assert [run.outcome for run in target.history("runs")] == [Ending.RELEASED, Ending.COMPLETED]


@pytest.mark.parametrize("ageing", ["off", "enqueues", "10m"])
def test_what_comes_in_is_ranked_by_the_rule_of_its_new_place(pair: Pair, clock: FakeClock, ageing: str) -> None:
    a, b, source, target = pair
    source.enqueue([new_job("low"), new_job("high", priority=2)])
    clock.advance(60)
    source.enqueue([new_job("late", priority=1)])
    target.set_config({"ageing": ageing})
    target.enqueue([new_job("there", priority=1)])
    put(target, exported(source))
    with at_work(source, a), at_work(target, b) as hands:
        order = [claim.id for claim in hands.claim(9)]
    assert order.index("high") < order.index("late")
    assert order.index("there") < order.index("late")


def test_an_export_is_of_one_moment_and_lets_others_write(store: Store, hire: Hire) -> None:
    store.enqueue([new_job(f"j{number:04}") for number in range(1200)])
    hands = hire()
    found = store.export(Filter(), history=True)
    first = next(found)
    hands.run()
    store.enqueue([new_job("new")])
    rest = list(found)
    assert [first.job.id, *(job.id for job, _ in rest)] == [f"j{number:04}" for number in range(1200)]
    assert first.history == []
    assert {job.state for job, _ in rest} == {State.PENDING}


def test_an_export_has_what_matches_and_history_only_if_asked(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a", tags=("t",)), new_job("b", queue="mail", tags=("t", "u")), new_job("c")])
    hire().run()
    for where, ids in (
        (Filter(states=frozenset({State.PENDING})), ["b", "c"]),
        (Filter(queues=frozenset({"mail"})), ["b"]),
        (Filter(tags=frozenset({"t"})), ["a", "b"]),
        (Filter(tags=frozenset({"t", "u"})), ["b"]),
    ):
        assert [job.id for job, _ in store.export(where, history=False)] == ids
    assert [len(runs) for _, runs in store.export(Filter(), history=True)] == [1, 0, 0]
    assert [len(runs) for _, runs in store.export(Filter(), history=False)] == [0, 0, 0]


def add_and_fail(door: Importer, jobs: Sequence[ImportRecord]) -> None:
    door.add(jobs)
    raise ZeroDivisionError


def test_nothing_is_there_if_the_import_fails(store: Store) -> None:
    store.enqueue([new_job("there", tags=("t",))])
    (value,) = exported(store)
    before = store.tally(), store.config()
    with pytest.raises(ZeroDivisionError), store.transfers.importer({"max-retries": "9"}) as door:
        add_and_fail(door, records([{**value, "id": "new"}]))
    assert [job.id for job in store.jobs()] == ["there"]
    assert (store.tally(), store.config()) == before


def test_an_id_that_is_taken_is_refused(store: Store) -> None:
    store.enqueue([new_job("a")])
    (value,) = exported(store)
    with pytest.raises(errors.DuplicateId, match="'a'"), store.transfers.importer({}) as door:
        door.add(records([{**value, "id": "b"}, value]))
    assert [job.id for job in store.jobs()] == ["a"]


def test_what_is_there_is_found_within_the_import(store: Store) -> None:
    store.enqueue([new_job("a")])
    (value,) = exported(store)
    with store.transfers.importer({}) as door:
        door.add(records([{**value, "id": "b"}]))
        assert sorted(door.present(["a", "b", "c"])) == ["a", "b"]
        assert door.present([]) == {}
        door.add([])


def test_an_import_counts_as_so_many_enqueues(store: Store) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("a")])
    (value,) = exported(store)
    put(store, [{**value, "id": f"n{number}"} for number in range(5)])
    assert store.get("a").effective_priority == 5
    assert store.totals()["default"]["enqueued"] == 6
    store.enqueue([new_job("z")])
    assert store.get("z").seq == 7


def test_settings_come_in_with_the_jobs(store: Store) -> None:
    store.enqueue([new_job("low"), new_job("high", priority=3)])
    with store.transfers.importer({"ageing": "enqueues", "max-retries": "9"}) as door:
        door.add([])
    assert store.config() == {"ageing": "enqueues", "max-retries": "9"}


def test_alerts_and_ends_of_batches_come_in_with_the_jobs_or_not_at_all(store: Store, hire: Hire) -> None:
    alert = read_alert(AlertRequest("deaths", dead=3, command="true"), cwd="/", now_ms=store.now_ms())
    last = new_job(command="echo all of it", batch="all")
    store.enqueue([new_job("a", batch="all")])
    (value,) = exported(store)

    def say_and_fail(door: Importer) -> None:
        door.add_alert(alert)
        door.complete_with("all", last)
        assert [one.name for one in door.store.alerts.all()] == ["deaths"]
        assert door.store.batches.completion_jobs() == {"all": (last, False)}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), store.transfers.importer({}, rules=True) as door:
        say_and_fail(door)
    assert (store.alerts.all(), store.batches.completion_jobs()) == ([], {})
    with store.transfers.importer({}, rules=True) as door:
        door.add_alert(alert)
        door.complete_with("all", last)
        door.add(records([{**value, "id": "b"}]))
    assert store.alerts.all() == [alert]
    assert (store.batches.get("all").added, store.batches.completion_jobs()) == (2, {"all": (last, False)})
    with pytest.raises(errors.AlertExists), store.transfers.importer({}, rules=True) as door:
        door.add_alert(alert)
    with pytest.raises(errors.BatchDiffers), store.transfers.importer({}, rules=True) as door:
        door.complete_with("all", last._replace(command="echo other"))
    hands = hire()
    for _ in "ab":
        hands.run()
    assert [batch for batch, _ in store.batches.complete_ended()] == ["all"]
    assert store.batches.completion_jobs() == {"all": (last, True)}


def test_a_job_that_comes_due_is_let_in_then(store: Store, hire: Hire, clock: FakeClock) -> None:
    store.enqueue([new_job("x", delay_ms=60_000)])
    (value,) = exported(store)
    put(store, [{**value, "id": "later"}])
    hands = hire()
    assert hands.claim(5) == []
    clock.advance(61)
    assert sorted(claim.id for claim in hands.claim(5)) == ["later", "x"]


def test_a_worker_is_woken_by_an_import(store: Store, other: Store, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    (value,) = exported(store)
    hands = hire()
    drain(hands.wakeup)
    put(other, [{**value, "id": "b"}])
    assert wakes(hands.wakeup)


# ── jobs that wait for others ───────────────────────────────────────────────────────────────────────────────────────


def ported(pair: Pair, *, only: frozenset[State] = frozenset()) -> Store:
    """All that the source exports, in the target."""
    _, _, source, target = pair
    records = [
        parse_record(value, DEFAULTS) for value in export_jobs(source, Filter(states=only), history=True, show_env=True)
    ]
    with target.transfers.importer({}) as door:
        door.add(records)
        door.link([record for record in records if record.depends_on])
    return target


def waiting(name: str, *parents: str, when: Need = Need.COMPLETED) -> NewJob:
    return new_job(name, max_retries=1, depends_on=tuple(Dependency(parent, when) for parent in parents))


def test_a_blocked_job_comes_back_blocked_and_is_freed_there(pair: Pair) -> None:
    a, b, source, _ = pair
    source.enqueue([new_job("a"), new_job("b"), waiting("c", "a", "b")])
    with at_work(source, a) as worker:
        worker.run()
    target = ported(pair)
    job = target.get("c")
    assert (job.state, job.reason, job.depends_on) == (
        State.BLOCKED,
        "waits for b (pending)",
        (Dependency("a"), Dependency("b")),
    )
    with at_work(target, b) as worker:
        assert [worker.run().id for _ in range(2)] == ["b", "c"]


def test_an_imported_child_that_its_parent_cancelled_is_blocked_again_with_it(pair: Pair) -> None:
    a, _, source, _ = pair
    source.enqueue([new_job("a", max_retries=1), waiting("b", "a"), waiting("c", "a"), waiting("d", "a")])
    source.cancel(["c"])
    with at_work(source, a) as worker:
        worker.run(BAD)
    source.retry(["d"], states=frozenset(State))
    target = ported(pair)
    target.retry(["a"], states=frozenset(State))
    states = {job.id: job.state for job in target.jobs()}
    assert states == {"a": State.PENDING, "b": State.BLOCKED, "c": State.CANCELLED, "d": State.PENDING}


def test_a_job_that_is_blocked_by_what_is_not_there_is_refused_by_name(pair: Pair) -> None:
    _, _, source, target = pair
    source.enqueue([new_job("a"), waiting("b", "a")])
    with pytest.raises(ParentNotFound, match="no job 'a': 'b' cannot wait for it"):
        ported(pair, only=frozenset({State.BLOCKED}))
    assert list(target.jobs()) == []


def test_a_parent_that_ended_in_the_target_is_told_to_who_comes_in(pair: Pair) -> None:
    _, b, source, target = pair
    source.enqueue([new_job("a"), waiting("b", "a")])
    target.enqueue([new_job("a")])
    with at_work(target, b) as worker:
        worker.run()
    ported(pair, only=frozenset({State.BLOCKED}))
    assert target.get("b").state is State.PENDING
