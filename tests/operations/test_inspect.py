from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.errors import AmbiguousId, JobNotFound
from queuectl.operations.inspect import metrics, show, status
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.operations.life import KILLED, claim, end, enqueue, register, run

ALL_STATES = {"blocked", "pending", "processing", "failed", "completed", "dead", "cancelled"}


def anyone(_: object) -> bool:
    return True


def never_alive(_: object) -> bool:
    return False


def test_an_empty_store_has_a_full_status(store: Store) -> None:
    assert status(store, is_alive=anyone).to_dict() == {
        "total": 0,
        "states": dict.fromkeys(ALL_STATES, 0),
        "workers": {"live": 0, "slots": 0, "busy": 0},
        "queues": [],
        "oldest_waiting_ms": None,
    }


def test_status_counts_each_state_in_each_queue(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "done")
    run(store, home)
    enqueue(store, "running")
    claim(store, home)
    enqueue(store, "mail", queue="mail")
    enqueue(store, "later", delay_ms=60_000)
    clock.advance(3)
    shown = status(store, is_alive=anyone).to_dict()
    assert shown["total"] == 4
    assert shown["states"] == {**dict.fromkeys(ALL_STATES, 0), "completed": 1, "processing": 1, "pending": 2}
    assert shown["workers"] == {"live": 1, "slots": 1, "busy": 1}
    assert [(queue["name"], queue["paused"], queue["states"]["pending"]) for queue in shown["queues"]] == [
        ("default", False, 1),
        ("mail", False, 1),
    ]
    assert shown["oldest_waiting_ms"] == 3000


def test_a_dead_worker_is_not_counted(store: Store, home: Path) -> None:
    register(store, home)
    assert status(store, is_alive=never_alive).workers == (0, 0, 0)


def test_the_success_rate_is_that_of_completed_and_dead_jobs(store: Store, home: Path) -> None:
    assert metrics(store).to_dict()["success_rate"] is None
    register(store, home)
    for number in range(4):
        enqueue(store, f"j{number}")
    run(store, home)
    run(store, home)
    run(store, home, KILLED)
    store.cancel(["j3"])
    figures = metrics(store).to_dict()
    assert figures["success_rate"] == pytest.approx(2 / 3)
    assert figures["total"] == 4
    assert set(figures["queues"]["default"]) == ALL_STATES
    assert figures["duration_ms"] == {
        "count": 2,
        "avg": 250,
        "min": 250,
        "max": 250,
        "p50": 250,
        "p95": 250,
        "p99": 250,
    }
    assert set(figures["wait_ms"]) == set(figures["duration_ms"])
    assert figures["throughput"] == {"minute": 2, "hour": 2, "day": 2}


def test_metrics_of_an_empty_store_are_null(store: Store) -> None:
    figures = metrics(store).to_dict()
    assert figures["duration_ms"] == {"count": 0, **dict.fromkeys(("avg", "min", "max", "p50", "p95", "p99"))}
    assert figures["queues"] == {}


def test_a_job_that_never_ran_has_no_history_and_no_output(store: Store) -> None:
    enqueue(store, "alpha")
    shown = show(store, "al", host="here", output_limit=100)
    assert shown.job.id == "alpha"
    assert shown.to_dict()["history"] == []
    assert shown.to_dict()["output"] is None


def test_show_ends_with_the_last_bytes_of_the_last_run(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a", max_retries=3)
    log = home / "logs" / "a.log"
    held = claim(store, home)
    log.write_bytes(b"--- START x run=1 worker=w1 ---\nfirst\n--- END x rc=1 ---\n")
    end(store, held, KILLED, span=(32, 38))
    store.retry(["a"], states=frozenset({store.get("a").state}))
    held = claim(store, home)
    begin = log.stat().st_size + len(b"--- START x run=2 worker=w1 ---\n")
    with log.open("ab") as file:
        file.write(b"--- START x run=2 worker=w1 ---\nab\xffcd\n--- END x rc=0 ---\n")
    end(store, held, span=(begin, begin + 6))
    assert show(store, "a", host="here", output_limit=4).output == "\ufffdcd\n"
    assert show(store, "a", host="here", output_limit=1000).output == "ab\ufffdcd\n"
    assert [run["outcome"] for run in show(store, "a", host="here", output_limit=0).to_dict()["history"]] == [
        "signalled",
        "completed",
    ]


def test_values_of_the_environment_are_hidden_by_default(store: Store) -> None:
    enqueue(store, "a", env={"TOKEN": "secret"})
    shown = show(store, "a", host="here", output_limit=0)
    assert shown.to_dict()["env"] == {"TOKEN": "***"}
    assert shown.to_dict(show_env=True)["env"] == {"TOKEN": "secret"}


def test_an_id_may_be_a_prefix_and_last_is_the_newest_job(store: Store) -> None:
    for job_id in ("abc", "abd", "b"):
        enqueue(store, job_id)
    assert show(store, "last", host="here", output_limit=0).job.id == "b"
    with pytest.raises(AmbiguousId):
        show(store, "ab", host="here", output_limit=0)
    with pytest.raises(JobNotFound):
        show(store, "zzz", host="here", output_limit=0)
