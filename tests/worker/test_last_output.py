"""The last line that a run printed, through a worker to the database: of all kinds of output, and for killed workers and supervisors."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.e2e.scene import Scene
from tests.program import WorkerProcess

SECRET = "correct-horse-battery"


def test_it_is_the_last_line_that_is_not_blank_whatever_a_job_prints(scene: Scene) -> None:
    printed = {
        "silent": ("exit 1", None),
        "blank": (r"printf '\n  \n'; exit 1", None),
        "colors": (r"printf 'first\n\033[1;31mError:\033[0m no such table\n\n'; exit 1", "Error: no such table"),
        "progress": (r"printf '10%%\r50%%\r99%% of 3 MB\r'; exit 1", "99% of 3 MB"),
        "not UTF-8": (r"printf 'caf\351\000 \377\n'; exit 1", "caf\ufffd \ufffd"),
        "a long line": ("head -c 10000000 /dev/zero | tr '\\0' x; exit 1", "…" + "x" * 199),
        "slow": ("echo waiting; exec sleep 60", "waiting"),
        "good": ("echo done", "done"),
    }
    ids = scene.enqueue_all(
        [
            {"command": command, "max_retries": 1, "timeout": 1.5 if name == "slow" else 60}
            for name, (command, _) in printed.items()
        ]
    )
    scene.drain("--count", "4")
    found = {name: scene.job(job_id)["last_output"] for name, job_id in zip(printed, ids, strict=True)}
    assert found == {name: line for name, (_, line) in printed.items()}
    assert scene.job(ids[6])["error"] == "timeout after 1.5s"
    for job_id, (_, line) in zip(ids, printed.values(), strict=True):
        assert [run["last_output"] for run in scene.history(job_id)] == [line]


def test_a_secret_in_it_is_redacted_also_in_pieces_and_between_colors(scene: Scene) -> None:
    scene.queuectl("secret", "set", "db", input=SECRET, check=0)
    whole = scene.enqueue('echo "login with $PW failed"; exit 1', secrets=["PW=db"], max_retries=1)
    words = "printf 'with correct-hor'; sleep 0.1; printf 'se-bat'; sleep 0.1; printf 'tery failed'; exit 1"
    pieces = scene.enqueue(words, secrets=["PW=db"], max_retries=1)
    colored = scene.enqueue(r"printf 'correct-\033[1mhorse-battery'; exit 1", secrets=["PW=db"], max_retries=1)
    scene.drain("--count", "3")
    assert scene.job(whole)["last_output"] == "login with *** failed"
    assert scene.job(pieces)["last_output"] == "with *** failed"
    assert scene.job(colored)["last_output"] == "correct- horse-battery"


def test_it_does_not_need_the_log(scene: Scene) -> None:
    job_id = scene.enqueue("echo reason; exit 1", max_retries=1)
    (scene.home / "logs" / f"{job_id}.log").mkdir(parents=True)
    scene.drain()
    assert (scene.job(job_id)["state"], scene.job(job_id)["last_output"]) == ("dead", "reason")


@pytest.mark.parametrize(
    "end, outcomes",
    [(WorkerProcess.kill, ["failed"]), (WorkerProcess.crash, ["lost", "failed"])],
    ids=["adopted", "rescued"],
)
def test_a_run_whose_worker_was_killed_has_it_too(
    scene: Scene, end: Callable[[WorkerProcess], None], outcomes: list[str]
) -> None:
    words = f"echo 'run $QUEUECTL_RUN'; {scene.note('begun')}; {scene.until('go')}; echo; exit 1"
    job_id = scene.enqueue(words.replace("'run $QUEUECTL_RUN'", '"run $QUEUECTL_RUN"'), max_retries=1)
    first = scene.worker("--name", "first")
    scene.wait_for_file("begun")
    end(first)
    scene.worker("--name", "second")
    scene.wait_for_lines("begun", len(outcomes))
    scene.open("go")
    scene.wait_for(job_id, "dead")
    assert scene.outcomes(job_id) == outcomes
    assert [run["last_output"] for run in scene.history(job_id)] == [
        f"run {number + 1}" for number in range(len(outcomes))
    ]


def test_the_log_of_the_worker_shows_it_beside_the_error(scene: Scene) -> None:
    scene.enqueue("echo 'no such table'; exit 3", id="bad", max_retries=2, backoff_base=1)
    worker = scene.worker("--drain", "--log-format", "json", ready=False)
    worker.wait()
    lines = [json.loads(line) for line in worker.output.splitlines()]
    ended = {line["event"]: line for line in lines if line["event"] in ("failed", "dead")}
    assert {line["last_output"] for line in ended.values()} == {"no such table"}
    assert "exit code 3: no such table; attempt 1 of 2" in ended["failed"]["message"]
    assert "exit code 3: no such table; queuectl dlq retry bad" in ended["dead"]["message"]
