"""Any sequence of verbs, against a tiny model: after every step the store and the model show the same."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from queuectl import errors
from queuectl.errors import KeyTaken
from queuectl.jobs.edit import JobEdit
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Ending, Exited, Outcome, Released, Signalled
from queuectl.jobs.states import State
from queuectl.store.types import ClaimRequest, Filter
from tests.factories import new_job
from tests.needs import FULL
from tests.store.backends import BACKENDS
from tests.store.invariants import histories
from tests.store.machine import StoreMachine, play
from tests.store.model import ENQUEUES, OFF, Model, ModelJob, Refused, Wish

QUEUES = ("a", "b")
TAGS = ("s", "t")
AGEINGS = {"off": OFF, "enqueues": ENQUEUES, "1s": 1000, "7s": 7000}
ANY = frozenset(State)

NEW_JOBS = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "priority": st.integers(-3, 3),
        "max_retries": st.integers(0, 3),
        "delay_ms": st.none() | st.integers(0, 5000),
        "id": st.none() | st.sampled_from("xyz"),
        "tags": st.sets(st.sampled_from(TAGS)).map(lambda tags: tuple(sorted(tags))),
        "unique_key": st.sampled_from([None, None, "k", "l"]),
        "if_exists": st.sampled_from([None, "skip", "error", "replace"]),
        "unique_for_ms": st.none() | st.integers(0, 20_000),
        "key": st.sampled_from([None, "m", "n"]),
    }
)
OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from([Exited(0), Exited(3), Signalled(9), Released(None)])
CHANGES = st.fixed_dictionaries(
    {
        "queue": st.none() | st.sampled_from(QUEUES),
        "priority": st.none() | st.integers(-3, 3),
        "max_retries": st.none() | st.integers(0, 3),
        "delay_ms": st.none() | st.integers(0, 5000),
        "held": st.none() | st.booleans(),
    }
).map(lambda fields: JobEdit(**fields))
WORKERS = st.sampled_from(["w1", "w2"])


class StoreAgainstModel(StoreMachine):
    @initialize(ageing=st.sampled_from(list(AGEINGS)))
    def begin(self, ageing: str) -> None:
        self.open("w1", "w2")
        self.model = Model()
        self.model.now = self.clock.now_ms()
        self.enqueued = 0
        self.stale: list[Claim] = []
        self.age(ageing)

    # ── what can happen ─────────────────────────────────────────────────────────────────────────────────────────────

    @rule(batch=st.lists(NEW_JOBS, min_size=1, max_size=3))
    def enqueue(self, batch: list[dict[str, Any]]) -> None:
        # Generated IDs are not known before: the model generates its own, and is told the real one.
        jobs = [new_job(fields["id"], **{**fields, "id": fields["id"]}) for fields in batch]
        wishes = [self.wish(fields, place) for place, fields in enumerate(batch)]
        before = deepcopy(self.model)
        try:
            expected = self.model.enqueue(wishes)
        except Refused:
            self.model = before
            with pytest.raises((errors.DuplicateId, KeyTaken)):
                self.store.enqueue(jobs)
            return
        ids = self.store.enqueue(jobs)
        really = {made: job_id for (made, was_there), job_id in zip(expected, ids, strict=True) if not was_there}
        assert ids == [really.get(job_id, job_id) for job_id, _ in expected]
        assert ids.duplicates == {place for place, (_, was_there) in enumerate(expected) if was_there}
        for job in self.model.jobs.values():
            job.id = really.get(job.id, job.id)
        self.model.jobs = {job.id: job for job in self.model.jobs.values()}
        self.enqueued += len(really)

    def wish(self, fields: dict[str, Any], place: int) -> Wish:
        due = self.model.now + (fields["delay_ms"] or 0)
        job = ModelJob(
            fields["id"] or f"made-{place}",
            fields["queue"],
            fields["priority"],
            fields["max_retries"],
            run_at=due,
            tags=frozenset(fields["tags"]),
            first_due=due,
            let_in=not fields["delay_ms"],
            key=fields["unique_key"],
            created=self.model.now,
            concurrency_key=fields["key"],
        )
        return Wish(job, fields["if_exists"], fields["unique_for_ms"])

    @rule(worker=WORKERS, limit=st.integers(0, 3), queues=st.none() | st.permutations(QUEUES).map(tuple))
    def claim(self, worker: str, limit: int, queues: tuple[str, ...] | None) -> None:
        request = ClaimRequest(limit, queues, "here", "/logs")
        claims = self.store.claims.exchange(worker, claim=request).claims
        assert [claim.id for claim in claims] == self.model.claim(worker, limit, queues)
        assert [claim.run for claim in claims] == [self.model.jobs[claim.id].runs for claim in claims]
        self.held += claims

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=OUTCOMES, worker=WORKERS)
    def settle(self, data: st.DataObject, outcome: Outcome, worker: str) -> None:
        claim = data.draw(st.sampled_from(self.held), label="held claim")
        self.model.end(self.model.jobs[claim.id], outcome)
        self.model.let_in()
        exchange = self.hands[worker].end(claim, outcome)
        assert [written.state for _, written in exchange.settled] == [self.model.jobs[claim.id].state]
        self.put_away([claim])

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), outcome=OUTCOMES)
    def settle_what_is_lost(self, data: st.DataObject, outcome: Outcome) -> None:
        claim = data.draw(st.sampled_from(self.stale), label="stale claim")
        self.model.let_in()
        self.hands["w1"].start(claim)
        assert [end.claim for end in self.hands["w1"].end(claim, outcome).lost] == [claim]

    @rule(worker=WORKERS, max_crashes=st.integers(1, 3))
    def lose(self, worker: str, max_crashes: int) -> None:
        holding = self.store.running(worker)
        assert {claim.id for claim in holding} == {
            job.id for job in self.model.jobs.values() if job.state is State.PROCESSING and job.worker == worker
        }
        assert [lost.claim for lost in self.store.claims.rescue(worker, max_crashes=max_crashes)] == holding
        self.model.lose(worker, max_crashes)
        self.put_away(holding)
        self.hands[worker].wakeup.close()
        self.hands[worker] = self.hire(worker)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.draw_job(data)
        assert self.store.cancel([job.id])[job.id].before is job.state
        self.model.cancel(job)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def revive(self, data: st.DataObject) -> None:
        job = self.draw_job(data)
        before = job.state
        self.model.retry(job)
        revived = self.store.retry([job.id], states=ANY)
        assert revived == {job.id: before}
        if before in {State.DEAD, State.CANCELLED}:
            assert bool(revived.taken) == (job.state is before)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        job = self.draw_job(data)
        assert self.store.purge([job.id])[job.id][0] is job.state
        self.model.purge(job)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), change=CHANGES)
    def amend(self, data: st.DataObject, change: JobEdit) -> None:
        job = self.draw_job(data)
        assert self.store.edit([job.id], change) == {job.id: (job.state, False)}
        self.model.edit(job, change)

    @rule(seconds=st.integers(0, 10))
    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.model.now = self.clock.now_ms()

    @rule(seconds=st.integers(-10, -1))
    def step_back(self, seconds: int) -> None:
        self.clock.jump(seconds)
        self.model.now = self.clock.now_ms()

    @rule(ageing=st.sampled_from(list(AGEINGS)))
    def age(self, ageing: str) -> None:
        self.store.set_config({"ageing": ageing})
        self.model.ageing = AGEINGS[ageing]

    @rule(
        queue=st.sampled_from(QUEUES),
        paused=st.booleans(),
        most=st.none() | st.integers(1, 2),
        per_key=st.none() | st.integers(1, 2),
    )
    def limit(self, queue: str, paused: bool, most: int | None, per_key: int | None) -> None:
        self.store.queues.set_rules(queue, {"paused": paused, "concurrency": most, "per_key": per_key})
        self.model.rule(queue, paused=paused, most=most, per_key=per_key)

    @rule(queues=st.permutations(QUEUES))
    def move(self, queues: list[str]) -> None:
        assert list(self.store.move(queues[0], queues[1])) == self.model.move(queues[0], queues[1])

    # ── what must be so ─────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def they_show_the_same_jobs(self) -> None:
        shown = [
            (
                (job.id, job.state, job.queue, job.held, job.effective_priority),
                (job.attempts, job.crashes, job.runs, frozenset(job.tags)),
            )
            for job in self.store.jobs(descending=False, limit=500)
        ]
        expected = [
            (
                (job.id, job.state, job.queue, job.held, self.model.effective_priority(job)),
                (job.attempts, job.crashes, job.runs, job.tags),
            )
            for job in self.model.jobs.values()
        ]
        assert shown == expected

    @invariant()
    def they_count_the_same(self) -> None:
        assert self.store.tally() == self.model.tally()
        assert sum(of["enqueued"] for of in self.store.totals().values()) == self.enqueued
        assert self.store.is_drained(None) == self.model.is_drained()
        for tag in TAGS:
            tagged = sum(tag in job.tags for job in self.model.jobs.values())
            assert self.store.count(Filter(tags=frozenset({tag}))) == tagged

    @invariant()
    def they_remember_the_same_runs(self) -> None:
        shown = histories(self.store, self.backend)
        for job in self.model.jobs.values():
            live = [Ending.RUNNING] if job.state is State.PROCESSING else []
            assert [run.outcome for run in shown[job.id]] == job.endings + live

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw_job(self, data: st.DataObject) -> ModelJob:
        return self.model.jobs[data.draw(st.sampled_from(list(self.model.jobs)), label="job")]

    def put_away(self, claims: list[Claim]) -> None:
        # By token: the log of a claim that is read again is in the data directory of its worker.
        tokens = {claim.token for claim in claims}
        self.held = [claim for claim in self.held if claim.token not in tokens]
        self.stale += claims


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend_name", BACKENDS)
def test_the_store_and_the_model_never_disagree(backend_name: str) -> None:
    examples = 50 if FULL or backend_name == "sqlite" else 14  # there a step takes ten times as long
    play(StoreAgainstModel, backend_name, examples=examples, steps=40)
