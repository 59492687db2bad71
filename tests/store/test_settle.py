"""exchange, the settling half: what the end of a run writes, and who may write it."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.jobs.audit import Actor
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import (
    Cancelled,
    Ending,
    Exited,
    GivenBack,
    NotStarted,
    Outcome,
    Refused,
    Released,
    Signalled,
    TimedOut,
)
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import End, Filter, Start
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job, settlement, unknown_claim
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, OK, PID, Hands

# What was seen; then state, ending, exit code, signal and the beginning of the error.
ENDS = [
    (Exited(0), State.COMPLETED, Ending.COMPLETED, 0, None, None),
    (Exited(3), State.FAILED, Ending.FAILED, 3, None, "exit code 3"),
    (Signalled(9), State.FAILED, Ending.SIGNALLED, None, 9, "killed by signal 9"),
    (TimedOut(1000, Signalled(15)), State.FAILED, Ending.TIMEOUT, None, 15, "timeout"),
    (NotStarted("no such directory"), State.FAILED, Ending.UNSTARTABLE, None, None, "could not start"),
    (Released(Signalled(15)), State.PENDING, Ending.RELEASED, None, 15, "its worker was stopped"),
]


@pytest.mark.parametrize("outcome, state, ending, exit_code, signal, error", ENDS)
def test_every_kind_of_end_is_written_to_the_job_and_its_history(
    store: Store,
    worker: Hands,
    outcome: Outcome,
    state: State,
    ending: Ending,
    exit_code: int | None,
    signal: int | None,
    error: str | None,
) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    exchange = worker.end(claim, outcome)
    assert [written for _, written in exchange.settled] == [settlement(claim, outcome)]
    assert exchange.lost == []
    job, (run,) = store.get("a"), store.history("a")
    assert (job.state, job.exit_code, job.signal) == (state, exit_code, signal)
    assert (run.outcome, run.exit_code, run.signal, run.error) == (ending, exit_code, signal, job.error)
    assert (job.error is None) == (error is None)
    assert job.error is None or job.error.startswith(error or "")


def test_the_last_output_of_each_run_is_kept_with_its_end(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=5, backoff_base=1)])
    seen = []
    for line in ("first", None, "Fehler: \u00fc \N{CROSS MARK} '\"\\", "last"):
        claim = worker.claim_one()
        seen.append(store.get("a").last_output)  # none while it runs
        worker.end(claim, BAD, last_output=line)
        assert (store.get("a").last_output, store.history("a")[-1].last_output) == (line, line)
        clock.advance(60)
    assert seen == [None] * 4
    assert [run.last_output for run in store.history("a")] == [
        "first",
        None,
        "Fehler: \u00fc \N{CROSS MARK} '\"\\",
        "last",
    ]
    assert [run.last_output for _, runs in store.export(Filter(), history=True) for run in runs][::3] == [
        "first",
        "last",
    ]
    # A claim that is given back shows the run before it again.
    worker.end(worker.claim_one(), GivenBack("no slot"))
    assert store.get("a").last_output == "last"


def test_a_run_that_is_cancelled_keeps_its_last_output(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    store.cancel("a")
    worker.end(claim, Exited(1), last_output="working")
    assert (store.get("a").state, store.get("a").last_output) == (State.CANCELLED, "working")


def test_times_of_a_run_are_kept_to_the_millisecond(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    clock.advance(10)
    claim = worker.claim_one()
    clock.advance(5)
    worker.end(claim, OK, age=4.5, duration=4.25, log=(10, 20))
    job, (run,) = store.get("a"), store.history("a")
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (to_ms(run.started_at), to_ms(run.finished_at)) == (clock.now_ms() - 4500, clock.now_ms() - 250)
    assert (run.duration_ms, run.log_from, run.log_to, run.pid) == (4250, 10, 20, PID)
    assert (job.started_at, job.finished_at, job.duration_ms) == (run.started_at, run.finished_at, 4250)
    assert job.wait_ms == 10_500


def test_a_duration_is_monotonic_whatever_the_wall_clock_does(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    clock.jump(-3600)
    worker.end(claim, OK, age=2, duration=1.5)
    assert store.get("a").duration_ms == 1500


def test_a_failure_waits_for_its_backoff(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", backoff_base=3.0, max_retries=5)])
    for attempt, delay_ms in enumerate((3000, 9000, 27_000), start=1):
        clock.advance(3600)
        worker.run(BAD)
        job = store.get("a")
        assert (job.state, job.attempts, to_ms(job.run_at)) == (State.FAILED, attempt, clock.now_ms() + delay_ms)


def test_the_last_failure_is_death(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=2)])
    worker.run(BAD)
    clock.advance(60)
    worker.run(BAD)
    job = store.get("a")
    assert (job.state, job.attempts, job.runs) == (State.DEAD, 2, 2)


def test_a_failure_without_backoff_can_be_claimed_at_once(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    at_once = settlement(claim, BAD)
    store.claims.exchange(
        "w1", ends=[End(claim, type(at_once)(at_once.event, at_once.ending, 1, 0, 3), PID, 0, 0, 0, 0)]
    )
    assert store.get("a").state is State.FAILED
    assert worker.claim_one().run == 2


def test_a_released_job_is_pending_at_once_and_does_not_count_as_an_attempt(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.run(Released(None))
    job = store.get("a")
    assert (job.state, job.attempts, job.crashes, job.runs) == (State.PENDING, 0, 0, 1)
    assert worker.claim_one().id == "a"


def test_a_released_job_waits_since_it_was_first_due(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    due = store.get("a").run_at
    clock.advance(5)
    worker.run(Released(None))
    assert store.get("a").run_at == due
    worker.claim_one()
    assert store.get("a").wait_ms == 5000


def test_a_job_that_was_held_while_it_ran_does_not_run_again(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    backend.force("a", held=1)
    worker.end(claim, Released(None))
    assert store.get("a").state is State.PENDING
    assert worker.claim(1) == []


def test_every_run_adds_one_line_to_the_history(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=2)])
    for outcome in (Released(None), BAD, Signalled(9)):
        worker.run(outcome)
        clock.advance(3600)
    history = store.history("a")
    assert [run.number for run in history] == [1, 2, 3]
    assert [run.outcome for run in history] == [Ending.RELEASED, Ending.FAILED, Ending.SIGNALLED]


def test_the_worker_of_a_job_stays_after_its_end(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.run()
    store.claims.retire("w1")
    assert store.get("a").worker == "w1"


def test_settling_and_claiming_happen_at_once(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a"), new_job("b"), new_job("c"), new_job("d")])
    first, second = worker.claim(2)
    ends = [End(claim, settlement(claim, outcome), PID, 0, 0, 0, 0) for claim, outcome in ((first, OK), (second, BAD))]
    exchange = store.claims.exchange("w1", ends=ends, claim=worker.request(2))
    assert [end for end, _ in exchange.settled] == ends
    assert [claim.id for claim in exchange.claims] == ["c", "d"]
    assert exchange.next_due_ms == 2000


def test_an_exchange_that_cannot_be_written_whole_is_not_written_at_all(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a"), new_job("b"), new_job("c")])
    first, second = worker.claim(2)
    good = settlement(first, OK)
    impossible = type(good)(good.event, good.ending, attempts=-1, crashes=0)
    ends = [End(first, good, PID, 0, 0, 0, 0), End(second, impossible, PID, 0, 0, 0, 0)]
    with pytest.raises(errors.Unavailable):
        store.claims.exchange("w1", ends=ends, claim=worker.request(2))
    assert [job.state for job in store.jobs(descending=False)] == [State.PROCESSING, State.PROCESSING, State.PENDING]


def test_a_settled_run_counts_for_its_worker(store: Store, hire: Hire) -> None:
    store.enqueue([new_job() for _ in range(3)])
    busy, idle = hire("w1"), hire("w2")
    for claim in busy.claim(2):
        busy.end(claim)
    busy.end(unknown_claim("x"))
    idle.claim(1)
    assert {worker.id: (worker.jobs_done, worker.busy) for worker in store.workers()} == {"w1": (2, 0), "w2": (0, 1)}


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def stale_claims(store: Store, worker: Hands) -> dict[str, Claim]:
    """Outdated claims, each of a job that another worker has by now, or none."""
    store.enqueue([new_job("rescued"), new_job("settled"), new_job("released"), new_job("purged", max_retries=1)])
    claims = {claim.id: claim for claim in worker.claim(9)}
    worker.end(claims["settled"])
    worker.end(claims["purged"], BAD)
    store.purge(["purged"])
    worker.end(claims["released"], Released(None))
    store.claims.rescue("w1", max_crashes=9)
    return claims


@pytest.mark.parametrize("job_id", ["rescued", "settled", "released", "purged"])
@pytest.mark.parametrize("taken_again", [False, True])
def test_a_stale_token_can_neither_start_nor_settle(
    store: Store, worker: Hands, hire: Hire, backend: Backend, job_id: str, taken_again: bool
) -> None:
    stale = stale_claims(store, worker)[job_id]
    if taken_again:
        hire("w2").claim(9)
    before = backend.rows(), backend.rows("runs"), backend.rows("moves")
    store.claims.exchange("w1", starts=[Start(stale, 666, 0, 0)])
    for outcome in (OK, BAD, Signalled(9), Released(None), Cancelled(None)):
        exchange = worker.end(stale, outcome)
        assert exchange.settled == []
        assert [end.claim for end in exchange.lost] == [stale]
    assert (backend.rows(), backend.rows("runs"), backend.rows("moves")) == before


def test_the_same_end_told_twice_is_written_once(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    end = End(claim, settlement(claim), PID, 0, 0, 0, 0)
    exchange = store.claims.exchange("w1", ends=[end, end])
    assert ([told for told, _ in exchange.settled], exchange.lost) == ([end], [end])
    assert len(store.history("a")) == 1


def test_a_lost_end_does_not_keep_the_others_from_being_written(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    ends = [End(held, settlement(held), PID, 0, 0, 0, 0) for held in (unknown_claim("a", seq=claim.seq), claim)]
    exchange = store.claims.exchange("w1", ends=ends)
    assert [end.claim for end in exchange.lost] == [ends[0].claim]
    assert store.get("a").state is State.COMPLETED


def test_the_token_counts_and_not_the_name_of_the_worker(store: Store, worker: Hands, hire: Hire) -> None:
    """For adoption: any holder of the claim may settle the run."""
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    assert hire("w2").end(claim).lost == []
    assert store.get("a").state is State.COMPLETED


# ── a recorded cancel wins ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("outcome", [OK, BAD, Signalled(9), TimedOut(1, Exited(0)), Released(None), Cancelled(None)])
@pytest.mark.parametrize("max_retries", [0, 3])
def test_a_cancel_recorded_before_the_end_wins_and_does_not_count_as_an_attempt(
    store: Store, worker: Hands, outcome: Outcome, max_retries: int
) -> None:
    store.enqueue([new_job("a", max_retries=max_retries)])
    claim = worker.claim_one()
    store.cancel(["a"])
    exchange = worker.end(claim, outcome, duration=1.5, age=2)
    ((_, written),) = exchange.settled
    assert (written.state, written.ending) == (State.CANCELLED, Ending.CANCELLED)
    job, (run,) = store.get("a"), store.history("a")
    assert (job.state, job.attempts, job.crashes, job.error) == (State.CANCELLED, 0, 0, "cancelled")
    assert (run.outcome, run.duration_ms) == (Ending.CANCELLED, 1500)


def test_a_cancelled_run_shows_how_its_process_ended_but_never_a_zero(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("zero"), new_job("three"), new_job("killed")])
    outcomes: list[Outcome] = [Exited(0), Exited(3), Signalled(15)]
    for claim, outcome in zip(worker.claim(3), outcomes, strict=True):
        store.cancel([claim.id])
        worker.end(claim, outcome)
    shown = {job.id: (job.exit_code, job.signal) for job in store.jobs()}
    assert shown == {"zero": (None, None), "three": (3, None), "killed": (None, 15)}


def test_an_end_recorded_before_the_cancel_wins(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.run()
    assert store.cancel(["a"])["a"].before is State.COMPLETED
    assert store.get("a").state is State.COMPLETED


def test_a_holder_that_says_cancelled_is_believed(store: Store, worker: Hands) -> None:
    """With its own token: otherwise the job would stay in processing for ever."""
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    exchange = worker.end(claim, Cancelled(Signalled(15)))
    assert exchange.lost == []
    assert store.get("a").state is State.CANCELLED


def test_a_cancel_of_one_run_does_not_reach_the_next(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    store.cancel(["a"])
    worker.end(claim, Released(None))
    store.retry(["a"], states=frozenset({State.CANCELLED}))
    worker.run()
    assert store.get("a").state is State.COMPLETED


# ── a clock that steps back ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_clock_that_steps_back_never_shows_a_later_time_before_an_earlier_one(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job(job_id, max_retries=1) for job_id in ("done", "dead", "cancelled", "revived", "running")])
    clock.jump(-86_400)
    for claim in worker.claim(9):
        if claim.id == "running":
            worker.start(claim, age=1)
            continue
        if claim.id == "cancelled":
            store.cancel([claim.id])
        worker.end(claim, OK if claim.id == "done" else BAD, age=1, duration=0.5)
    clock.jump(-86_400)
    store.retry(["revived"], states=frozenset(State))
    store.cancel(["revived"])
    for job in store.jobs():
        assert job.started_at is not None
        assert job.created_at <= job.updated_at
        assert job.created_at <= job.started_at
        assert job.finished_at is None or job.started_at <= job.finished_at
        assert job.wait_ms is not None
        assert job.wait_ms >= 0
        for run in store.history(job.id):
            assert run.started_at is not None
            assert run.finished_at is None or run.started_at <= run.finished_at


def test_what_is_due_stays_due_when_the_clock_steps_back(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    clock.jump(-3600)
    assert worker.claim_one().id == "a"


# ── refused by a policy ─────────────────────────────────────────────────────────────────────────────────────────────

REFUSED = Refused("programs", "/bin/rm is not among them")


def test_a_refused_job_is_dead_at_once_and_has_not_run(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=3)])
    exchange = worker.end(worker.claim_one(), REFUSED)
    assert [written.state for _, written in exchange.settled] == [State.DEAD]
    job = store.get("a")
    assert (job.state, job.attempts, job.runs, job.crashes) == (State.DEAD, 0, 0, 0)
    assert job.error == "refused by policy: programs: /bin/rm is not among them"
    assert (job.started_at, job.duration_ms, job.wait_ms, job.log, job.exit_code) == (None, None, None, None, None)
    assert job.finished_at is not None
    assert store.history("a") == []
    assert store.tally()["default"][State.DEAD] == 1


def test_a_refusal_leaves_the_history_of_earlier_runs_as_it_was(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=3)])
    worker.end(worker.claim_one(), BAD)
    before = store.history("a")
    clock.advance(60)
    worker.end(worker.claim_one(), REFUSED)
    job = store.get("a")
    assert (job.state, job.attempts, job.runs) == (State.DEAD, 1, 1)
    assert store.history("a") == before
    assert job.started_at == before[0].started_at


def test_a_refused_job_can_be_given_another_chance(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.end(worker.claim_one(), REFUSED)
    store.retry(["a"], states=frozenset({State.DEAD}))
    job = store.get("a")
    assert (job.state, job.error, job.finished_at, job.runs) == (State.PENDING, None, None, 0)
    worker.end(worker.claim_one(), OK)
    assert [run.number for run in store.history("a")] == [1]


def test_a_cancel_that_came_before_the_refusal_wins(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    store.cancel(["a"])
    worker.end(claim, REFUSED)
    assert (store.get("a").state, len(store.history("a"))) == (State.CANCELLED, 1)


def test_a_refusal_is_in_the_audit_with_whose_worker_it_was(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    for claim, outcome in zip(worker.claim(2), (REFUSED, OK), strict=True):
        end = End(claim, settlement(claim, outcome), None, 0, 0, None, None, by=Actor(7, "me", "here", "queuectl"))
        store.claims.exchange(worker.name, ends=[end])
    (entry,) = (one for one in store.audit.entries() if one.action == "policy refuse")
    assert all(word in str(entry) for word in ('"a"', '"me"', "/bin/rm is not among them"))


def test_a_refusal_that_is_told_twice_is_written_once(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=3)])
    claim = worker.claim_one()
    worker.end(claim, REFUSED)
    worker.end(claim, REFUSED)
    assert (store.get("a").state, store.get("a").runs) == (State.DEAD, 0)


def test_a_refusal_without_the_token_changes_nothing(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    exchange = worker.end(claim._replace(token="another"), REFUSED)
    assert len(exchange.lost) == 1
    assert (store.get("a").state, store.get("a").runs) == (State.PROCESSING, 1)


# ── jobs that were given back before they began ─────────────────────────────────────────────────────────────────────────────

BACK = GivenBack("its worker had no slot for it")


def test_a_job_that_was_given_back_has_not_run(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    before = store.get("a").to_dict()
    worker.end(worker.claim_one(), BACK)
    after = store.get("a").to_dict()
    assert {name: value for name, value in after.items() if value != before[name]}.keys() <= {"updated_at"}
    assert list(store.history("a")) == []


def test_a_job_that_was_given_back_shows_its_run_before_again(
    store: Store, worker: Hands, hire: Hire, clock: FakeClock
) -> None:
    store.enqueue([new_job("a", backoff_base=1)])
    worker.run(BAD, duration=0.5)
    clock.advance(10)
    before, history = store.get("a"), list(store.history("a"))
    other = hire("w2")
    for _ in range(2):
        other.end(other.claim_one(), BACK)
    after = store.get("a")
    assert (after.state, after.runs, after.attempts) == (State.PENDING, 1, 1)
    assert (after.worker, after.exit_code, after.error) == ("w1", 3, before.error)
    assert (after.started_at, after.finished_at, after.duration_ms) == (
        before.started_at,
        before.finished_at,
        before.duration_ms,
    )
    assert list(store.history("a")) == history


def test_the_runs_of_a_job_that_was_given_back_are_numbered_without_a_gap(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job("a", backoff_base=1)])
    worker.run(BAD)
    clock.advance(10)
    worker.end(worker.claim_one(), BACK)
    assert worker.run().run == 2
    assert [(run.number, run.outcome) for run in store.history("a")] == [(1, Ending.FAILED), (2, Ending.COMPLETED)]


def test_a_cancel_that_came_before_a_job_was_given_back_wins(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    store.cancel(["a"])
    worker.end(claim, BACK)
    assert store.get("a").state is State.CANCELLED


def test_what_was_given_back_is_not_in_the_audit(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    end = End(claim, settlement(claim, BACK), None, 0, 0, None, None, by=Actor(7, "me", "here", "queuectl"))
    store.claims.exchange(worker.name, ends=[end])
    assert list(store.audit.entries(has="policy refuse")) == []
