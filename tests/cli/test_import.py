from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]

NOTHING = {
    "imported": 0,
    "skipped": 0,
    "given_back": 0,
    "settings": {},
    "ignored": [],
    "queues": [],
    "schedules": [],
    "alerts": [],
    "batches": [],
    "dry_run": False,
}
PAST = "2026-01-02T12:00:00.000Z"


@pytest.fixture
def elsewhere(tmp_path: Path, queuectl: Program) -> Program:
    """Another data directory, which does not exist yet."""
    return Program(tmp_path / "elsewhere")


def write(path: Path, *jobs: dict[str, Any]) -> Path:
    path.write_text(json.dumps([{"command": "true", "state": "pending", "created_at": PAST, **job} for job in jobs]))
    return path


def refused(program: Program, path: Path | str, *, code: int, input: str | None = None) -> tuple[str, str]:
    """The two lines of the error."""
    done = program("import", "--rules", path, input=input, check=code)
    assert done.out == ""
    message, hint = done.err.splitlines()
    return message.removeprefix("error: "), hint.removeprefix("hint: ")


@pytest.mark.parametrize("arguments", [["--history"], []], ids=["with history", "jobs only"])
@pytest.mark.parametrize("name", ["jobs.json", "jobs.jsonl"])
def test_an_export_is_imported_once(
    queuectl: Program, elsewhere: Program, start_worker: StartWorker, tmp_path: Path, name: str, arguments: list[str]
) -> None:
    queuectl("enqueue", "--id", "good", "--env", "TOKEN=secret", "--tag", "t", "echo hi", check=0)
    queuectl("enqueue", "--id", "bad", "--max-retries", "2", "--backoff-base", "1", "exit 3", check=0)
    assert start_worker("--drain").wait() == 0
    queuectl("enqueue", "--id", "waits", "--priority", "5", "true", check=0)
    path = tmp_path / name
    queuectl("export", *arguments, path, check=0)
    assert elsewhere("import", path, check=0).out == "imported 3 jobs\n"
    again = elsewhere("import", path, "--json", check=0).json
    assert again == {**NOTHING, "skipped": 3}
    seen = [program("export", *arguments, check=0).json for program in (queuectl, elsewhere)]
    assert [{**job, "log": None} for job in seen[0]] == seen[1]
    assert elsewhere("show", "good", "--show-env", "--json", check=0).json["env"] == {"TOKEN": "secret"}
    counts = [program("status", "--json", check=0).json["states"] for program in (queuectl, elsewhere)]
    assert counts[0] == counts[1]
    assert elsewhere("show", "bad", check=0).out
    # The job printed nothing: with its history, the markers are known.
    markers = queuectl("logs", "bad", check=0).out if arguments else ""
    assert elsewhere("logs", "bad", check=0).out == markers


def test_a_job_that_has_gone_on_since_is_still_the_same(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path
) -> None:
    queuectl("enqueue", "--id", "a", "true", check=0)
    queuectl("export", tmp_path / "jobs.json", check=0)
    assert start_worker("--drain").wait() == 0
    assert queuectl("import", tmp_path / "jobs.json", check=0).lines == [
        "imported 0 jobs",
        "1 job skipped: already present",
    ]
    assert queuectl("show", "a", "--json", check=0).json["state"] == "completed"


def test_another_job_under_the_same_id_refuses_all_of_it(queuectl: Program, tmp_path: Path) -> None:
    queuectl("import", write(tmp_path / "one.json", {"id": "a"}), check=0)
    message, hint = refused(
        queuectl, write(tmp_path / "two.json", {"id": "b"}, {"id": "a", "command": "false"}), code=1
    )
    assert message == "item 2: there is another job 'a' already: its command differs"
    assert hint == "nothing was imported; look at it: queuectl show a"
    assert [job["id"] for job in queuectl("list", "--json", check=0).json] == ["a"]


def test_an_id_that_is_twice_in_it_refuses_all_of_it(queuectl: Program, home: Path, tmp_path: Path) -> None:
    message, _ = refused(queuectl, write(tmp_path / "jobs.json", {"id": "a"}, {"id": "b"}, {"id": "a"}), code=1)
    assert message == "item 3: the id 'a' is twice in this batch"
    assert not home.exists()


@pytest.mark.parametrize(
    "text, reported",
    [
        ('[{"id": "a", "command": "true", "state": "pending"}]', "item 1: created_at: missing"),
        ('{"id": "a", "command": "x", "state": "up", "created_at": "2026-01-02"}', "line 1: state: not a state: 'up'"),
        (
            '[{"id": "a", "argv": ["x"], "state": "dead", "created_at": "2026-01-02"}\n',
            "not valid JSON: the text ends before the array does, line 2 column 1",
        ),
        ('{"id": "a",\n', "not valid JSON: "),
        ('[{"id": "a", "commnd": "true"}]', "item 1: unknown field 'commnd'"),
    ],
)
def test_invalid_input_is_reported_with_its_position_and_nothing_is_created(
    queuectl: Program, home: Path, tmp_path: Path, text: str, reported: str
) -> None:
    (tmp_path / "jobs.json").write_text(text)
    message, hint = refused(queuectl, tmp_path / "jobs.json", code=2)
    assert message.startswith(reported)
    assert hint
    assert refused(queuectl, "-", code=2, input=text)[0] == message
    assert not home.exists()


def test_an_unreadable_file_is_reported(queuectl: Program, home: Path, tmp_path: Path) -> None:
    assert refused(queuectl, tmp_path / "none", code=1)[0].startswith(f"cannot read {tmp_path / 'none'}: No such file")
    assert refused(queuectl, tmp_path, code=1)[0].startswith(f"cannot read {tmp_path}: Is a directory")
    (tmp_path / "words.txt").write_text("echo hi\n")
    message, _ = refused(queuectl, tmp_path / "words.txt", code=1)
    assert message == f"cannot import {tmp_path / 'words.txt'}: it is neither JSON nor a SQLite file"
    assert refused(queuectl, "", code=2)[0] == "FILE: the name is empty"
    error = json.loads(queuectl("import", tmp_path / "none", "--json", check=1).err)["error"]
    assert error["code"] == "file-unreadable"
    assert not home.exists()


def test_an_empty_import_creates_nothing(queuectl: Program, home: Path) -> None:
    assert queuectl("import", "-", "--json", input="[]", check=0).json == NOTHING
    assert queuectl("import", "-", "--json", input="", check=0).json == NOTHING
    assert not home.exists()


def test_a_dry_run_prints_the_result_and_changes_nothing(
    queuectl: Program, elsewhere: Program, home: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "jobs.json", {"id": "a"}, {"id": "b", "state": "processing"})
    assert queuectl("import", "--dry-run", path, check=0).lines == [
        "would import 2 jobs",
        "1 running job returned to pending, without an attempt counted",
    ]
    assert not home.exists()
    queuectl("import", write(tmp_path / "one.json", {"id": "a"}), check=0)
    answer = queuectl("import", "--dry-run", path, "--json", check=0).json
    assert (answer["imported"], answer["skipped"], answer["given_back"], answer["dry_run"]) == (1, 1, 1, True)
    assert queuectl("status", "--json", check=0).json["total"] == 1


def test_omitted_values_are_never_invented(queuectl: Program, elsewhere: Program) -> None:
    queuectl("enqueue", "--id", "a", "--env", "TOKEN=secret", "true", check=0)
    text = queuectl("export", "--format", "jsonl", check=0).out
    message, hint = refused(elsewhere, "-", code=2, input=text)
    assert message == "line 1: env.TOKEN: the export hides its value"
    assert "queuectl db export FILE" in hint
    assert queuectl("import", "-", "--json", input=text, check=0).json["skipped"] == 1


def test_a_running_job_is_imported_as_pending(
    queuectl: Program, elsewhere: Program, start_worker: StartWorker, tmp_path: Path
) -> None:
    queuectl("enqueue", "--id", "a", f"test -e {tmp_path / 'go'} || exec sleep 60", check=0)
    worker = start_worker()
    wait_until(lambda: queuectl("show", "a", "--json", check=0).json["state"] == "processing")
    queuectl("export", "--history", tmp_path / "jobs.json", check=0)
    worker.end()
    done = elsewhere("import", tmp_path / "jobs.json", check=0)
    assert done.lines == ["imported 1 job", "1 running job returned to pending, without an attempt counted"]
    (tmp_path / "go").touch()
    assert elsewhere("worker", "start", "--drain", check=0)
    job = elsewhere("show", "a", "--json", check=0).json
    assert (job["state"], job["attempts"], job["runs"]) == ("completed", 0, 2)
    assert [run["outcome"] for run in job["history"]] == ["released", "completed"]


def test_jobs_are_imported_by_age_regardless_of_their_order_in_the_file(queuectl: Program, tmp_path: Path) -> None:
    moments = {"c": "2026-01-03", "a": "2026-01-01", "b2": "2026-01-02", "b3": "2026-01-02"}
    path = write(tmp_path / "jobs.json", *({"id": name, "created_at": moment} for name, moment in moments.items()))
    queuectl("import", path, check=0)
    assert [job["id"] for job in queuectl("export", check=0).json] == ["a", "b2", "b3", "c"]
    queuectl("worker", "start", "--drain", check=0)
    ended = queuectl("list", "--sort", "-finished", "--json", check=0).json
    assert [job["id"] for job in ended] == ["a", "b2", "b3", "c"]


def test_a_rule_that_the_job_carries_comes_along(queuectl: Program, elsewhere: Program, tmp_path: Path) -> None:
    queuectl("config", "set", "first-attempt-is-free", "true", check=0)
    queuectl("enqueue", "--id", "a", "--max-retries", "1", "--backoff-base", "1", "false", check=0)
    queuectl("export", tmp_path / "jobs.json", check=0)
    elsewhere("import", tmp_path / "jobs.json", check=0)
    elsewhere("worker", "start", "--drain", check=0)
    job = elsewhere("show", "a", "--json", check=0).json
    assert (job["state"], job["attempts"], job["max_retries"]) == ("dead", 2, 1)


def test_jobs_without_history_can_be_retried(queuectl: Program, tmp_path: Path) -> None:
    jobs = [{"id": name, "state": name, "attempts": 2, "max_retries": 2} for name in ("dead", "failed", "cancelled")]
    queuectl("import", write(tmp_path / "jobs.json", *jobs), check=0)
    queuectl("retry", "dead", "failed", "cancelled", check=0)
    queuectl("worker", "start", "--drain", check=0)
    found = queuectl("list", "--json", check=0).json
    assert {(job["state"], job["runs"]) for job in found} == {("completed", 3)}


def test_a_queuectl_database_is_refused_by_import(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    message, hint = refused(queuectl, home / "queue.db", code=1)
    assert message == f"cannot import {home / 'queue.db'}: it is a queuectl database"
    assert "copy" in hint


def test_an_import_shows_its_progress_on_a_terminal(queuectl: Program, home: Path, tmp_path: Path) -> None:
    write(tmp_path / "jobs.json", *({"id": f"j{number}"} for number in range(20_000)))
    terminal = Terminal(home, "import", str(tmp_path / "jobs.json"))
    terminal.wait_for("importing")
    terminal.wait_for("imported 20,000 jobs")
    assert terminal.end() == 0


# ── schedules, rules of queues, alerts, ends of batches ──────────────────────────────────────────────────────────────────────────────────


def furnish(program: Program) -> None:
    program("queue", "set", "mail", "--concurrency", "2", "--rate", "10/m", "--per-key", "3", "--timeout", "0", check=0)
    program("queue", "pause", "slow", check=0)
    arguments = (
        "--tz",
        "Europe/Berlin",
        "--overlap",
        "queue",
        "--catch-up",
        "all:3",
        "--jitter",
        "5",
        "--env",
        "A=secret",
    )
    program("cron", "add", "nightly", "0 2 * * *", "--queue", "mail", *arguments, "make backup", check=0)
    program("cron", "add", "often", "every 90s", "--until", "2090-01-01T00:00:00Z", "true", check=0)
    program("cron", "pause", "often", check=0)
    program("alert", "add", "deaths", "--dead", "3", "--within", "1h", "--queue", "mail", "--command", "true", check=0)
    called = ("--webhook", "https://example.org/secret", "--for", "90s", "--repeat", "1h")
    program("alert", "add", "late", "--oldest", "10m", *called, check=0)
    program("alert", "add", "no-worker", "--no-worker", "2m", "--command", "logger no-worker", check=0)
    batch = ("--batch", "all", "--on-complete", "echo all of it")
    program("enqueue", "--id", "job", "--queue", "slow", *batch, "true", check=0)


@pytest.mark.parametrize("name", ["all.json", "all.jsonl"])
def test_schedules_and_rules_are_exported_with_an_option_and_imported_once(
    queuectl: Program, elsewhere: Program, tmp_path: Path, name: str
) -> None:
    furnish(queuectl)
    printed = queuectl("export", "--rules", tmp_path / name, check=0)
    all_of_it = "1 job, 2 queues, 2 schedules, 3 alerts, 1 end of a batch"
    assert printed.out == f"exported {all_of_it} to {tmp_path / name}\n"
    assert elsewhere("import", "--rules", "--dry-run", tmp_path / name, check=0).out == f"would import {all_of_it}\n"
    assert elsewhere("queue", "list", "--json", check=0).json == []
    assert elsewhere("import", "--rules", tmp_path / name, check=0).out == f"imported {all_of_it}\n"
    assert elsewhere("import", "--rules", tmp_path / name, "--json", check=0).json == {**NOTHING, "skipped": 1}
    for arguments in (["queue", "list"], ["cron", "list"], ["alert", "list"], ["batch", "list"]):
        ours, theirs = (program(*arguments, "--json", check=0).json for program in (queuectl, elsewhere))
        for one in (*ours, *theirs):
            one.pop("updated_at", None)
            if arguments[0] == "batch":
                one.pop("created_at")
        assert ours == theirs
    there = elsewhere("export", "--rules", tmp_path / "again.json", check=0)
    assert there.out.startswith(f"exported {all_of_it}")
    ours, theirs = (json.loads(line) for line in (_array(tmp_path / name), _array(tmp_path / "again.json")))
    assert ours[:8] == theirs[:8]


def test_on_complete_of_a_batch_runs_after_an_import(queuectl: Program, elsewhere: Program, tmp_path: Path) -> None:
    # The defaults of the exporting database apply, not those of the importing one.
    queuectl("config", "set", "max-retries", "7", check=0)
    queuectl("config", "set", "first-attempt-is-free", "true", check=0)
    queuectl("config", "set", "timeout", "90s", check=0)
    queuectl("config", "set", "webhook-dead", "https://example.org/hidden", check=0)
    queuectl("enqueue", "--id", "job", "--batch", "all", "--on-complete", "echo all of it", "true", check=0)
    queuectl("export", "--rules", tmp_path / "all.json", check=0)
    assert "hidden" not in queuectl("export", "--rules", check=0).out
    elsewhere("import", "--rules", tmp_path / "all.json", check=0)
    elsewhere("worker", "start", "--drain", check=0)
    (batch,) = elsewhere("batch", "list", "--json", check=0).json
    last = elsewhere("show", batch["on_complete_job"], "--json", check=0).json
    assert (last["state"], last["command"]) == ("completed", "echo all of it")
    assert (last["max_retries"], last["timeout"]) == (7, 90)
    # The batch is the same and has ended: on_complete does not run again.
    assert elsewhere("import", "--rules", tmp_path / "all.json", check=0).lines[0] == "imported 0 jobs"
    # Of an ended batch nothing is exported.
    assert '"batch",' not in elsewhere("export", "--rules", check=0).out


def _array(path: Path) -> str:
    text = path.read_text()
    return f"[{','.join(text.splitlines())}]" if path.suffix == ".jsonl" else text


def test_only_jobs_are_exported_by_default(queuectl: Program) -> None:
    furnish(queuectl)
    assert [job["id"] for job in queuectl("export", check=0).json] == ["job"]


@pytest.mark.parametrize(
    "change, reported",
    [
        (["queue", "set", "mail", "--rate", "9/m"], "there is another queue 'mail' already: its concurrency differs"),
        (
            ["cron", "add", "often", "every 91s", "--replace", "true"],
            "there is another schedule 'often' already: its expression differs",
        ),
        (
            ["alert", "add", "deaths", "--dead", "4", "--command", "true"],
            "there is another alert 'deaths' already: its threshold differs",
        ),
        (
            ["enqueue", "--delay", "1h", "--batch", "all", "--on-complete", "echo other", "true"],
            "there is another batch 'all' already: its command differs",
        ),
    ],
)
def test_other_rules_or_another_schedule_of_the_name_refuse_all_of_it(
    queuectl: Program, elsewhere: Program, tmp_path: Path, change: list[str], reported: str
) -> None:
    furnish(queuectl)
    queuectl("export", "--rules", tmp_path / "all.json", check=0)
    elsewhere(*change, check=0)
    message, hint = refused(elsewhere, tmp_path / "all.json", code=1)
    assert message == reported
    assert hint.startswith("nothing was imported; look at it: queuectl ")
    assert "job" not in elsewhere("list", "--quiet", check=0).lines


@pytest.mark.parametrize(
    "record, reported",
    [
        ({"kind": "moon"}, "item 1: kind: not known: 'moon'"),
        (
            {"kind": "alert", "name": "a b", "dead": 1, "command": "true"},
            "item 1: name: not the name of an alert: 'a b'",
        ),
        ({"kind": "alert", "name": "a"}, "item 1: no condition for an alert"),
        ({"kind": "alert", "name": "a", "dead": 1}, "item 1: neither a webhook nor a command for an alert"),
        (
            {"kind": "alert", "name": "a", "dead": 1, "command": "true", "cwd": 7},
            "item 1: cwd: expected a string, got 7",
        ),
        ({"kind": "alert", "name": "a", "dead": 1, "commnd": "true"}, "item 1: unknown field 'commnd'"),
        ({"kind": "alert", "name": "a", "oldest": 9, "webhook": "https://a.org/…"}, "item 1: webhook: not a URL"),
        ({"kind": "batch", "name": "a b", "on_complete": {"command": "true"}}, "item 1: name: "),
        ({"kind": "batch", "name": "a"}, "item 1: on_complete: expected an object, got null"),
        ({"kind": "batch", "name": "a", "on_complete": {"command": ""}}, "item 1: command: "),
        ({"kind": "batch", "name": "a", "on_complete": {"command": "true", "id": "x"}}, "item 1: unknown field 'id'"),
        (
            {"kind": "batch", "name": "a", "on_complete": {"command": "true", "first_attempt_is_free": 1}},
            "item 1: first_attempt_is_free: expected true or false, got 1",
        ),
        (
            {"kind": "batch", "name": "a", "on_complete": {"command": "true", "hooks": 1}},
            "item 1: hooks: expected an object",
        ),
        ({"kind": "queue"}, "item 1: name: expected a string, got null"),
        ({"kind": "queue", "name": "a b"}, "item 1: queue: not the name of a queue: 'a b'"),
        ({"kind": "queue", "name": "a", "rate": "often"}, "item 1: rate: expected a rate, got 'often'"),
        ({"kind": "queue", "name": "a", "color": 1}, "item 1: unknown rule 'color'"),
        ({"kind": "schedule", "name": "a", "tz": "UTC", "job": {}}, "item 1: schedule: expected a string, got null"),
        ({"kind": "schedule", "name": "a", "schedule": "@daily", "tz": "UTC"}, "item 1: job: expected an object"),
        (
            {"kind": "schedule", "name": "a", "schedule": "@daily", "tz": "Mars/Base", "job": {"command": "true"}},
            "item 1: tz: ",
        ),
        (
            {"kind": "schedule", "name": "a", "schedule": "99 * * * *", "tz": "UTC", "job": {"command": "true"}},
            "item 1: ",
        ),
        (
            {"kind": "schedule", "name": "a", "schedule": "@daily", "tz": "UTC", "job": {"command": "true"}, "x": 1},
            "item 1: unknown field 'x'",
        ),
        (
            {
                "kind": "schedule",
                "name": "a",
                "schedule": "@daily",
                "tz": "UTC",
                "job": {"command": "true"},
                "paused": 1,
            },
            "item 1: paused: expected true or false, got 1",
        ),
        (
            {
                "kind": "schedule",
                "name": "a",
                "schedule": "@daily",
                "tz": "UTC",
                "job": {"command": "true", "env": {"A": "***"}},
            },
            "item 1: job.env: the export hides a value",
        ),
    ],
)
def test_an_invalid_rule_is_reported_with_its_position_and_nothing_is_created(
    queuectl: Program, tmp_path: Path, record: dict[str, Any], reported: str
) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps([record]))
    message, _ = refused(queuectl, path, code=2)
    assert message.startswith(reported)
    assert not queuectl.home.exists()


def test_a_queue_or_a_schedule_that_is_in_it_twice_is_refused(queuectl: Program, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps([{"kind": "queue", "name": "a", "paused": True}] * 2))
    assert refused(queuectl, path, code=2)[0] == "item 2: name: the queue 'a' is in it twice"
