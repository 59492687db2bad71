from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.program import Leftovers, Program, WorkerProcess
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


def state(queuectl: Program, job_id: str) -> str:
    return str(queuectl("show", job_id, "--json", check=0).json["state"])


def test_waiting_jobs_are_cancelled_and_ended_ones_refused(queuectl: Program) -> None:
    for job_id in ("a", "b"):
        queuectl("enqueue", "--id", job_id, "true", check=0)
    assert queuectl("cancel", "a", check=0).out == "cancelled a\n"
    done = queuectl("cancel", "b", "a", "nope", check=1)
    assert done.out == "cancelled b\n"
    assert done.err == "error: job 'a' is cancelled: cannot cancel it\nerror: no job 'nope'\n"


def test_json_lists_done_and_refused_ids(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "true", check=0)
    done = queuectl("cancel", "--json", "a", "a", "nope", check=1)
    refused = {"id": "nope", "code": "job-not-found", "message": "no job 'nope'"}
    assert done.json == {"done": ["a"], "refused": [refused]}
    assert done.err.startswith('{"error": ')


def test_a_running_job_is_gone_with_all_its_children_when_cancel_returns(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path, leftovers: Leftovers
) -> None:
    queuectl("config", "set", "kill-grace", "200ms", check=0)
    worker = start_worker()
    ready = tmp_path / "ready"
    script = f"trap '' TERM; (trap '' TERM; sleep 1000 & sleep 1000) & touch {ready}; sleep 1000"
    queuectl("enqueue", "--id", "j", script, check=0)
    wait_until(ready.exists)
    queuectl("cancel", "j", check=0)
    assert state(queuectl, "j") == "cancelled"
    assert set(leftovers) <= {worker.pid}
    shown = queuectl("show", "j", "--json", check=0).json
    assert shown["attempts"] == 0
    assert shown["history"][0]["outcome"] == "cancelled"


def test_a_job_of_a_killed_worker_is_cancelled_by_the_command_itself(
    queuectl: Program, start_worker: StartWorker, leftovers: Leftovers
) -> None:
    worker = start_worker()
    queuectl("enqueue", "--id", "j", "sleep 1000", check=0)
    wait_until(lambda: state(queuectl, "j") == "processing" and len(list(leftovers)) > 1)
    worker.kill()
    queuectl("cancel", "j", check=0, timeout=20)
    assert state(queuectl, "j") == "cancelled"
    leftovers.wait_until_none()


def test_cancel_creates_no_data_directory(queuectl: Program) -> None:
    queuectl("cancel", "j", check=1)
    queuectl("retry", "j", check=1)
    queuectl("dlq", "retry", "j", check=1)
    queuectl("dlq", "purge", "--yes", "j", check=1)
    assert not queuectl.home.exists()
