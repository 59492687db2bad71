"""Webhooks: the end of a run becomes one delivery job, whatever ends the run."""

from __future__ import annotations

from typing import Any

import pytest

from queuectl.alerts.rules import Alert, AlertEvent, Kind, Notification
from queuectl.jobs.edit import JobEdit
from queuectl.jobs.model import Claim, Job, NewJob
from queuectl.jobs.outcome import Cancelled, Exited, Outcome, Released
from queuectl.jobs.states import State
from queuectl.store.alerts import notification_job
from queuectl.store.store import Store
from queuectl.store.types import Filter
from queuectl.store.webhook_outbox import DRAIN_ATTEMPTS, MAX_DELIVERIES_PER_STEP
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import ORIGIN_VARIABLE, URL_VARIABLE, WORKER_SLOTS
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands

HOOKS = {name: [f"https://example.org/{name}", "job"] for name in ("success", "failure", "dead")}


def telling(job_id: str, **fields: Any) -> NewJob:
    return new_job(job_id, **{"hooks": HOOKS, **fields})


def deliveries(store: Store) -> list[Job]:
    return list(store.jobs(Filter(queues=frozenset({WEBHOOK_QUEUE})), descending=False))


def told(store: Store) -> list[tuple[str, ...]]:
    """Of what jobs have been made that tell it."""
    while store.webhooks.enqueue():
        pass
    return sorted((job.argv or ())[1:] for job in deliveries(store))


@pytest.mark.parametrize(
    "outcome, max_retries, expected",
    [
        (Exited(0), 3, ["success"]),
        (BAD, 3, ["failure"]),
        (BAD, 1, ["dead", "failure"]),
        (Cancelled(None), 3, []),
        (Released(None), 3, []),
    ],
)
def test_an_end_is_told_to_those_who_asked(
    store: Store, worker: Hands, outcome: Outcome, max_retries: int, expected: list[str]
) -> None:
    store.enqueue([telling("a", max_retries=max_retries), new_job("quiet")])
    for claim in worker.claim(2):
        assert claim.hooks == (HOOKS if claim.id == "a" else None)
        worker.end(claim, outcome)
    assert told(store) == [(name, "a", "1") for name in expected]
    assert store.webhooks.enqueue() == 0


def test_a_delivery_is_a_job_without_webhooks(store: Store, worker: Hands) -> None:
    store.enqueue([telling("a")])
    worker.run()
    assert store.webhooks.enqueue() == 1
    (job,) = deliveries(store)
    assert (job.state, job.argv, job.tags) == (State.PENDING, ("queuectl:webhook", "success", "a", "1"), ("webhook",))
    assert (job.max_retries, job.timeout, job.cwd, job.hooks) == (10, 30, "/", None)
    assert job.env == {URL_VARIABLE: "https://example.org/success", ORIGIN_VARIABLE: "job"}
    assert set(job.to_dict()["env"].values()) == {"***"}
    assert store.tally()[WEBHOOK_QUEUE][State.PENDING] == 1


def test_each_run_that_fails_is_told_by_its_number(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([telling("a", max_retries=2)])
    for _ in range(2):
        worker.end(worker.claim_one(), BAD)
        clock.advance(3600)
    assert told(store) == [("dead", "a", "2"), ("failure", "a", "1"), ("failure", "a", "2")]


def test_a_cancel_that_was_first_is_not_told(store: Store, worker: Hands) -> None:
    store.enqueue([telling("a")])
    claim = worker.claim_one()
    store.cancel(["a"])
    worker.end(claim, BAD)
    assert told(store) == []


def test_an_end_that_does_not_count_has_no_delivery(store: Store, worker: Hands) -> None:
    store.enqueue([telling("a")])
    claim = worker.claim_one()
    store.claims.fence(worker.name)
    worker.end(claim, BAD)
    assert told(store) == []


def test_the_end_of_a_job_that_took_its_workers_with_it_is_told(store: Store, hire: Hire) -> None:
    store.enqueue([telling("a")])
    for name, crashes in (("w1", 5), ("w2", 2)):
        hands = hire(name)
        assert hands.claim_one().hooks == HOOKS
        store.claims.rescue(name, max_crashes=crashes)
    assert told(store) == [("dead", "a", "2")]


def test_of_one_call_two_who_look_make_one_job(store: Store, other: Store, worker: Hands) -> None:
    store.enqueue([telling(f"j{number}") for number in range(5)])
    for claim in worker.claim(5):
        worker.end(claim, Exited(0))
    assert store.webhooks.enqueue() + other.webhooks.enqueue() == 5
    assert len(told(store)) == 5


def test_more_calls_than_are_made_at_a_time_are_all_made(store: Store, worker: Hands) -> None:
    store.enqueue([telling(f"j{number}") for number in range(MAX_DELIVERIES_PER_STEP + 3)])
    for claim in worker.claim(MAX_DELIVERIES_PER_STEP + 3):
        worker.end(claim, Exited(0))
    assert [store.webhooks.enqueue() for _ in range(3)] == [MAX_DELIVERIES_PER_STEP, 3, 0]


def test_a_store_with_a_call_to_make_is_not_drained(store: Store, worker: Hands) -> None:
    store.enqueue([telling("a", queue="q")])
    worker.run()
    assert [store.is_drained(queues) for queues in (None, ("q",), ("q", WEBHOOK_QUEUE))] == [False, True, False]
    store.webhooks.enqueue()
    (call,) = worker.calls(1)
    worker.end(call)
    assert store.is_drained(None)


def test_a_failing_delivery_delays_a_drain_for_some_attempts_only(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([telling("a")])
    worker.run()
    store.webhooks.enqueue()
    drained = []
    for _ in range(DRAIN_ATTEMPTS + 1):
        (call,) = worker.calls(1)
        worker.end(call, BAD)
        drained.append(store.is_drained(None))
        clock.advance(3600)
    assert drained == [False] * (DRAIN_ATTEMPTS - 1) + [True, True]


def waiting(store: Store, worker: Hands, number: int, *, receiver: str = "") -> None:
    """This many deliveries that have not started: to one receiver, or to one each."""
    names = [receiver or f"r{at}.example.org" for at in range(number)]
    hooks = [{"success": [f"https://{name}/", "job"]} for name in names]
    store.enqueue([telling(f"told{at}{receiver}", hooks=hooks[at]) for at in range(number)])
    for claim in worker.claim(number):
        worker.end(claim)
    assert store.webhooks.enqueue() == number


def queues_of(worker: Hands, limit: int, calls: int) -> list[str]:
    found = worker.store.claims.exchange(worker.name, claim=worker.request(limit, calls=calls))
    return [claim.queue for claim in found.claims]


@pytest.mark.parametrize("queues", [None, ("default",)])
@pytest.mark.parametrize("is_limited", [False, True])
def test_calls_are_claimed_beside_jobs_and_never_in_their_place(
    store: Store, hire: Hire, queues: tuple[str, ...] | None, *, is_limited: bool
) -> None:
    worker = hire("w1", queues=queues)
    waiting(store, worker, 4)
    store.enqueue([new_job(f"j{number}") for number in range(6)])
    if is_limited:  # any queue that is makes claims go another way
        store.queues.set_rules("default", {"concurrency": 5})
    assert queues_of(worker, 2, 0) == ["default"] * 2
    assert queues_of(worker, 2, 1) == ["default"] * 2 + [WEBHOOK_QUEUE]
    assert queues_of(worker, 0, 2) == [WEBHOOK_QUEUE] * 2
    assert queues_of(worker, 9, 9) == ["default"] * (1 if is_limited else 2) + [WEBHOOK_QUEUE]


def test_a_worker_with_weights_makes_calls_beside(store: Store, worker: Hands) -> None:
    waiting(store, worker, 2)
    store.enqueue([new_job("a", queue="a"), new_job("b", queue="b")])
    request = worker.request(2, calls=1)._replace(queues=("a", "b"), shares=(1, 1))
    claims = store.claims.exchange(worker.name, claim=request).claims
    assert [claim.queue for claim in claims] == ["a", "b", WEBHOOK_QUEUE]


def test_who_was_given_the_queue_of_the_calls_gives_them_slots(store: Store, hire: Hire) -> None:
    worker = hire("w1", queues=(WEBHOOK_QUEUE, "default"))
    waiting(store, worker, 3)
    store.enqueue([new_job("a")])
    assert queues_of(worker, 4, 0) == [WEBHOOK_QUEUE] * 3 + ["default"]


def receivers(claims: list[Claim]) -> list[str]:
    return [(claim.env or {})[URL_VARIABLE].removeprefix("https://").strip("/") for claim in claims]


def test_one_receiver_takes_a_quarter_of_the_slots_for_deliveries(store: Store, worker: Hands) -> None:
    waiting(store, worker, 12, receiver="silent")
    waiting(store, worker, 1, receiver="other")
    claims = worker.calls(WORKER_SLOTS)
    assert receivers(claims) == ["silent"] * (WORKER_SLOTS // 4) + ["other"]
    assert worker.calls(WORKER_SLOTS) == []
    worker.end(claims[0], BAD)
    assert receivers(worker.calls(WORKER_SLOTS)) == ["silent"]


def test_more_slots_of_workers_for_deliveries_are_more_for_each_receiver(store: Store, hire: Hire) -> None:
    worker = hire("w1")
    hire("w2", queues=(WEBHOOK_QUEUE,), slots=24)
    waiting(store, worker, 12, receiver="one")
    assert receivers(worker.calls(32)) == ["one"] * 8


def test_ports_of_a_host_are_different_receivers(store: Store, worker: Hands) -> None:
    waiting(store, worker, 4, receiver="host:1000")
    waiting(store, worker, 4, receiver="host:2000")
    assert receivers(worker.calls(WORKER_SLOTS)) == ["host:1000"] * 2 + ["host:2000"] * 2


def test_an_alert_is_delivered_before_the_webhooks_of_jobs(store: Store, worker: Hands) -> None:
    waiting(store, worker, 3)
    alert = Alert("a", Kind.DEAD, 1, None, None, 0, None, "https://pager.example.org/", None, "/", 1)
    store.alerts.add(alert)
    assert store.alerts.update(alert, [notification_job(alert, Notification("told", AlertEvent.FIRING, 1, 1))])
    assert receivers(worker.calls(1)) == ["pager.example.org"]


def test_the_rules_of_the_queue_hold_for_calls(store: Store, worker: Hands) -> None:
    waiting(store, worker, 3)
    store.queues.set_rules(WEBHOOK_QUEUE, {"paused": True})
    assert queues_of(worker, 1, 3) == []
    store.queues.set_rules(WEBHOOK_QUEUE, {"paused": False, "concurrency": 2})
    assert queues_of(worker, 1, 3) == [WEBHOOK_QUEUE] * 2


def test_of_calls_and_of_jobs_it_is_said_whether_there_may_be_more(store: Store, worker: Hands) -> None:
    waiting(store, worker, 2)
    store.enqueue([new_job("a")])
    answers = [store.claims.exchange(worker.name, claim=worker.request(2, calls=1)) for _ in range(3)]
    assert [(answer.more, answer.more_webhooks) for answer in answers] == [(False, True), (False, True), (False, False)]
    store.enqueue([new_job("b")])
    answer = store.claims.exchange(worker.name, claim=worker.request(1, calls=1))
    assert (answer.more, answer.more_webhooks) == (True, False)


def test_the_job_enqueued_last_is_one_of_a_user(store: Store, worker: Hands) -> None:
    waiting(store, worker, 1)
    assert store.resolve("last") == "told0"


def test_a_reset_empties_the_webhook_outbox(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([telling("a")])
    worker.run()
    assert len(backend.rows("webhook_outbox")) == 1
    store.reset()
    assert backend.rows("webhook_outbox") == []
    assert store.webhooks.enqueue() == 0


def test_the_hooks_of_a_job_are_part_of_it(store: Store) -> None:
    store.enqueue([telling("a"), new_job("b")])
    assert (store.get("a").hooks, store.get("b").hooks) == (HOOKS, None)


def test_the_webhooks_of_a_job_can_be_changed_while_it_waits(store: Store, worker: Hands) -> None:
    store.enqueue([telling("a"), new_job("b")])
    url = ["https://example.org/new", "job"]
    store.edit(["a", "b"], JobEdit(hooks={"dead": url, "success": None}))
    assert store.get("a").hooks == {"failure": HOOKS["failure"], "dead": url}
    assert store.get("b").hooks == {"dead": url}
    store.edit(["a"], JobEdit(priority=3))
    assert store.get("a").hooks == {"failure": HOOKS["failure"], "dead": url}
    store.edit(["b"], JobEdit(hooks={"dead": None}))
    assert store.get("b").hooks is None


def test_lists_and_counts_have_calls_in_them_only_if_that_is_asked(store: Store, worker: Hands) -> None:
    waiting(store, worker, 2)
    for where, found in (
        (Filter(), 4),
        (Filter(includes_webhooks=False), 2),
        (Filter(queues=frozenset({WEBHOOK_QUEUE})), 2),
    ):
        assert (store.count(where), len(list(store.jobs(where))), len(store.choose(where))) == (found,) * 3
    assert store.count(Filter(match=("queuectl:webhook",), includes_webhooks=False)) == 0


def test_a_call_takes_a_slot_only_of_who_was_given_its_queue(store: Store, hire: Hire) -> None:
    every, named = hire("w1"), hire("w2", queues=(WEBHOOK_QUEUE,))
    waiting(store, every, 3)
    assert len(every.calls(1)) == len(named.claim(2)) - 1 == 1
    assert {worker.id: worker.busy for worker in store.workers()} == {"w1": 0, "w2": 2}


def test_what_a_queue_says_is_kept_until_it_is_taken_away(store: Store, other: Store) -> None:
    url = "https://example.org/q"
    assert store.queues.set_rules("q", {"on_dead": url, "on_success": url}).on_dead == url
    assert other.queue_defaults() == {"q": (None, None, None, (url, None, url), None)}
    store.queues.set_rules("q", {"on_dead": None, "on_success": None})
    assert other.queues.rules() == {}


def test_every_worker_serves_webhooks(store: Store, hire: Hire, worker: Hands) -> None:
    store.enqueue([telling("a")])
    worker.run()
    store.webhooks.enqueue()
    store.claims.retire(worker.name)
    hire("w9", queues=("mail",))
    (job,) = deliveries(store)
    assert job.reason is None or "no worker" not in job.reason
