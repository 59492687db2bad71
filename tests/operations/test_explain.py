"""Explanations of waiting, running and ended jobs, on every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl.errors import JobNotFound
from queuectl.jobs.model import Worker
from queuectl.jobs.queue_limits import Rate
from queuectl.jobs.states import State
from queuectl.operations.explain import MAX_COUNTED_AHEAD, explain, with_reason
from queuectl.store.store import Store
from tests import postgres
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import BACKENDS, Backend
from tests.store.hands import BAD, OK, PID, Hands
from tests.swift import swift_folder

Hire = Callable[..., Hands]


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    postgres.stop_server()


@pytest.fixture
def home() -> Iterator[Path]:
    with swift_folder() as folder:
        yield Path(folder) / "home"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, home: Path) -> Iterator[Backend]:
    made = BACKENDS[request.param](home)
    yield made
    made.close()


@pytest.fixture
def store(backend: Backend, clock: FakeClock) -> Iterator[Store]:
    opened = backend.open(clock)
    yield opened
    opened.close()


@pytest.fixture
def hire(store: Store, backend: Backend) -> Iterator[Hire]:
    hired: list[Hands] = []

    def hire(name: str = "ada", *, queues: tuple[str, ...] | None = None, slots: int = 1) -> Hands:
        hired.append(Hands(store, backend.home, name=name, queues=queues, slots=slots))
        return hired[-1]

    yield hire
    for hands in hired:
        hands.wakeup.close()


def reasons(store: Store, ref: str = "me", *, dead: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The reasons of `explain --json`; the first is also that of `show`."""

    def is_alive(worker: Worker) -> bool:
        return worker.id not in dead

    told = explain(store, ref, is_alive=is_alive)
    alive = [worker for worker in store.workers() if is_alive(worker)]
    line = with_reason(told.job, alive, store.now_ms(), load=store.queues.loads().get(told.job.queue)).reason
    found = told.to_dict()["reasons"]
    assert isinstance(found, list)
    assert BRIEFLY.get(found[0]["code"], "") in (line or "")
    assert all(reason["message"].endswith(".") for reason in found)
    return found


BRIEFLY = {
    "blocked": "waits for other jobs",
    "held": "held",
    "retry-not-due": "retry at ",
    "not-due": "not due until ",
    "no-worker": "no live worker",
    "queue-not-served": "no live worker",
    "queue-paused": "queue paused",
    "queue-full": "limit of the queue reached: ",
    "queue-rate": "rate of the queue reached: next at ",
    "slots-busy": "waits for a free slot",
    "behind-others": "waits for a free slot",
    "next": "waits for a free slot",
}


def codes(store: Store, ref: str = "me", **rest: Any) -> list[str]:
    return [reason["code"] for reason in reasons(store, ref, **rest)]


def test_a_job_of_a_paused_queue_is_explained_with_how_to_resume_it(store: Store) -> None:
    store.enqueue([new_job("me", queue="mail")])
    store.queues.set_rules("mail", {"paused": True, "concurrency": 1})
    paused, unserved = reasons(store)
    assert paused == {
        "code": "queue-paused",
        "message": "Its queue 'mail' is paused: queuectl queue resume mail continues it.",
        "queue": "mail",
    }
    assert unserved["code"] == "no-worker"


def test_a_job_that_waits_for_limits_of_its_queue_is_explained_with_them(store: Store, hire: Hire) -> None:
    hands = hire()
    store.enqueue([new_job("first", queue="mail"), new_job("me", queue="mail")])
    store.queues.set_rules("mail", {"concurrency": 1, "rate": Rate(1, 60_000)})
    hands.start(hands.claim_one())
    full, rate = reasons(store)
    assert full["message"] == "Its queue 'mail' is at its concurrency limit: 1 of 1 jobs are running."
    assert (full["code"], full["concurrency"], full["running"]) == ("queue-full", 1, 1)
    assert (rate["code"], rate["rate"]) == ("queue-rate", "1/m")
    assert rate["opens_at"] in rate["message"]


# ── it waits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_delayed_job_is_not_due(store: Store, hire: Hire, clock: FakeClock) -> None:
    hire()
    store.enqueue([new_job("me", delay_ms=90_500)])
    run_at = store.get("me").to_dict()["run_at"]
    assert reasons(store) == [
        {
            "code": "not-due",
            "message": f"It is not due until {run_at}, in 1m30s.",
            "run_at": run_at,
            "due_in_ms": 90_500,
        }
    ]
    clock.advance(91)
    assert codes(store) == ["next"]


def test_a_failed_job_is_explained_with_its_next_attempt_and_its_error(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("me", max_retries=3)])
    hire().run(BAD)
    run_at = store.get("me").to_dict()["run_at"]
    (found,) = reasons(store)
    assert found == {
        "code": "retry-not-due",
        "message": f"It waits for a retry: run 1 failed (exit code 3). Attempt 2 of 3 is due at {run_at}, in 2s.",
        "run_at": run_at,
        "due_in_ms": 2000,
        "attempt": 2,
        "allowed": 3,
        "error": "exit code 3",
        "last_output": None,
    }


def test_all_reasons_are_given_and_the_decisive_one_is_first(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("me", delay_ms=1000)])
    backend.force("me", held=1)
    assert codes(store) == ["held", "not-due", "no-worker"]


def test_a_blocked_job_waits_for_others(store: Store, hire: Hire, backend: Backend) -> None:
    hire()
    store.enqueue([new_job("me")])
    backend.force("me", state=State.BLOCKED, ready=0)
    assert codes(store) == ["blocked"]


def test_without_a_live_worker_it_says_how_to_start_one(store: Store, hire: Hire) -> None:
    hire("ada")
    store.enqueue([new_job("me", queue="mail")])
    found, _ = reasons(store, dead=("ada",))
    assert found["code"] == "no-worker"
    assert found["message"] == "No worker is running for its queue 'mail': queuectl worker start."
    assert (found["queue"], found["workers"]) == ("mail", [])


def test_for_a_queue_without_workers_it_names_the_live_workers_and_their_queues(store: Store, hire: Hire) -> None:
    hire("ada", queues=("default", "video"))
    hire("bee")
    store.claims.heartbeat("bee", slots=1, stopping=True)
    store.enqueue([new_job("me", queue="mail")])
    found, _ = reasons(store)
    assert found["message"] == (
        "No running worker serves its queue 'mail' (ada serves default, video; bee serves all queues but is stopping): "
        "queuectl worker start --queue mail."
    )
    assert found["workers"] == [
        {"id": "ada", "state": "running", "slots": 1, "busy": 0, "queues": ["default", "video"]},
        {"id": "bee", "state": "stopping", "slots": 1, "busy": 0, "queues": None},
    ]


def test_many_workers_are_not_all_named(store: Store, hire: Hire) -> None:
    for number in range(8):
        hire(f"w{number}", queues=("default",))
    store.enqueue([new_job("me", queue="mail")])
    found, _ = reasons(store)
    assert "w4 serves default and 3 more)" in found["message"]
    assert len(found["workers"]) == 8


def test_busy_slots_are_counted_over_the_workers_that_serve_its_queue(store: Store, hire: Hire) -> None:
    store.enqueue([new_job() for _ in range(3)])
    hire("ada", slots=2).claim(2)
    hire("bee", queues=("default",)).claim(1)
    hire("eve", queues=("video",))
    store.enqueue([new_job("me")])
    (found,) = reasons(store)
    assert found["code"] == "slots-busy"
    assert found["message"] == "All 3 slots that serve its queue 'default' are busy (ada 2 of 2, bee 1 of 1)."
    assert (found["slots"], found["busy"]) == (3, 3)


def test_the_jobs_ahead_in_the_queue_are_counted(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("runs"), new_job(priority=-1), new_job(), new_job(priority=9), new_job("me")])
    hire().run()
    hire().claim(1)
    busy, behind = reasons(store)
    assert busy["message"] == "The only slot that serves its queue 'default' is busy (ada 1 of 1)."
    assert behind == {
        "code": "behind-others",
        "message": "One job is ahead of it.",
        "ahead": 1,
        "more": False,
    }


@pytest.mark.parametrize("dead", [(), ("ada",)], ids=["no-worker", "a-dead-worker"])
def test_the_position_in_the_queue_is_given_without_a_live_worker(
    store: Store, hire: Hire, dead: tuple[str, ...]
) -> None:
    if dead:
        hire("ada")
    store.enqueue([new_job(), new_job(queue="other"), new_job(), new_job("me"), new_job(priority=5), new_job()])
    unserved, behind = reasons(store, dead=dead)
    assert unserved["code"] == "no-worker"
    assert behind == {"code": "behind-others", "message": "3 jobs are ahead of it.", "ahead": 3, "more": False}


def test_the_first_job_of_an_unserved_queue_is_reported_as_first(store: Store, hire: Hire) -> None:
    hire("ada", queues=("other",))
    store.enqueue([new_job("me"), new_job()])
    unserved, first = reasons(store)
    assert unserved["code"] == "queue-not-served"
    assert first == {"code": "first", "message": "It is first in its queue.", "ahead": 0}


def test_the_smallest_number_of_jobs_ahead_counts(store: Store, hire: Hire) -> None:
    hire("ada")
    hire("bee", queues=("first", "own"))
    hire("eve", queues=("own", "first"))
    store.enqueue([new_job(queue="first", priority=9) for _ in range(3)])
    store.enqueue([new_job(queue="own"), new_job("me", queue="own")])
    assert reasons(store)[0]["ahead"] == 1


def test_jobs_ahead_are_counted_up_to_a_maximum(store: Store, hire: Hire) -> None:
    hire()
    store.enqueue([new_job() for _ in range(MAX_COUNTED_AHEAD + 1)])
    store.enqueue([new_job("me")])
    (found,) = reasons(store)
    assert found["message"] == "More than 10,000 jobs are ahead of it."
    assert (found["ahead"], found["more"]) == (10_000, True)


def test_a_job_that_could_run_now_is_next(store: Store, hire: Hire) -> None:
    hire(slots=2)
    store.enqueue([new_job("me")])
    (found,) = reasons(store)
    assert found["code"] == "next"
    assert (found["slots"], found["busy"]) == (2, 0)


# ── it runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_running_job_is_explained_with_its_start_worker_and_remaining_time(
    store: Store, hire: Hire, clock: FakeClock
) -> None:
    store.enqueue([new_job("me", timeout_ms=90_000)])
    worker = hire()
    worker.start(worker.claim_one())
    started_at = store.history("me")[0].to_dict()["started_at"]
    clock.advance(20)
    assert reasons(store) == [
        {
            "code": "running",
            "message": f"Running for 20s on worker ada at here (run 1, PID {PID}), since {started_at}."
            " 1m10s of its timeout of 1m30s are left.",
            "run": 1,
            "worker": "ada",
            "host": "here",
            "pid": PID,
            "started_at": started_at,
            "running_ms": 20_000,
            "timeout_left_ms": 70_000,
        }
    ]
    clock.advance(200)
    assert reasons(store)[0]["timeout_left_ms"] == 0


def test_a_run_that_has_not_started_has_no_pid(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("me")])
    hire().claim_one()
    (found,) = reasons(store)
    assert (found["pid"], found["timeout_left_ms"]) == (None, None)
    assert " on worker ada at here (run 1), since " in found["message"]


def test_a_pending_cancel_is_the_first_reason(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("me")])
    hire().claim_one()
    store.cancel(["me"])
    assert codes(store) == ["being-cancelled", "running"]


def test_a_job_of_a_dead_worker_is_explained_with_its_rescue(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("me")])
    hire().claim_one()
    lost, _ = reasons(store, dead=("ada",))
    assert (lost["code"], lost["worker"]) == ("worker-lost", "ada")
    assert "queuectl doctor --fix" in lost["message"]


# ── it has ended ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_completed_job_is_explained_with_its_end_and_its_log(store: Store, hire: Hire, clock: FakeClock) -> None:
    store.enqueue([new_job("me")])
    hire().run(OK, duration=2.5)
    at = store.get("me").to_dict()["finished_at"]
    clock.advance(3 * 86_400 + 3600 + 7)
    (found,) = reasons(store)
    assert found["message"] == (f"It completed after 2.5s, at {at}, 3d1h ago. queuectl logs me shows what it printed.")
    assert (found["code"], found["finished_at"], found["retry"]) == ("completed", at, None)


def test_a_dead_job_is_explained_with_its_error_and_how_to_retry_it(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("me", max_retries=1)])
    hire().run(BAD)
    (found,) = reasons(store)
    assert "1 of 1 runs failed, the last with exit code 3." in found["message"]
    assert (found["code"], found["retry"], found["exit_code"]) == ("dead", "queuectl dlq retry me", 3)


def test_a_job_that_crashed_its_workers_is_explained(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("me")])
    hire().claim_one()
    store.claims.rescue("ada", max_crashes=1)
    (found,) = reasons(store)
    assert "1 worker died with it, as many as max-crashes allows." in found["message"]


def test_a_cancelled_job_that_never_ran_has_no_log_to_show(store: Store) -> None:
    store.enqueue([new_job("me")])
    store.cancel(["me"])
    (found,) = reasons(store)
    assert found["code"] == "cancelled"
    assert found["message"].endswith("queuectl retry me runs it again.")


def test_a_missing_job_is_not_explained(store: Store) -> None:
    with pytest.raises(JobNotFound):
        explain(store, "missing", is_alive=lambda _: True)
