"""Many clients at once, on real connections: no job twice, no deadlock, and the counters stay right."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.cron.schedule import RunDecision, ScheduleChange, ScheduleView
from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, Released
from queuectl.jobs.states import State
from queuectl.store.dependencies import Entering
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.transactions import Query
from queuectl.store.types import ClaimRequest, End, Row
from queuectl.store.unique import subjects
from tests.factories import new_job, settlement
from tests.store.crowd import at_once
from tests.store.hands import PID, Hands
from tests.store.postgres.conftest import Open
from tests.store.test_schedules import schedule

WORKERS = 4


def end_all(store: PostgresStore, worker: str, claims: list[Claim], request: ClaimRequest | None) -> list[Claim]:
    ends = [End(claim, settlement(claim), PID, 0, 0, 0, 0) for claim in claims]
    exchange = store.claims.exchange(worker, ends=ends, claim=request)
    assert not exchange.lost
    return exchange.claims


def test_what_runs_when_a_batch_has_ended_is_queued_once(open_pg: Open, home: Path) -> None:
    jobs, stores = 40, [open_pg() for _ in range(WORKERS)]
    last = new_job(command="echo done", batch="b")
    stores[0].enqueue([new_job(batch="b") for _ in range(jobs)], on_complete=last)
    hands = [Hands(store, home, name=f"w{number}") for number, store in enumerate(stores)]
    made: list[str] = []

    def work(number: int) -> None:
        claims: list[Claim] = []
        while True:
            request = hands[number].request(1) if not made else None
            claims = end_all(stores[number], f"w{number}", claims, request)
            made.extend(completed.job_id for completed in stores[number].batches.complete_ended())
            if not claims and (made or stores[number].is_drained(None)):
                return

    at_once(*(lambda number=number: work(number) for number in range(WORKERS)))  # type: ignore[misc]
    made.extend(completed.job_id for completed in stores[0].batches.complete_ended())
    for one in hands:
        one.wakeup.close()
    assert len(made) == 1
    assert stores[0].batches.get("b").on_complete_job == made[0]


def test_each_tick_is_fired_once_by_any_number_at_once(open_pg: Open) -> None:
    boss, ticks = open_pg(), 30
    boss.schedules.add(schedule(tick_ms=0, start_ms=0, last_ms=0))
    stores = [open_pg() for _ in range(WORKERS)]

    def next_one(view: ScheduleView) -> ScheduleChange:
        at = (view.schedule.last_ms or 0) + 1
        return ScheduleChange(
            view.schedule._replace(last_ms=at), (RunDecision(at, new_job(f"{at}-{threading.get_ident()}")),)
        )

    def fire(store: PostgresStore) -> None:
        for _ in range(ticks):
            store.schedules.change("s", next_one)

    at_once(*(partial(fire, store) for store in stores))
    assert boss.schedules.get("s").last_ms == WORKERS * ticks
    fired = [job.id.partition("-")[0] for job in boss.jobs(descending=False)]
    assert fired == [str(number) for number in range(1, WORKERS * ticks + 1)]


def test_no_job_is_given_to_two(open_pg: Open, home: Path) -> None:
    jobs = 600
    boss = open_pg()
    boss.enqueue([new_job(queue=f"q{number % 3}", priority=number % 5) for number in range(jobs)])
    stores = [open_pg() for _ in range(WORKERS)]
    hands = [Hands(store, home, name=f"w{number}") for number, store in enumerate(stores)]
    taken: list[list[Claim]] = [[] for _ in stores]

    def work(number: int) -> None:
        claims: list[Claim] = []
        while True:
            claims = end_all(stores[number], f"w{number}", claims, hands[number].request(7))
            taken[number] += claims
            if not claims and boss_is_drained():
                return

    lock = threading.Lock()

    def boss_is_drained() -> bool:
        with lock:
            return boss.is_drained(None)

    at_once(*(lambda number=number: work(number) for number in range(WORKERS)))  # type: ignore[misc]
    given = Counter(claim.id for claims in taken for claim in claims)
    assert len(given) == jobs
    assert set(given.values()) == {1}
    assert sum(states[State.COMPLETED] for states in boss.tally().values()) == jobs
    assert sum(worker.jobs_done for worker in boss.workers()) == jobs
    for one in hands:
        one.wakeup.close()


@pytest.mark.timeout(120)
def test_all_verbs_at_once_neither_block_each_other_nor_lose_count(open_pg: Open, home: Path) -> None:
    """Claims, ends, enqueues, cancels, revivals, changes of ageing, folds and rescues, each on its own connection."""
    boss = open_pg()
    ids = boss.enqueue([new_job(f"j{number}", max_retries=2, backoff_base=1.0) for number in range(200)])
    claimed: list[str] = []

    def work(number: int) -> None:
        store, name = open_pg(), f"w{number}"
        hands = Hands(store, home, name=name)
        claims: list[Claim] = []
        for turn in range(60):
            outcome = (Exited(0), Exited(1), Released(None))[turn % 3]
            ends = [End(claim, settlement(claim, outcome), PID, 0, 0, 0, 0) for claim in claims]
            claims = store.claims.exchange(name, ends=ends, claim=hands.request(5)).claims
            claimed.extend(claim.token for claim in claims)
            store.claims.heartbeat(name, slots=5, stopping=False)
        hands.wakeup.close()

    def meddle() -> None:
        store = open_pg()
        for number, job_id in enumerate(ids[:60]):
            store.cancel([job_id])
            store.retry([job_id], states=frozenset(State))
            if number % 10 == 0:
                store.set_config({"ageing": ("off", "enqueues", "1s")[number // 10 % 3]})

    def feed() -> None:
        store = open_pg()
        for number in range(60):
            store.enqueue([new_job(f"n{number}.{part}", priority=part) for part in range(3)])

    def rescue() -> None:
        store = open_pg()
        for _ in range(20):
            store.claims.rescue("w0", max_crashes=1000)

    at_once(*(lambda number=number: work(number) for number in range(3)), meddle, feed, rescue)  # type: ignore[misc]
    assert len(claimed) == len(set(claimed))
    real = Counter(job.state for job in boss.jobs())
    tally = boss.tally()["default"]
    assert {state: jobs for state, jobs in tally.items() if jobs} == real
    assert sum(real.values()) == 200 + 180
    for job in boss.jobs():
        assert [run.number for run in boss.history(job.id)][: job.runs] == list(range(1, job.runs + 1))


def test_a_rescued_worker_never_holds_an_unknown_claim(open_pg: Open, home: Path) -> None:
    """A claim and the rescue of the same worker at the same moment: the job is with the known, or free."""
    boss, rescuer, worker = open_pg(), open_pg(), open_pg()
    for turn in range(30):
        boss.enqueue([new_job(f"t{turn}")])
        hands = Hands(worker, home, name="w")
        at_once(lambda hands=hands: hands.claim(1), lambda: rescuer.claims.rescue("w", max_crashes=100))  # type: ignore[misc]
        known = {one.id for one in boss.workers()}
        held = [job for job in boss.jobs() if job.state is State.PROCESSING]
        assert all(job.worker in known for job in held)
        boss.claims.rescue("w", max_crashes=100)
        hands.wakeup.close()
        boss.reset()


def test_a_cancel_at_the_moment_of_the_end_is_either_late_or_wins(open_pg: Open, home: Path) -> None:
    boss, person, worker = open_pg(), open_pg(), open_pg()
    hands = Hands(worker, home, name="w")
    for turn in range(40):
        job_id = f"t{turn}"
        boss.enqueue([new_job(job_id)])
        (claim,) = hands.claim(1)
        answers: list[State] = []

        def settle(claim: Claim = claim) -> None:
            end_all(worker, "w", [claim], None)

        def cancel(job_id: str = job_id, answers: list[State] = answers) -> None:
            answers.append(person.cancel([job_id])[job_id].before)

        at_once(settle, cancel)
        expected = State.CANCELLED if answers == [State.PROCESSING] else State.COMPLETED
        assert boss.get(job_id).state is expected
    hands.wakeup.close()


def test_what_is_counted_is_folded_without_losing_any(open_pg: Open, home: Path, server: object, url: str) -> None:
    boss = open_pg()
    hands = Hands(boss, home)
    for _ in range(300):
        boss.enqueue([new_job()])
        hands.run()
    before = boss.tally(), boss.totals()
    stores = [open_pg() for _ in range(3)]
    at_once(*(lambda store=store: store.claims.heartbeat("w1", slots=1, stopping=False) for store in stores))  # type: ignore[misc]
    assert (boss.tally(), boss.totals()) == before
    ((rows,),) = boss.db.query(Query("select count(*) from queuectl.moves"))
    assert rows[0] <= 3 * len(stores)
    hands.wakeup.close()


def test_ids_given_at_once_by_two_are_taken_by_one(open_pg: Open) -> None:
    stores = [open_pg() for _ in range(4)]
    refused: list[str] = []

    def add(store: PostgresStore) -> None:
        try:
            store.enqueue([new_job("same"), new_job()])
        except errors.DuplicateId as exc:
            refused.append(exc.job_id)

    at_once(*(lambda store=store: add(store) for store in stores))  # type: ignore[misc]
    assert refused == ["same"] * 3
    assert stores[0].count() == 2


def test_two_parents_that_end_at_the_same_moment_free_their_child(open_pg: Open, home: Path) -> None:
    boss = open_pg()
    stores = [open_pg() for _ in range(2)]
    hands = [Hands(store, home, name=f"w{number}") for number, store in enumerate(stores)]
    for turn in range(20):
        names = [f"a{turn}", f"b{turn}"]
        boss.enqueue([*map(new_job, names), new_job(f"c{turn}", depends_on=tuple(map(Dependency, names)))])
        tasks = [
            partial(end_and_tell, store, hand.name, hand.claim_one()) for store, hand in zip(stores, hands, strict=True)
        ]
        at_once(*tasks)
        assert boss.get(f"c{turn}").state is State.PENDING
        boss.cancel([f"c{turn}"])
    for hand in hands:
        hand.wakeup.close()


def end_and_tell(store: PostgresStore, worker: str, claim: Claim) -> None:
    end_all(store, worker, [claim], None)
    while store.dependencies.decide():
        pass


def test_a_child_that_is_enqueued_while_its_parent_ends_is_not_forgotten(open_pg: Open, home: Path) -> None:
    """One of the two cannot see yet what the other does; the next call resolves the child."""
    boss, one, two = (open_pg() for _ in range(3))
    worker = Hands(one, home)
    for turn in range(20):
        boss.enqueue([new_job(f"p{turn}")])
        claim = worker.claim_one()
        child = new_job(f"c{turn}", depends_on=(Dependency(f"p{turn}"),))
        at_once(lambda: end_and_tell(one, "w1", claim), lambda: two.enqueue([child]))  # noqa: B023 - called at once
        while boss.dependencies.decide():
            pass
        assert boss.get(f"c{turn}").state is State.PENDING
        boss.cancel([f"c{turn}"])
    worker.wakeup.close()


def test_a_child_whose_unique_key_is_locked_is_resolved_later(open_pg: Open, home: Path) -> None:
    """Resolving it waits for no lock, and never makes it a second job with its key."""
    boss, adding = open_pg(), open_pg()
    worker = Hands(boss, home)
    child = new_job("c", unique_key="k", depends_on=(Dependency("p"),))
    boss.enqueue([new_job("p", max_retries=1), child])
    worker.end(worker.claim_one(), Exited(3))
    while boss.dependencies.decide():
        pass
    with adding.db.transaction():
        adding.db.query(Query(SQL["take_keys"], {"keys": ["k"]}))
        with boss.db.transaction():
            (job,) = subjects(boss.tx, ["p"])
            values = {"seq": [job.seq], "rank": [0], "now": boss.now_ms()}
            boss.db.execute(SQL["retry"], values)
        assert boss.dependencies.decide() is True
        assert boss.get("c").state is State.CANCELLED
    while boss.dependencies.decide():
        pass
    assert boss.get("c").state is State.BLOCKED
    worker.wakeup.close()


def test_an_end_does_not_wait_for_a_transaction_that_adds_children(open_pg: Open, home: Path) -> None:
    boss, adding = open_pg(), open_pg()
    worker = Hands(boss, home)
    boss.enqueue([new_job("p")])
    claim = worker.claim_one()
    jobs = [new_job("c", depends_on=(Dependency("p"),))]
    with adding.db.transaction():
        adding.enqueuer.find_links(Entering(jobs, ["c"]))
        assert worker.end(claim).settled
    assert boss.get("p").state is State.COMPLETED
    worker.wakeup.close()


def test_jobs_that_limit_their_key_and_come_while_a_claim_chooses_are_not_taken_beyond_it(
    open_pg: Open, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_pg(), open_pg()
    store.queues.set_rules("limited", {"concurrency": 1})  # so that the claim has to choose
    store.enqueue([new_job("plain")])
    worker = Hands(store, home)
    limited = store.claims.limited
    look = limited.limits

    def enqueue_meanwhile(now: int, found: list[Row]) -> object:
        monkeypatch.undo()
        for number in range(4):
            other.enqueue([new_job(f"a{number}", key="k", places=1, priority=9)])
        return look(now, found)

    # After it has seen in which queues there are any, and before it reads their heads.
    monkeypatch.setattr(limited, "limits", enqueue_meanwhile)
    first = worker.claim(4)
    then = worker.claim(4)
    worker.wakeup.close()
    assert [claim.id for claim in [*first, *then]] == ["plain", "a0"]
