from __future__ import annotations

import doctest
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import queuectl as package
from queuectl import Job, Queue, State, client, client_bulk, errors
from queuectl.errors import KeyTaken, ParentNotFound, ScheduleNotFound
from tests.program import Program, WorkerProcess

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def queue(home: Path) -> Iterator[Queue]:
    with Queue(home) as opened:
        yield opened


def test_the_examples_of_the_docstrings_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUECTL_HOME", str(home))
    for module, examples in ((client, 21), (client_bulk, 7)):
        result = doctest.testmod(module, extraglobs={"Queue": Queue}, optionflags=doctest.ELLIPSIS)
        assert result.attempted >= examples
        assert result.failed == 0


def test_a_job_with_a_key_is_enqueued_once(queue: Queue) -> None:
    first = queue.enqueue("true", unique="report")
    again = queue.enqueue("false", unique="report", unique_for=timedelta(hours=1))
    assert (first.is_duplicate, again.is_duplicate) == (False, True)
    assert again == first
    with pytest.raises(KeyTaken):
        queue.enqueue("true", unique="report", if_exists="error")
    many = queue.enqueue_many([{"command": "true", "unique_key": "a"}, {"command": "false", "unique_key": "a"}])
    assert [job.is_duplicate for job in many] == [False, True]


def test_the_public_names_of_the_package_exist() -> None:
    assert {name for name in package.__all__ if not hasattr(package, name)} == set()


def test_a_job_is_enqueued_with_its_rules(queue: Queue) -> None:
    job = queue.enqueue(
        "echo hi",
        id="j",
        priority=5,
        delay="10s",
        queue="mail",
        timeout=1.5,
        tags={"b", "a"},
        env={"K": "v"},
        max_retries=7,
    )
    assert isinstance(job, Job)
    assert (job.id, job.state, job.priority, job.queue) == ("j", State.PENDING, 5, "mail")
    assert (job.timeout, job.tags, job.max_retries) == (1.5, ("a", "b"), 7)
    assert job.run_at - job.created_at == timedelta(seconds=10)
    assert job.created_at.tzinfo is UTC
    assert job.cwd == os.getcwd()
    assert queue.get("j") == job
    assert job.to_dict()["env"] == {"K": "***"}


def test_python_types_are_converted(queue: Queue, tmp_path: Path) -> None:
    when = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    job = queue.enqueue(argv=("printf", "%s", "a b"), run_at=when, timeout=timedelta(minutes=2), cwd=tmp_path)
    assert (job.argv, job.command) == (("printf", "%s", "a b"), None)
    assert (job.run_at, job.timeout, job.cwd) == (when, 120, str(tmp_path))
    job = queue.enqueue("true", delay=timedelta(seconds=90))
    assert job.run_at - job.created_at == timedelta(seconds=90)


@pytest.mark.parametrize(
    "fields, error",
    [
        ({}, errors.InvalidInput),
        ({"command": " "}, errors.InvalidInput),
        ({"command": "true", "argv": ["true"]}, errors.InvalidInput),
        ({"command": "true", "priorty": 1}, errors.UnknownName),
        ({"command": "true", "priority": "1"}, errors.InvalidInput),
        ({"command": "true", "timeout": "soon"}, errors.InvalidInput),
    ],
)
def test_invalid_input_is_rejected_and_nothing_is_created(
    queue: Queue, home: Path, fields: dict[str, object], error: type[errors.QueuectlError]
) -> None:
    with pytest.raises(error):
        queue.enqueue(**fields)  # type: ignore[arg-type]
    assert not home.exists()


def test_many_jobs_are_added_all_or_none_in_their_order(queue: Queue, home: Path) -> None:
    with pytest.raises(errors.InvalidItem) as caught:
        queue.enqueue_many(["true", {"command": "true", "nope": 1}])
    assert caught.value.number == 2
    assert not home.exists()
    jobs = queue.enqueue_many({"command": f"echo {number}", "id": f"j{number}"} for number in range(1200))
    assert [job.id for job in jobs] == [f"j{number}" for number in range(1200)]
    with pytest.raises(errors.DuplicateId):
        queue.enqueue_many(["true", {"command": "true", "id": "j7"}])
    assert sum(1 for _ in queue.jobs()) == 1200
    assert queue.enqueue_many([]) == []


@pytest.mark.parametrize("jobs", ["true", b"true", {"command": "true"}, 5, None])
def test_one_job_where_many_are_expected_is_rejected(queue: Queue, home: Path, jobs: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="jobs: expected many"):
        queue.enqueue_many(jobs)
    assert not home.exists()


@pytest.mark.parametrize("job", [5, None, ["true"], b"true"])
def test_an_invalid_job_is_named_by_its_position(queue: Queue, home: Path, job: Any) -> None:
    with pytest.raises(errors.InvalidItem) as caught:
        queue.enqueue_many(["true", job])
    assert caught.value.number == 2
    assert not home.exists()


@pytest.mark.parametrize("job_id", [None, 5, b"j"])
def test_every_method_rejects_an_id_that_is_not_a_string(queue: Queue, job_id: Any) -> None:
    queue.enqueue("true", id="j")
    for ask in (queue.get, queue.history, queue.logs, queue.follow, queue.wait, queue.cancel, queue.retry):
        with pytest.raises(errors.InvalidInput, match="job_id: expected a string"):
            ask(job_id)


@pytest.mark.parametrize("name", ["home", "db"])
def test_an_empty_path_is_rejected_by_the_name_of_the_argument(name: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Queue(**{name: ""})  # type: ignore[arg-type]
    assert (caught.value.subject, caught.value.hint) == (name, f"give a value, or omit {name}")


def test_jobs_are_found_by_state_queue_and_tag(queue: Queue) -> None:
    queue.enqueue("true", id="a", tags=["x"])
    queue.enqueue("true", id="b", tags=["x", "y"], queue="mail", priority=3)
    queue.cancel("a")
    assert [job.id for job in queue.jobs()] == ["b", "a"]
    assert [job.id for job in queue.jobs(state="CANCELLED")] == ["a"]
    assert [job.id for job in queue.jobs(state=[State.PENDING, State.CANCELLED], tag=["x", "y"])] == ["b"]
    assert [job.id for job in queue.jobs(queue=["mail", "default"], sort="-created", limit=1)] == ["a"]
    assert [job.id for job in queue.jobs(where="-queue:mail TRUE", tag="x")] == ["a"]
    assert list(queue.jobs(error="exit code", worker=["w1", "w2"])) == []
    with pytest.raises(errors.InvalidInput, match="where: unknown qualifier 'queu'"):
        queue.select(where="queu:mail")
    with pytest.raises(errors.UnknownName):
        queue.jobs(state="nope")
    with pytest.raises(errors.InvalidInput):
        queue.jobs(limit=-1)


def test_reading_creates_nothing_and_sees_the_jobs_of_others(queue: Queue, home: Path) -> None:
    assert list(queue.jobs()) == []
    assert queue.status()["total"] == 0
    for look in (queue.get, queue.cancel, queue.retry, queue.logs):
        with pytest.raises(errors.JobNotFound):
            look("j")
    assert not home.exists()
    with Queue(home) as other:
        other.enqueue("true", id="j")
    assert queue.get("j").id == "j"
    assert queue.get("last").id == "j"
    queue.enqueue("true", id="jk")
    queue.enqueue("true", id="jl")
    assert queue.get("j").id == "j"  # an exact ID takes precedence
    assert queue.get("jk").id == "jk"
    queue.enqueue("true", id="xa")
    queue.enqueue("true", id="xb")
    with pytest.raises(errors.AmbiguousId):
        queue.get("x")


def test_home_and_db_come_from_the_environment_if_not_given(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUECTL_HOME", str(home))
    with Queue() as queue:
        queue.enqueue("true", id="here")
    assert (home / "queue.db").exists()
    with Queue(db=home.parent / "other.db") as queue:
        assert list(queue.jobs()) == []
        queue.enqueue("true", id="there")
    with Queue(db=f"sqlite:///{home.parent}/other.db") as queue:
        assert [job.id for job in queue.jobs()] == ["there"]


def test_settings_of_the_store_are_the_defaults_of_jobs(queuectl: Program, queue: Queue) -> None:
    queuectl("config", "set", "max-retries", "9", check=0)
    assert queue.enqueue("true").max_retries == 9
    assert queue.enqueue_many(["true"])[0].max_retries == 9


def test_a_job_is_waited_for_and_its_output_read(queuectl: Program, queue: Queue, start_worker: StartWorker) -> None:
    start_worker()
    job = queue.enqueue("echo hi; printf '\\377'; exit 3", max_retries=1)
    assert b"".join(queue.follow(job.id)) == b"hi\n\xff"
    ended = queue.wait(job.id, timeout="20s")
    assert (ended.state, ended.exit_code, ended.error) == (State.DEAD, 3, "exit code 3")
    assert isinstance(ended.finished_at, datetime)
    assert queue.logs(job.id, markers=False) == "hi\n\ufffd"
    assert "--- START " in queue.logs(job.id)
    assert queue.logs(job.id, markers=False, tail=1, run=1) == "\ufffd"
    assert queue.history(job.id)[0]["outcome"] == "failed"
    queue.retry(job.id)
    assert queue.wait(job.id, timeout=20).runs == 2


def test_a_job_that_is_retried_waits_for_a_worker(queue: Queue) -> None:
    job = queue.enqueue("true")
    queue.cancel(job.id)
    assert queue.retry(job.id).state is State.PENDING


def test_waiting_too_long_is_a_timeout_error(queue: Queue) -> None:
    job = queue.enqueue("true")
    for timeout in (0, 0.01, "10ms", timedelta(milliseconds=10)):
        with pytest.raises(TimeoutError) as caught:
            queue.wait(job.id, timeout)
        assert isinstance(caught.value, errors.WaitTimeout)


def test_a_running_job_is_cancelled_when_cancel_returns(queue: Queue, start_worker: StartWorker) -> None:
    start_worker()
    job = queue.enqueue("echo on; sleep 1000")
    assert next(queue.follow(job.id)) == b"on\n"
    assert queue.cancel(job.id).state is State.CANCELLED
    with pytest.raises(errors.WrongState):
        queue.cancel(job.id)
    with pytest.raises(errors.WrongState):
        queue.retry(queue.enqueue("true").id)


def test_a_queue_that_was_closed_can_be_used_again(home: Path) -> None:
    queue = Queue(home)
    queue.enqueue("true", id="j")
    queue.close()
    assert queue.get("j").id == "j"
    queue.close()


def test_schedules_are_added_changed_and_removed(queue: Queue) -> None:
    assert list(queue.schedules) == []
    until = datetime(2999, 1, 1, tzinfo=UTC)
    told = queue.schedules.add(
        "s",
        "every 1h",
        argv=("a", "b"),
        tz="UTC",
        jitter=timedelta(seconds=90),
        until=until,
        delay=timedelta(seconds=5),
    )
    assert (told["argv"], told["jitter"], told["until"]) == (["a", "b"], 90, "2999-01-01T00:00:00.000Z")
    first, second = queue.schedules.next("s", 2)
    assert second - first == timedelta(hours=1)
    assert queue.schedules.run("s").cron == "s"
    queue.schedules.pause("s")
    assert queue.schedules.get("s")["paused"]
    queue.schedules.resume("s")
    assert len(queue.schedules.get("s")["ticks"]) == 1
    queue.schedules.remove("s")
    with pytest.raises(ScheduleNotFound):
        queue.schedules.remove("s")


def test_a_schedule_has_a_unique_key(queue: Queue) -> None:
    queue.schedules.add("s", "@daily", "true", tz="UTC", unique="report")
    assert queue.schedules.run("s").unique_key == "report"
    with pytest.raises(errors.NotFired):
        queue.schedules.run("s")


@pytest.mark.parametrize("given", [{"name": 3}, {"schedule": 90}, {"schedule": "never"}, {"tz": 1}, {"command": None}])
def test_an_invalid_schedule_is_rejected_and_nothing_is_created(
    queue: Queue, home: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(errors.UsageError):
        queue.schedules.add(**{"name": "s", "schedule": "@daily", "command": "true", **given})
    assert not home.exists()


def test_a_job_has_a_key_and_its_queue_a_limit_by_key(home: Path) -> None:
    with Queue(home) as queue:
        assert queue.set_queue("mail", per_key=2)["per_key"] == 2
        job = queue.enqueue("true", queue="mail", key="customer-7")
        assert job.key == queue.get(job.id).key == "customer-7"


@pytest.mark.parametrize(
    "rule, value", [("concurrency", 0), ("per_key", 1.5), ("rate", "5/month"), ("timeout", "soon"), ("priority", True)]
)
def test_an_invalid_queue_setting_is_rejected_by_name(home: Path, rule: str, value: object) -> None:
    with Queue(home) as queue, pytest.raises(errors.InvalidInput, match=rf"^{rule}: ") as refusal:
        queue.set_queue("mail", **{rule: value})
    assert "--" not in (refusal.value.hint or "")
    assert not home.exists()


def test_a_queue_is_limited_and_listed_as_on_the_command_line(home: Path) -> None:
    with Queue(home) as queue:
        queue.enqueue("true", queue="mail")
        told = queue.set_queue("mail", concurrency=2, timeout=timedelta(minutes=1), paused=True)
        assert queue.queues() == [told]
        assert (told["concurrency"], told["timeout"], told["paused"]) == (2, 60, True)
        assert queue.enqueue("true", queue="mail").timeout == 60
        assert queue.set_queue("mail", concurrency="none")["concurrency"] is None
        with pytest.raises(errors.UnknownName, match="concurency"):
            queue.set_queue("mail", concurency=2)
        with pytest.raises(errors.InvalidInput, match="paused"):
            queue.set_queue("mail", paused="yes")


def test_dependencies_are_given_by_id_or_as_jobs(queue: Queue) -> None:
    build, test = queue.enqueue_many([{"command": "true", "id": "build"}, {"command": "true", "after": ["build"]}])
    assert (build.state, test.state) == (State.PENDING, State.BLOCKED)
    last = queue.enqueue("true", after=[build], after_any=[test.id], after_fail=(queue.enqueue("false", id="other"),))
    assert last.to_dict()["depends_on"] == [
        "build",
        {"id": test.id, "when": "ended", "else": "cancel"},
        {"id": "other", "when": "failed", "else": "cancel"},
    ]


def test_dependencies_are_given_in_one_way_only(queue: Queue) -> None:
    with pytest.raises(errors.InvalidInput, match="depends_on: not together with after_any"):
        queue.enqueue("true", depends_on=["a"], after_any=["b"])
    with pytest.raises(errors.InvalidInput, match="after_fail: expected a list of ids or jobs, got 'a'"):
        queue.enqueue("true", after_fail="a")
    with pytest.raises(ParentNotFound, match="no job 'missing'"):
        queue.enqueue("true", after=["missing"])


def test_a_clone_of_a_blocked_job_has_its_unfinished_parents(queue: Queue) -> None:
    queue.enqueue("true", id="a")
    queue.enqueue("true", id="b", after_any=["a"])
    clone = queue.clone("b", priority=3)
    assert (clone.state, clone.priority) == (State.BLOCKED, 3)
    assert clone.depends_on == queue.get("b").depends_on
    assert queue.clone("b", after=["b"]).to_dict()["depends_on"] == ["b"]
    assert queue.clone("a").depends_on == ()


def test_a_job_for_each_item_is_quoted_as_on_the_command_line(queue: Queue) -> None:
    jobs = queue.enqueue_each(["it's", "", "a\nb"], "echo {} {n}", batch="each", priority=3)
    assert [job.command for job in jobs] == ["echo 'it'\\''s' '1'", "echo '' '2'", "echo 'a\nb' '3'"]
    assert {(job.priority, job.batch) for job in jobs} == {(3, "each")}
    (job,) = queue.enqueue_each(["a,b"], argv=["echo", "{2}{1}"], colsep=",")
    assert job.argv == ("echo", "ba")


@pytest.mark.parametrize(
    "words, said",
    [
        (("abc", "echo {}"), "items: expected many, got 'abc'"),
        ((["a", 5], "echo {}"), "item 2: item: expected a text, got 5"),
        ((["a"], "echo '{}'"), "{} at character 7: inside quotes"),
        ((["a"], "echo"), "no placeholder in the command"),
        ((["a"],), "command: expected either a command or an argv"),
    ],
)
def test_invalid_items_are_rejected_and_nothing_is_created(
    queue: Queue, home: Path, words: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(errors.UsageError) as refused:
        queue.enqueue_each(*words)
    assert refused.value.message.startswith(said)
    assert not home.exists()


def test_an_array_has_its_own_key_and_limit(queue: Queue) -> None:
    jobs = queue.enqueue_array(range(3), "true", at_once=2, env={"K": "v"}, batch="frames")
    assert [dict(job.env) for job in jobs] == [{"K": "v", "QUEUECTL_ARRAY_INDEX": str(index)} for index in range(3)]
    assert {job.places for job in jobs} == {2}
    assert len({job.key for job in jobs}) == 1
    assert {job.places for job in queue.enqueue_array("1-2", argv=["true"])} == {None}
    for indices, at_once in (([1, 1], None), ("1-3", 0), ([-1], None), ("1-3%2", 3)):
        with pytest.raises(errors.InvalidInput, match=r"^indices: "):
            queue.enqueue_array(indices, "true", at_once=at_once)


def test_a_batch_is_waited_for_and_listed(queuectl: Program, queue: Queue, start_worker: StartWorker) -> None:
    queue.enqueue_many(["true", "true"], batch="b")
    with pytest.raises(TimeoutError):
        queue.wait_batch("b", timeout="10ms")
    start_worker()
    assert queue.wait_batch("b", timeout="20s")["done"] == 2
    assert [one["name"] for one in queue.batches()] == ["b"]
    with pytest.raises(errors.BatchNotFound):
        queue.wait_batch("missing")


def test_many_jobs_are_changed_at_once_and_refusals_are_returned(queue: Queue) -> None:
    queue.enqueue_many([{"command": f"echo {name}", "id": name, "queue": "q"} for name in "abc"])
    some = queue.select(queue="q")
    assert len(some) == 3
    assert some.hold() == {"done": ["a", "b", "c"], "refused": []}
    assert some.hold() == {"done": [], "refused": []}
    assert some.release()["done"] == ["a", "b", "c"]
    assert some.edit(queue="r", priority=5)["done"] == ["a", "b", "c"]
    assert list(some) == []
    assert queue.move("r", "q", "a") == {"done": ["a"], "refused": []}
    assert [one["code"] for one in queue.move("r", "q", "a", "missing")["refused"]] == ["job-not-found", "not-movable"]
    assert queue.select(match="echo b").cancel()["done"] == ["b"]
    assert queue.select(state="cancelled").retry()["done"] == ["b"]
    with pytest.raises(errors.InvalidInput, match=r"^state: pending jobs cannot be purged$"):
        queue.select(state="pending").purge()
    assert queue.select(queue=["q", "r"]).cancel()["done"] == ["a", "b", "c"]
    assert queue.select(tag="none").prune() == {}
    assert queue.select(queue="r").prune(older_than="1h") == {}
    assert queue.select(queue="r").prune() == {"cancelled": 2}
    assert [job.id for job in queue.jobs()] == ["a"]


@pytest.mark.parametrize("said", [{}, {"tag": []}, {"queue": ()}])
def test_an_empty_selection_changes_no_jobs(queue: Queue, said: dict[str, Any]) -> None:
    queue.enqueue("true", id="a")
    every = queue.select(**said)
    assert len(every) == 1
    for change in (every.cancel, every.hold, every.run_now, every.prune, every.purge, lambda: every.edit(priority=5)):
        with pytest.raises(errors.UsageError, match=r"^no jobs are selected$"):
            change()
    assert queue.get("a").priority == 0
    assert queue.select(state=list(State)[:2]).hold()["done"] == ["a"]


def test_selected_jobs_are_waited_for(queue: Queue, start_worker: StartWorker) -> None:
    queue.enqueue_many(["true", "true"], batch="b")
    with pytest.raises(errors.WaitTimeout):
        queue.select(batch="b").wait(timeout="10ms")
    start_worker()
    assert {job.state for job in queue.select(batch="b").wait(timeout="20s")} <= {State.COMPLETED}
    assert queue.select(tag="none").wait() == []
