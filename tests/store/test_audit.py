"""The audit log: every change by a user is recorded in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from queuectl.alerts.operations import AlertRequest
from queuectl.alerts.operations import parse_alert as read_alert
from queuectl.errors import QueuectlError
from queuectl.jobs.audit import Act, Actor, Entry
from queuectl.jobs.edit import HOLD, JobEdit
from queuectl.jobs.queue_limits import Rate
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import StopMode
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.crowd import at_once
from tests.store.hands import BAD, Hands
from tests.store.test_schedules import schedule

ALICE = Actor(1000, "alice", "box", "queuectl")
DEAD = frozenset({State.DEAD})


@pytest.fixture
def audited(store: Store) -> Store:
    store.actor = ALICE
    return store


def recorded(store: Store) -> list[dict[str, Any]]:
    return [parsed(entry) for entry in store.audit.entries()]


def parsed(entry: Entry) -> dict[str, Any]:
    json_fields = {
        "who": entry.actor,
        "subjects": entry.targets,
        "before": entry.before or "null",
        "after": entry.after or "null",
    }
    return {"what": entry.action, **{name: json.loads(text) for name, text in json_fields.items()}}


def last(store: Store) -> dict[str, Any]:
    return recorded(store)[-1]


def test_nothing_is_recorded_without_an_actor(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    worker.run()
    store.cancel(["b"])
    assert recorded(store) == []


def test_enqueued_jobs_are_recorded_without_their_environment(audited: Store) -> None:
    audited.enqueue([new_job("a", command="echo hi", env={"SECRET": "swordfish"})])
    said = last(audited)
    assert (said["what"], said["subjects"]) == ("enqueue", ["a"])
    assert said["who"] == ALICE._asdict()
    assert said["after"]["jobs"][0]["command"] == "echo hi"
    assert "swordfish" not in json.dumps(said)


def test_many_jobs_are_one_record_with_all_their_ids(audited: Store) -> None:
    ids = audited.enqueue([new_job() for _ in range(300)])
    (said,) = recorded(audited)
    assert said["subjects"] == ids
    assert said["after"] == {"queues": {"default": 300}}


def test_a_refused_change_is_not_recorded(audited: Store) -> None:
    audited.enqueue([new_job("a")])
    with pytest.raises(QueuectlError):
        audited.enqueue([new_job("b"), new_job("a")])
    assert [said["subjects"] for said in recorded(audited)] == [["a"]]


def test_a_duplicate_of_a_unique_job_is_not_recorded(audited: Store) -> None:
    audited.enqueue([new_job("a", unique_key="k")])
    audited.enqueue([new_job(unique_key="k")])
    assert len(recorded(audited)) == 1


@pytest.mark.parametrize(
    "do, what, before, after",
    [
        (lambda store: store.cancel(["a", "gone"]), "cancel", {"state": "pending"}, None),
        (lambda store: store.edit(["a"], HOLD), "hold", {"held": False}, {"held": True}),
        (lambda store: store.edit(["a"], JobEdit(priority=7)), "edit", {"priority": 0}, {"priority": 7}),
        (lambda store: store.move("default", "mail"), "queue move", {"queue": "default"}, {"queue": "mail"}),
    ],
)
def test_a_change_to_a_job_is_recorded_with_the_values_before(
    audited: Store, do: Callable[[Store], object], what: str, before: object, after: object
) -> None:
    audited.enqueue([new_job("a")])
    do(audited)
    said = last(audited)
    assert (said["what"], said["subjects"], said["before"], said["after"]) == (what, ["a"], before, after)


def test_a_command_without_effect_is_not_recorded(audited: Store) -> None:
    audited.cancel(["gone"])
    audited.edit(["gone"], HOLD)
    audited.purge(["gone"])
    audited.queues.set_rules("default", {"paused": False})
    audited.claims.request_stop("missing", StopMode.FINISH)
    assert recorded(audited) == []


def test_only_jobs_that_change_are_recorded(audited: Store) -> None:
    audited.enqueue([new_job("a"), new_job("b"), new_job("c", priority=7)])
    audited.edit(["a"], HOLD)
    audited.edit(["a", "b"], HOLD)
    assert last(audited)["subjects"] == ["b"]
    audited.edit(["b", "c"], JobEdit(priority=7))
    assert (last(audited)["subjects"], last(audited)["before"]) == (["b"], {"priority": 0})
    count = len(recorded(audited))
    audited.edit(["a", "b"], HOLD)
    assert len(recorded(audited)) == count


def test_a_retry_and_a_purge_are_recorded(audited: Store, worker: Hands) -> None:
    audited.enqueue([new_job("a", max_retries=0), new_job("b", max_retries=0)])
    worker.run(BAD)
    worker.run(BAD)
    audited.retry(["a"], states=DEAD)
    assert (last(audited)["what"], last(audited)["before"]) == ("retry", {"state": "dead"})
    audited.purge(["b"])
    assert (last(audited)["what"], last(audited)["subjects"]) == ("dlq purge", ["b"])


def test_queue_rules_and_settings_are_recorded_with_the_values_before(audited: Store) -> None:
    audited.queues.set_rules("mail", {"paused": True})
    assert last(audited)["what"] == "queue pause"
    audited.queues.set_rules("mail", {"concurrency": 3})
    said = last(audited)
    assert (said["what"], said["before"], said["after"]) == ("queue set", {"concurrency": None}, {"concurrency": 3})
    audited.queues.set_rules("mail", {"rate": Rate(5, 60_000)})
    assert last(audited)["after"] == {"rate": "5/m"}
    audited.set_config({"backoff-base": "3"})
    audited.set_config({"backoff-base": None})
    said = last(audited)
    assert (said["what"], said["before"], said["after"]) == (
        "config unset",
        {"backoff-base": "3"},
        {"backoff-base": None},
    )


def test_a_secret_setting_is_recorded_without_its_value(audited: Store) -> None:
    audited.set_config({"webhook-secret": "swordfish"})
    assert last(audited)["after"] == {"webhook-secret": "***"}


def test_webhook_urls_are_recorded_without_their_path(audited: Store) -> None:
    url, shown = "https://hooks.example.org/k9z8", "https://hooks.example.org/…"
    audited.set_config({"webhook-dead": url})
    assert last(audited)["after"] == {"webhook-dead": shown}
    audited.queues.set_rules("q", {"on_dead": url, "priority": 3})
    assert last(audited)["after"] == {"on_dead": shown, "priority": 3}
    audited.enqueue([new_job("a", hooks={"dead": [url, "job"]})])
    audited.edit(["a"], JobEdit(hooks={"success": [url, "job"], "dead": None}))
    assert last(audited)["after"] == {"hooks": {"success": shown, "dead": None}}
    assert not any("k9z8" in str(entry) for entry in audited.audit.entries())


def test_a_worker_that_is_told_to_stop_is_recorded(audited: Store, worker: Hands) -> None:
    audited.claims.request_stop(worker.name, StopMode.NOW)
    assert (last(audited)["what"], last(audited)["subjects"]) == ("worker stop", [worker.name])


def test_added_and_removed_schedules_are_recorded(audited: Store) -> None:
    audited.schedules.add(schedule("nightly", fields={"command": "x", "env": {"SECRET": "swordfish"}}))
    assert last(audited)["what"] == "cron add"
    assert "swordfish" not in json.dumps(last(audited))
    audited.schedules.remove("nightly")
    assert last(audited)["what"] == "cron remove"


def test_a_prune_and_a_reset_are_recorded(audited: Store, worker: Hands, clock: FakeClock) -> None:
    audited.enqueue([new_job("a"), new_job("b")])
    worker.run()
    audited.prune(["a", "b"], before_ms=clock.now_ms())
    assert (last(audited)["what"], last(audited)["subjects"]) == ("prune", ["a"])
    audited.reset()
    assert (last(audited)["what"], last(audited)["before"]) == ("reset", {"jobs": 1})


def test_concurrent_writers_each_add_their_entries(backend: Backend, store: Store, clock: FakeClock) -> None:
    def add() -> None:
        mine = backend.open(clock)
        mine.actor = ALICE
        for _ in range(5):
            mine.enqueue([new_job()])
        mine.close()

    at_once(*[add] * 4)
    assert len({entry.seq for entry in store.audit.entries()}) == 20


def test_an_entry_is_not_added_without_its_change(audited: Store) -> None:
    with pytest.raises(QueuectlError):
        audited.enqueue([new_job("a"), new_job("a")])
    assert recorded(audited) == []


def test_no_entry_can_be_changed(audited: Store, backend: Backend) -> None:
    audited.enqueue([new_job("a")])
    with pytest.raises(Exception, match="the audit log is append-only"):
        backend.tamper("update audit set at = 0")
    assert [said["subjects"] for said in recorded(audited)] == [["a"]]


def test_retention_removes_the_oldest_entries_and_records_that(audited: Store, clock: FakeClock) -> None:
    for _ in range(5):
        audited.enqueue([new_job()])
        clock.advance(10)
    before_ms = clock.now_ms() - 25_000
    assert audited.audit.forget(before_ms=before_ms, rows=2, by=ALICE) == 2
    assert audited.audit.forget(before_ms=before_ms, rows=2, by=ALICE) == 1
    assert audited.audit.forget(before_ms=before_ms, rows=2, by=ALICE) == 0
    assert [entry.seq for entry in audited.audit.entries()] == [4, 5, 6, 7]
    assert [said["what"] for said in recorded(audited)] == ["enqueue", "enqueue", "audit forget", "audit forget"]
    assert last(audited)["before"] == {"records": 1}


def test_entries_are_found_by_time_and_target_newest_first(audited: Store, clock: FakeClock) -> None:
    audited.enqueue([new_job("old")])
    clock.advance(60)
    audited.enqueue([new_job("new")])
    audited.cancel(["new"])
    found = audited.audit.entries(since_ms=clock.now_ms() - 1000, has='"new"', newest=True)
    assert [entry.action for entry in found] == ["cancel", "enqueue"]
    assert not list(audited.audit.entries(has='"missing"'))


def test_reading_by_pages_omits_no_entry(audited: Store) -> None:
    for _ in range(3):
        for number in range(400):
            audited.audit.add(Act("test", [str(number)]))
    assert [entry.seq for entry in audited.audit.entries()] == list(range(1, 1201))
    assert [entry.seq for entry in audited.audit.entries(newest=True)] == list(range(1200, 0, -1))


def test_alerts_are_recorded_without_the_secret_part_of_their_address(audited: Store) -> None:
    audited.alerts.add(
        read_alert(AlertRequest("deaths", dead=3, webhook="https://h.example/swordfish"), cwd="/", now_ms=1)
    )
    assert (last(audited)["what"], last(audited)["subjects"]) == ("alert add", ["deaths"])
    assert last(audited)["after"] == {"when": "3 jobs dead", "tells": "https://h.example/…"}
    audited.alerts.remove("deaths")
    assert last(audited)["what"] == "alert remove"
