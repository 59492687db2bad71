from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


def test_listing_queues_creates_nothing(queuectl: Program) -> None:
    assert queuectl("queue", "list", "--json", check=0).json == []
    assert queuectl("queue", "resume", "mail", check=0).out == "resumed mail\n"
    assert queuectl("queue", "move", "mail", "post", check=0).out == ""
    assert not queuectl.home.exists()


def test_rules_of_a_queue_are_listed(queuectl: Program) -> None:
    queuectl("enqueue", "--queue", "mail", "true", check=0)
    printed = queuectl(
        "queue", "set", "mail", "--concurrency", "2", "--rate", "10/60s", "--timeout", "90", "--priority", "-5", check=0
    )
    assert printed.out == "mail: 2 at a time; 10/m; defaults priority -5, timeout 1m30s\n"
    (mail,) = queuectl("queue", "list", "--json", check=0).json
    assert mail["states"]["pending"] == 1
    assert {name: mail[name] for name in mail if name not in ("states", "name")} == {
        "paused": False,
        "concurrency": 2,
        "per_key": None,
        "rate": "10/m",
        "priority": -5,
        "max_retries": None,
        "timeout": 90,
        "limits": {},
        "on_success": None,
        "on_failure": None,
        "on_dead": None,
        "rate_now": 0,
        "next_start_at": None,
    }
    assert queuectl("queue", "set", "mail", "--rate", "none", "--json", check=0).json["rate"] is None
    assert queuectl("queue", "list", "--quiet", check=0).lines == ["mail"]


@pytest.mark.parametrize(
    "arguments, reported",
    [
        (["set", "mail"], "nothing to set"),
        (["set", "mail", "--concurrency", "0"], "--concurrency: expected an integer from 1"),
        (["set", "mail", "--concurrency", "two"], "--concurrency: expected an integer from 1"),
        (["set", "mail", "--concurrency", "9" * 40], "--concurrency: expected an integer from 1"),
        (["set", "mail", "--per-key", "0"], "--per-key: expected an integer from 1"),
        (["set", "mail", "--rate", "10"], "--rate: expected a rate"),
        (["set", "mail", "--rate", "0/s"], "--rate: expected 1 to"),
        (["set", "mail", "--priority", "1000001"], "--priority: expected an integer from -1000000"),
        (["set", "mail", "--max-attempts", "0"], "--max-attempts: expected an integer from 1 to 1000000, got 0"),
        (["set", "mail", "--max-retries", "-1"], "--max-attempts: expected an integer from 0"),
        (["set", "mail", "--timeout", "soon"], "--timeout: expected a duration"),
        (["set", "a b", "--rate", "1/s"], "queue: not the name of a queue"),
        (["pause", ""], "queue: not the name of a queue"),
        (["pause"], "Missing argument"),
        (["move", "mail", "mail"], "that is the same queue"),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_created(
    queuectl: Program, arguments: list[str], reported: str
) -> None:
    refused = queuectl("queue", *arguments, check=2)
    assert reported.lower() in refused.err.lower()
    assert (refused.out, len(refused.err.splitlines())) == ("", 2)
    assert not queuectl.home.exists()


@pytest.mark.parametrize("word", ["a=0", "a=x", "a=", "a=1001", "=5", "a b=5"])
def test_a_bad_weight_is_refused(queuectl: Program, word: str) -> None:
    assert "--queue" in queuectl("worker", "start", "-q", word, check=2).err


def test_two_weights_of_one_queue_are_refused(queuectl: Program) -> None:
    reported = queuectl("worker", "start", "--drain", "-q", "a=5", "-q", "b", "-q", "a=3", check=2).err
    assert reported.splitlines()[0] == "error: --queue: two weights for 'a': 5 and 3"
    queuectl("worker", "start", "--drain", "-q", "a=5", "-q", "a=5", check=0)


def test_defaults_of_a_queue_apply_to_jobs_without_own_values(queuectl: Program) -> None:
    queuectl("config", "set", "timeout", "5m", check=0)
    queuectl("queue", "set", "mail", "--max-retries", "7", "--timeout", "0", "--priority", "3", check=0)

    def got(*arguments: str) -> tuple[int, int, float | None]:
        job = queuectl("enqueue", "--json", *arguments, check=0).json
        return job["priority"], job["max_retries"], job["timeout"]

    assert got("-q", "mail", "true") == (3, 7, None)
    assert got('{"command": "true", "queue": "mail", "max_attempts": 2, "timeout_ms": 500}') == (3, 2, 0.5)
    assert got("-q", "mail", "-p", "0", "--timeout", "9", "true") == (0, 7, 9)
    assert got("true") == (0, 3, 300)
    (batch,) = queuectl("enqueue", "--json", "--file", "-", "-q", "mail", input="true\n", check=0).json
    assert batch["max_retries"] == 7


def test_enqueue_on_a_terminal_mentions_a_paused_queue(home: Path, queuectl: Program) -> None:
    queuectl("queue", "pause", "mail", check=0)
    terminal = Terminal(home, "enqueue", "-q", "mail", "true", columns=200)
    assert terminal.end() == 0
    assert "queued in mail; mail is paused: queuectl queue resume mail" in plain(terminal.shown)
    silent = queuectl("enqueue", "-q", "mail", "true", check=0)
    assert silent.err == ""
    (shown,) = queuectl("status", "--json", check=0).json["queues"]
    assert (shown["name"], shown["paused"]) == ("mail", True)


def test_pausing_an_unknown_queue_is_reported_on_a_terminal(home: Path, queuectl: Program) -> None:
    queuectl("enqueue", "-q", "mail", "true", check=0)
    for name, is_new in (("mial", True), ("mail", False)):
        terminal = Terminal(home, "queue", "pause", name)
        assert terminal.end() == 0
        assert f"paused {name}" in plain(terminal.shown)
        assert (f"{name}: no job was ever added to it" in plain(terminal.shown)) is is_new


def test_a_worker_claims_jobs_of_a_paused_queue_after_it_is_resumed(
    queuectl: Program, start_worker: StartWorker
) -> None:
    queuectl("queue", "pause", "mail", check=0)
    held = queuectl("enqueue", "-q", "mail", "true", check=0).out.strip()
    start_worker("--count", "2")
    queuectl("run", "true", check=0)
    assert queuectl("show", held, "--json", check=0).json["reason"] == "queue paused"
    queuectl("queue", "resume", "mail", check=0)
    queuectl("wait", held, "--timeout", "10", check=0)


def test_no_more_run_than_the_limit_and_all_of_them_run(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("queue", "set", "mail", "--concurrency", "2", check=0)
    queuectl("enqueue", "--file", "-", "-q", "mail", input="sleep 0.05\n" * 12, check=0)
    for name in ("one", "two"):
        start_worker("--count", "4", "--name", name)
    wait_until(lambda: queuectl("status", "--json").json["states"]["completed"] == 12, what="all of them are done")
    moments = []
    for job in queuectl("list", "--json", check=0).json:
        moments += [(datetime.fromisoformat(job["started_at"]), 1), (datetime.fromisoformat(job["finished_at"]), -1)]
    running = most = 0
    for _, change in sorted(moments, key=lambda moment: (moment[0], moment[1])):
        running += change
        most = max(most, running)
    assert most == 2


def test_a_worker_wakes_up_when_the_rate_limit_allows_the_next_start(queuectl: Program) -> None:
    queuectl("config", "set", "poll-interval", "1h", check=0)
    queuectl("queue", "set", "mail", "--rate", "2/400ms", check=0)
    queuectl("enqueue", "--file", "-", "-q", "mail", input="true\n" * 7, check=0)
    queuectl("worker", "start", "--count", "4", "--drain", check=0)
    jobs = queuectl("list", "--json", check=0).json
    starts = sorted(datetime.fromisoformat(job["started_at"]).timestamp() for job in jobs)
    gaps = [later - first for first, later in zip(starts, starts[2:], strict=False)]
    assert min(gaps) >= 0.4
    assert starts[-1] - starts[0] < 6


def test_weights_share_out_the_slots(queuectl: Program) -> None:
    for queue in ("low", "high"):
        queuectl("enqueue", "--file", "-", "-q", queue, input="true\n" * 8, check=0)
    queuectl("worker", "start", "--count", "1", "-q", "high=3", "-q", "low=1", "--drain", check=0)
    jobs = sorted(queuectl("list", "--json", check=0).json, key=lambda job: job["started_at"])
    assert [job["queue"] for job in jobs[:8]].count("low") == 2


def test_moving_jobs_refuses_single_ones_with_a_reason(queuectl: Program) -> None:
    for job_id, queue in (("a", "mail"), ("b", "mail"), ("c", "post")):
        queuectl("enqueue", "--id", job_id, "-q", queue, "true", check=0)
    queuectl("cancel", "b", check=0)
    answer = queuectl("queue", "move", "mail", "slow", "a", "b", "c", "missing", "--json", check=1).json
    assert answer["done"] == ["a"]
    assert {one["id"]: one["code"] for one in answer["refused"]} == {
        "missing": "job-not-found",
        "b": "not-movable",
        "c": "not-movable",
    }
    assert queuectl("queue", "move", "post", "slow", check=0).out == "moved to slow c\n"
    assert queuectl("list", "--queue", "slow", "--quiet", check=0).lines == ["c", "a"]


def test_one_queue_can_be_drained_while_others_wait(queuectl: Program) -> None:
    for queue in ("mail", "post"):
        queuectl("enqueue", "-q", queue, "true", check=0)
    queuectl("worker", "start", "-q", "mail", "--drain", check=0)
    states = {one["name"]: one["states"] for one in queuectl("queue", "list", "--json", check=0).json}
    assert (states["mail"]["completed"], states["post"]["pending"]) == (1, 1)


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_per_key_is_set_and_listed(queuectl: Program) -> None:
    assert queuectl("queue", "set", "mail", "--per-key", "2", check=0).out == "mail: 2 per key\n"
    assert queuectl("queue", "list", "--json", check=0).json[0]["per_key"] == 2
    assert queuectl("queue", "list", check=0).lines == [
        "QUEUE  STATE  WAITING  RUNNING  DEAD  PER KEY",
        "mail   open         0        0     0        2",
    ]
    assert queuectl("queue", "set", "mail", "--per-key", "none", check=0).out == "mail: no limits\n"


def test_a_job_waits_for_its_concurrency_key_and_runs_later(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path
) -> None:
    queuectl("queue", "set", "default", "--per-key", "1", check=0)
    until = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    queuectl("enqueue", "--id", "first", "--key", "customer-7", until, check=0)
    queuectl("enqueue", '{"id": "second", "key": "customer-7", "command": "true"}', check=0)
    queuectl("enqueue", "--id", "other", "--key", "customer-8", "true", check=0)
    start_worker("--count", "4")
    queuectl("wait", "other", check=0)
    reported = "the key customer-7 has its 1 of 1 running: first"
    assert queuectl("show", "second", "--json", check=0).json["reason"] == reported
    explained = queuectl("explain", "second", "--json", check=0).json["reasons"]
    assert explained == [
        {
            "code": "key-full",
            "message": "The key customer-7 has its 1 of 1 running: first.",
            "queue": "default",
            "key": "customer-7",
            "per_key": 1,
            "running": ["first"],
        }
    ]
    (tmp_path / "go").touch()
    queuectl("wait", "second", check=0)


def test_show_names_the_key_and_a_clone_has_it(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "--key", "customer-7", "true", check=0)
    queuectl("clone", "a", "--id", "b", check=0)
    for job in ("a", "b"):
        assert any(
            line.split() == ["Concurrency", "key", "customer-7"] for line in queuectl("show", job, check=0).lines
        )


@pytest.mark.parametrize("key, reported", [("", "--key: empty"), ("x" * 257, "--key: 257 bytes, over 256")])
def test_an_invalid_key_is_refused_and_nothing_is_created(queuectl: Program, key: str, reported: str) -> None:
    assert reported in queuectl("enqueue", "--key", key, "true", check=2).err
    assert not queuectl.home.exists()


def test_a_key_is_exported_and_imported(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "--id", "a", "--key", "customer-7", "true", check=0)
    queuectl("export", tmp_path / "jobs.json", check=0)
    there = ("--home", tmp_path / "there")
    queuectl("import", tmp_path / "jobs.json", *there, check=0)
    queuectl("import", tmp_path / "jobs.json", *there, check=0)
    assert queuectl("export", *there, check=0).json[0]["key"] == "customer-7"
