from __future__ import annotations

from collections.abc import Callable

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


def test_explain_prints_the_state_and_a_sentence_per_reason(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "later", "--delay", "1h", "true", check=0)
    title, due, unserved = queuectl("explain", "lat", check=0).lines
    assert title == "later  pending"
    assert due.startswith("  It is not due until 20")
    assert unserved == "  No worker is running for its queue 'default': queuectl worker start."
    assert queuectl("explain", "last", "--quiet", check=0).out == "later\n"


def test_explain_prints_codes_and_values_as_json(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--queue", "video", "--name", "ada")
    queuectl("enqueue", "--id", "j", "--queue", "mail", "true", check=0)
    reported = queuectl("explain", "j", "--json", check=0).json
    assert (reported["id"], reported["state"], reported["queue"]) == ("j", "pending", "mail")
    reason, first = reported["reasons"]
    assert (reason["code"], first["code"]) == ("queue-not-served", "first")
    assert [worker["queues"] for worker in reason["workers"]] == [["video"]]


def test_a_running_job_is_explained_with_its_process(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--name", "ada")
    queuectl("enqueue", "--id", "j", "--timeout", "1h", "exec sleep 1000", check=0)
    wait_until(lambda: queuectl("show", "j", "--json", check=0).json["history"][-1:] and pid(queuectl), what="its pid")
    reported = queuectl("explain", "j", check=0)
    host = queuectl("worker", "list", "--json", check=0).json[0]["host"]
    assert f" on worker ada at {host} (run 1, PID {pid(queuectl)}), since " in reported.out
    assert "of its timeout of 1h are left." in reported.out
    queuectl("cancel", "j", check=0)
    assert "It was cancelled at " in queuectl("explain", "j", check=0).out


def pid(queuectl: Program) -> int | None:
    found: int | None = queuectl("show", "j", "--json", check=0).json["history"][-1]["pid"]
    return found


def test_the_note_of_show_considers_that_a_worker_is_dead(queuectl: Program, start_worker: StartWorker) -> None:
    worker = start_worker()
    worker.kill()
    queuectl("enqueue", "--id", "j", "true", check=0)
    assert queuectl("show", "j", "--json", check=0).json["reason"] == "no live worker serves its queue"
    assert queuectl("explain", "j", "--json", check=0).json["reasons"][0]["code"] == "no-worker"


def test_an_unknown_job_is_refused_and_nothing_is_created(queuectl: Program) -> None:
    done = queuectl("explain", "missing", check=1)
    assert (done.out, done.err.splitlines()[0]) == ("", "error: no job 'missing'")
    assert not queuectl.home.exists()


def test_control_characters_in_an_error_are_escaped(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", '{"id": "j", "argv": ["/no/such\\u001b[31mprogram"], "max_retries": 1}', check=0)
    assert start_worker("--drain").wait() == 0
    terminal = Terminal(queuectl.home, "explain", "j", columns=200)
    assert terminal.end() == 0
    assert "\x1b[31mprogram" not in terminal.shown
    assert "runs it again" in plain(terminal.shown)
