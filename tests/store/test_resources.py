"""What a run may use is part of its job, and what it has used of its history, on every store."""

from __future__ import annotations

from queuectl.jobs.edit import JobEdit
from queuectl.jobs.resources import Usage
from queuectl.jobs.spec import NO_URLS
from queuectl.store.store import Store
from queuectl.store.types import End
from tests.factories import new_job, settlement
from tests.store.hands import BAD, PID, Hands

LIMITS = {"memory": 2**31, "cpu_time": 30, "nice": -5}
USAGE = Usage(12, 3, 2**40, 4096, 512)


def end(hands: Hands, *, usage: Usage | None, failed: bool = False) -> None:
    claim = hands.claim_one()
    done = settlement(claim, BAD) if failed else settlement(claim)
    hands.store.claims.exchange(hands.name, ends=[End(claim, done, PID, 1, 1, 0, 0, usage)])


def test_limits_come_with_the_claim_as_they_were_enqueued(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", limits=LIMITS), new_job("b")])
    assert (store.get("a").limits, store.get("b").limits) == (LIMITS, None)
    assert store.get("a").to_dict()["limits"] == LIMITS
    assert store.get("b").to_dict()["limits"] == {}
    assert [claim.limits for claim in worker.claim(2)] == [LIMITS, None]
    assert [claim.limits for claim in store.running("w1")] == [LIMITS, None]


def test_many_at_once_have_their_limits_each(store: Store) -> None:
    store.enqueue([new_job(f"j{n}", limits={"nice": n} if n else None) for n in range(5)])
    assert [store.get(f"j{n}").limits for n in range(3)] == [None, {"nice": 1}, {"nice": 2}]


def test_of_limits_each_that_is_named_changes_while_a_job_waits(store: Store) -> None:
    store.enqueue([new_job("a", limits=LIMITS), new_job("b")])
    store.edit(["a", "b"], JobEdit(limits={"memory": 2**20, "nice": None}))
    assert store.get("a").limits == {"memory": 2**20, "cpu_time": 30}
    assert store.get("b").limits == {"memory": 2**20}
    store.edit(["b"], JobEdit(priority=3))
    assert store.get("b").limits == {"memory": 2**20}
    store.edit(["b"], JobEdit(limits={"memory": None}))
    assert store.get("b").limits is None


def test_what_a_queue_says_of_limits_is_kept_each_for_itself(store: Store, other: Store) -> None:
    assert store.queues.set_rules("q", {"limits": {"memory": 2**30, "nice": 5}}).limits == {"memory": 2**30, "nice": 5}
    store.queues.set_rules("q", {"limits": {"nice": None}})
    store.queues.set_rules("q", {"priority": 3})
    assert other.queues.rules()["q"].limits == {"memory": 2**30}
    assert other.queue_defaults() == {"q": (3, None, None, NO_URLS, {"memory": 2**30})}
    store.queues.set_rules("q", {"limits": {"memory": None}, "priority": None})
    assert other.queues.rules() == {}


def test_what_each_run_has_used_is_in_its_history(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=9, backoff_base=1)])
    end(worker, usage=USAGE, failed=True)
    assert [run.usage for run in store.history("a")] == [USAGE]
    store.retry(["a"], states=frozenset({store.get("a").state}))
    assert [run.usage for run in store.history("a")] == [USAGE]
    claim = worker.claim_one()
    assert [run.usage for run in store.history("a")] == [USAGE, None], "of the one under way nothing is known"
    worker.end(claim)
    assert [run.usage for run in store.history("a")] == [USAGE, None]
    assert store.history("a")[0].to_dict()["max_rss_bytes"] == 2**40


def test_of_a_run_whose_worker_died_nothing_is_known(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    store.claims.rescue("w1", max_crashes=5)
    assert [run.usage for run in store.history("a")] == [None]
