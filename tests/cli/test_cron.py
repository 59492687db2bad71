"""queuectl cron on the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]

FIELDS = "name schedule tz command argv queue job overlap catch_up jitter until paused next_at last waiting created_at updated_at"


def add(queuectl: Program, name: str = "s", when: str = "@yearly", *arguments: str | Path) -> Any:
    return queuectl("cron", "add", "--json", name, when, *(arguments or ("true",)), check=0).json


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_schedule_is_added_with_the_options_of_enqueue(queuectl: Program, tmp_path: Path) -> None:
    arguments = (
        "-q low -p 5 --timeout 1h --max-retries 7 --env A=b --tag x --tz Europe/Berlin --overlap queue --catch-up all:3"
    )
    more = "--jitter 90s --until 2999-01-01 --delay 5s"
    reported = queuectl(
        "cron",
        "add",
        "nightly",
        "0  2 * * *",
        "echo hi",
        *arguments.split(),
        *more.split(),
        "--json",
        cwd=tmp_path,
        check=0,
    ).json
    assert list(reported) == FIELDS.split()
    assert (reported["schedule"], reported["tz"], reported["command"], reported["queue"]) == (
        "0 2 * * *",
        "Europe/Berlin",
        "echo hi",
        "low",
    )
    assert (reported["overlap"], reported["catch_up"], reported["jitter"]) == ("queue", "all:3", 90)
    assert reported["until"] == "2998-12-31T23:00:00.000Z"  # midnight in Berlin
    assert moment(reported["next_at"]).hour in {0, 1}
    job_id = queuectl("cron", "run", "nightly", check=0).out.strip()
    job = queuectl("show", job_id, "--json", "--show-env", check=0).json
    assert (job["queue"], job["priority"], job["timeout"], job["max_retries"]) == ("low", 5, 3600, 7)
    assert (job["env"], job["tags"], job["cron"], job["cwd"]) == ({"A": "b"}, ["x"], "nightly", str(tmp_path))
    assert moment(job["run_at"]) > moment(job["created_at"])


@pytest.mark.parametrize(
    "arguments, argv",
    [
        (("s", "@daily", "--", "ls", "-l", "--tz"), ["ls", "-l", "--tz"]),
        (("--tz", "UTC", "s", "@daily", "ls", "a b"), ["ls", "a b"]),
        (("s", "--tz", "UTC", "@daily", "--", "ls", "-l"), ["ls", "-l"]),
        (("--", "s", "@daily", "ls", "-l"), ["ls", "-l"]),
        (("s", "--", "@daily", "ls", "-l"), ["ls", "-l"]),
        (("s", "@daily", '{"argv": ["ls", "-l"]}', "--tz", "UTC"), ["ls", "-l"]),
    ],
)
def test_arguments_and_options_are_placed_as_for_enqueue(
    queuectl: Program, arguments: tuple[str, ...], argv: list[str]
) -> None:
    queuectl("cron", "add", *arguments, check=0)
    assert queuectl("cron", "show", "s", "--json", check=0).json["argv"] == argv


def test_the_next_runs_are_shown_in_the_time_zone_of_the_schedule(queuectl: Program) -> None:
    done = queuectl("cron", "add", "s", "30 2 * * *", "make x", "--tz", "Asia/Tokyo", check=0)
    assert done.lines[0] == "s  make x"
    assert len(done.lines) == 4
    assert all("02:30:00 JST" in line for line in done.lines[1:])
    assert queuectl("cron", "add", "t", "@daily", "true", "--quiet", check=0).out == "t\n"


def test_the_default_time_zone_is_that_of_the_host(queuectl: Program) -> None:
    queuectl("cron", "add", "s", "@daily", "true", env={"TZ": "America/New_York"}, check=0)
    assert queuectl("cron", "show", "s", "--json", check=0).json["tz"] == "America/New_York"


def test_a_schedule_with_a_key_that_is_taken_adds_nothing(queuectl: Program) -> None:
    queuectl("cron", "add", "s", "@daily", "true", "--unique", "report", "--unique-for", "1h", check=0)
    (first,) = queuectl("cron", "run", "s", check=0).lines
    done = queuectl("cron", "run", "s", check=1)
    assert done.err.splitlines()[0] == f"error: the schedule 's' adds nothing now: job {first} has the key 'report'"
    assert queuectl("cron", "run", "s", "--json", check=1).out == ""
    assert queuectl("enqueue", "true", "--unique", "report", check=0).lines == [first]
    assert (
        queuectl("cron", "show", "s", "--json", check=0).json["ticks"][0]["reason"]
        == f"job {first} has the key 'report'"
    )


def test_a_job_of_a_schedule_joins_a_batch_and_takes_the_place_of_one_that_waits(queuectl: Program) -> None:
    options = ("--unique", "report", "--if-exists", "replace", "--batch", "reports")
    queuectl("cron", "add", "s", "@daily", "true", *options, check=0)
    first, second = (queuectl("cron", "run", "s", check=0).lines[0] for _ in range(2))
    assert queuectl("show", first, "--json", check=0).json["error"] == f"cancelled: replaced by {second}"
    assert queuectl("list", "--batch", "reports", "--quiet", check=0).lines == [second, first]
    queuectl("enqueue", "true", "--batch", "over", "--on-complete", "true", check=0)
    queuectl("worker", "start", "--drain", "--quiet", check=0)
    queuectl("cron", "add", "late", "@daily", "true", "--batch", "over", check=0)
    assert "the batch 'over' is complete" in queuectl("cron", "run", "late", check=1).err


@pytest.mark.parametrize(
    "arguments, error",
    [
        (("s", "61 * * * *", "true"), "schedule: minute: found '61', expected 0-59"),
        (("s", "0 0 31 2 *", "true"), "schedule: '0 0 31 2 *' never runs"),
        (("s", "* * * *", "true"), "schedule: found 4 fields in '* * * *', expected 5, or 6 with seconds"),
        (("s", "@daily", "true", "--tz", "Mars/Base"), "--tz: unknown time zone 'Mars/Base'"),
        (("s", "@daily", "true", "--tz", ""), "--tz: unknown time zone ''"),
        (("a b", "@daily", "true"), "name: not the name of a schedule: 'a b'"),
        (("s", "@daily"), "nothing to run"),
        (("s", "@daily", " "), "the command is blank"),
        (("s", "@daily", "true", "--overlap", "maybe"), "--overlap: expected skip, queue, allow, got 'maybe'"),
        (("s", "@daily", "true", "--catch-up", "all"), "--catch-up: expected none, one or all:N, got 'all'"),
        (("s", "@daily", "true", "--jitter", "soon"), "--jitter: expected a duration, got 'soon'"),
        (("s", "@daily", "true", "--until", "2001-01-01Z"), "--until: expected a time, got '2001-01-01Z'"),
        (("s", "@daily", "true", "--id", "x"), "--id: not for a schedule"),
        (("s", "@daily", "true", "--unique", "k", "--if-exists", "error"), "--if-exists: error is not for a schedule"),
        (("s", "@daily", "true", "--if-exists", "replace"), "if_exists: there is no unique_key"),
        (("s", "@daily", '{"command": "true", "run_after": "2030-01-01"}'), "--run-after: not for a schedule"),
        (("s", "@daily", "[]"), "a schedule has one job, not a list"),
        (("s", "@daily", "true", "--priority", "9999999"), "--priority: expected an integer from -1000000 to 1000000"),
        (("s", "@daily", '{"command": "true", "color": 1}'), "unknown field 'color'"),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_created(
    queuectl: Program, home: Path, arguments: tuple[str, ...], error: str
) -> None:
    done = queuectl("cron", "add", *arguments, check=2)
    assert done.err.startswith(f"error: {error}")
    assert len(done.err.splitlines()) == 2
    assert done.out == ""
    assert not home.exists()


@pytest.mark.parametrize("option", ["--id", "--run-at", "--after", "--after-any", "--after-fail"])
def test_an_option_that_a_schedule_always_rejects_is_not_in_the_help(queuectl: Program, option: str) -> None:
    listed = [word.rstrip(",") for line in queuectl("cron", "add", "--help", check=0).lines for word in line.split()]
    assert option not in listed
    value = "2030-01-01T00:00:00Z" if option == "--run-at" else "x"
    rejected = queuectl("cron", "add", "s", "@daily", "true", option, value, check=2)
    assert rejected.err.startswith(f"error: {option}: not for a schedule")


def test_an_end_before_the_first_time_is_refused(queuectl: Program) -> None:
    done = queuectl("cron", "add", "s", "@daily", "true", "--until", "2001-01-01", "--tz", "UTC", check=2)
    assert done.err.startswith("error: --until: 2001-01-01T00:00:00.000Z is before its first run")


def test_options_after_several_arguments_are_refused_with_a_hint(queuectl: Program) -> None:
    done = queuectl("cron", "add", "s", "@daily", "ls", "-l", "a", check=2)
    assert done.err.splitlines()[1].endswith("put -- before the command: queuectl cron add s @daily -- ls -l a")


def test_a_taken_name_is_refused_without_replace(queuectl: Program) -> None:
    first = add(queuectl)
    done = queuectl("cron", "add", "s", "@daily", "false", check=1)
    assert done.err == "error: there is a schedule 's' already\nhint: choose another name, or add --replace\n"
    queuectl("cron", "run", "s", check=0)
    queuectl("cron", "add", "s", "@daily", "false", "--replace", check=0)
    reported = queuectl("cron", "show", "s", "--json", check=0).json
    assert (reported["schedule"], reported["command"]) == ("@daily", "false")
    assert reported["created_at"] == first["created_at"]
    assert len(reported["ticks"]) == 1
    assert queuectl("cron", "add", "new", "@daily", "true", "--replace", "--quiet", check=0).out == "new\n"


# ── list, show, next ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_listing_schedules_creates_no_data_directory(queuectl: Program, home: Path) -> None:
    assert queuectl("cron", "list", "--json", check=0).json == []
    assert queuectl("cron", "list", "--quiet", check=0).out == ""
    for arguments in (("show", "s"), ("next", "s"), ("run", "s")):
        done = queuectl("cron", *arguments, check=1)
        assert done.err == "error: no schedule 's'\nhint: see all schedules: queuectl cron list\n"
    done = queuectl("cron", "remove", "s", "--json", check=1)
    assert done.json["refused"][0]["code"] == "schedule-not-found"
    assert not home.exists()


def test_the_list_has_the_last_run_its_result_and_the_next_run(queuectl: Program, start_worker: StartWorker) -> None:
    add(queuectl, "b", "@yearly", "exit 3", "--max-retries", "1")
    add(queuectl, "a", "every 1h")
    job_id = queuectl("cron", "run", "b", check=0).out.strip()
    start_worker("--drain").wait()
    assert queuectl("cron", "list", "--quiet", check=0).lines == ["a", "b"]
    a, b = queuectl("cron", "list", "--json", check=0).json
    assert a["last"] is None
    assert (b["last"]["job"], b["last"]["state"], b["last"]["exit_code"], b["last"]["by_hand"]) == (
        job_id,
        "dead",
        3,
        True,
    )
    header, first, second = queuectl("cron", "list", check=0).lines
    assert header.split() == ["NAME", "SCHEDULE", "ZONE", "LAST", "RESULT", "NEXT", "COMMAND"]
    assert "in 59m" in first
    assert "dead" in second
    assert "exit 3" in second


def test_next_runs_end_with_until(queuectl: Program) -> None:
    queuectl("cron", "add", "s", "0 12 1 1 *", "true", "--tz", "UTC", "--until", "2031-01-01", check=0)
    times = queuectl("cron", "next", "s", "-n", "3", "--json", check=0).json
    assert [moment(time).strftime("%m-%d %H:%M") for time in times] == ["01-01 12:00"] * 3
    assert all(
        moment(time) < moment("2031-01-01T00:00Z") for time in queuectl("cron", "next", "s", "-n", "99", "--json").json
    )
    assert len(queuectl("cron", "next", "s", check=0).lines) <= 6
    assert queuectl("cron", "next", "s", "-n", "0", "--quiet", check=0).out == ""
    assert "never" not in queuectl("cron", "next", "s", "-n", "0", check=0).out
    assert queuectl("cron", "next", "s", "-n", "-1", check=2).out == ""


def test_the_environment_is_hidden_unless_asked_for(queuectl: Program) -> None:
    add(queuectl, "s", "@daily", "true", "--env", "SECRET=abc")
    for arguments in (("list", "--json"), ("show", "s"), ("show", "s", "--json")):
        assert "abc" not in queuectl("cron", *arguments, check=0).out
    assert "SECRET=abc" in queuectl("cron", "show", "s", "--show-env", check=0).out


def test_a_terminal_shows_a_schedule_on_one_page(queuectl: Program, home: Path) -> None:
    add(queuectl, "s", "every 1h", "echo hi", "--jitter", "5m", "--until", "2999-01-01", "-q", "low")
    job_id = queuectl("cron", "run", "s", check=0).out.strip()
    terminal = Terminal(home, "cron", "show", "s")
    assert terminal.end() == 0
    shown = plain(terminal.shown)
    for arguments in ("s  on", "every 1h", "echo hi", "low", "up to 5m", "2999-01-01", job_id, "pending", "by hand"):
        assert arguments in shown


# ── change ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_schedule_adds_no_jobs(queuectl: Program) -> None:
    add(queuectl)
    assert queuectl("cron", "pause", "s", "nope", check=1).out == "paused s\n"
    reported = queuectl("cron", "show", "s", "--json", check=0).json
    assert (reported["paused"], reported["next_at"]) == (True, None)
    assert "paused" in queuectl("cron", "list", check=0).out
    assert len(queuectl("cron", "next", "s", "--json", check=0).json) == 5
    assert queuectl("cron", "pause", "s", "--json", check=0).json == {"done": ["s"], "refused": []}
    assert queuectl("cron", "resume", "s", check=0).out == "resumed s\n"
    assert queuectl("cron", "show", "s", "--json", check=0).json["next_at"] is not None
    assert queuectl("cron", "remove", "s", check=0).out == "removed s\n"
    assert queuectl("cron", "list", "--json", check=0).json == []


def test_cron_run_prints_as_enqueue_does(queuectl: Program) -> None:
    add(queuectl)
    job_id = queuectl("cron", "run", "s", check=0).out.strip()
    assert queuectl("list", "--quiet", check=0).lines == [job_id]
    reported = queuectl("cron", "run", "s", "--json", check=0).json
    assert (reported["cron"], reported["duplicate"], reported["state"]) == ("s", False, "pending")


def test_jobs_of_a_schedule_are_exported_and_backed_up(queuectl: Program, tmp_path: Path) -> None:
    add(queuectl)
    job_id = queuectl("cron", "run", "s", check=0).out.strip()
    queuectl("export", tmp_path / "jobs.json", check=0)
    queuectl("backup", tmp_path / "copy.db", check=0)
    other = Program(tmp_path / "other")
    other("import", tmp_path / "jobs.json", check=0)
    assert other("show", job_id, "--json", check=0).json["cron"] == "s"
    assert other("cron", "list", "--json", check=0).json == []
    other("restore", tmp_path / "copy.db", "--yes", check=0)
    assert other("cron", "list", "--json", check=0).json == queuectl("cron", "list", "--json", check=0).json


# ── with a worker ───────────────────────────────────────────────────────────────────────────────────────────────────


def ticks(queuectl: Program, name: str = "s") -> list[dict[str, Any]]:
    found = queuectl("cron", "show", name, "--json", check=0).json["ticks"]
    assert isinstance(found, list)
    return found


def test_a_running_worker_runs_a_new_schedule_in_time(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker()
    add(queuectl, "s", "every 1s")
    wait_until(lambda: len(ticks(queuectl)) >= 3, what="three ticks")
    for tick in ticks(queuectl):
        late = moment(tick["decided_at"]) - moment(tick["at"])
        assert 0 <= late.total_seconds() < 0.5, "at its moment, and not at the next poll"


def test_a_draining_worker_runs_due_schedules_and_exits(queuectl: Program, start_worker: StartWorker) -> None:
    due = moment(add(queuectl, "s", "every 1s")["next_at"])
    wait_until(lambda: datetime.now(UTC) > due, what="it to be due")
    assert start_worker("--drain").wait() == 0
    assert "completed" in [tick["state"] for tick in ticks(queuectl)]


def test_a_skipped_run_is_shown_with_its_reason(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--count", "2")
    add(queuectl, "s", "every 1s", "sleep 60")
    wait_until(lambda: any(tick["reason"] for tick in ticks(queuectl)), what="a tick to be skipped")
    (fired,) = (tick["job"] for tick in ticks(queuectl) if tick["job"])
    assert f"job {fired} of an earlier run has not ended" in queuectl("cron", "show", "s", check=0).out
    queuectl("cron", "remove", "s", check=0)
    queuectl("cancel", fired, check=0)


def test_a_job_that_waits_for_the_previous_one_shows_the_reason(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--count", "4")
    add(queuectl, "s", "every 1s", "sleep 60", "--overlap", "queue")

    def waiting() -> list[dict[str, Any]]:
        found = queuectl("list", "--state", "pending", "--json", check=0).json
        assert isinstance(found, list)
        return found

    wait_until(lambda: len(ticks(queuectl)) >= 3, what="three ticks")
    (job,) = waiting()
    assert (job["held"], job["reason"]) == (True, "waits until the job before it of the schedule s has ended")
    assert "schedule s" in queuectl("explain", job["id"], check=0).out
    (first,) = queuectl("list", "--state", "processing", "--quiet", check=0).lines
    queuectl("cron", "pause", "s", check=0)
    queuectl("cancel", first, check=0)
    wait_until(lambda: not waiting(), what="it to be let go")
    queuectl("cancel", job["id"], check=0)


# ── edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_edit_changes_the_given_options_and_keeps_the_others(queuectl: Program) -> None:
    words = ("--tz", "UTC", "--catch-up", "all:3", "--jitter", "5m", "--timeout", "1h", "--env", "A=b")
    queuectl("cron", "add", "a", "0 2 * * *", "make backup", *words, check=0)
    queuectl("cron", "pause", "a", check=0)
    changed = queuectl("cron", "edit", "a", "--schedule", "0 3 * * *", "--jitter", "none", "--json", check=0).json
    assert [changed[name] for name in ("schedule", "catch_up", "jitter", "paused")] == ["0 3 * * *", "all:3", 0, True]
    assert changed["next_at"] is None, "it stays paused"
    changed = queuectl("cron", "edit", "a", "--command", "true", "--max-attempts", "1", "--json", check=0).json
    assert (changed["command"], changed["job"]["timeout"], changed["job"]["max_retries"]) == ("true", "1h", 1)
    queuectl("cron", "resume", "a", check=0)
    before = queuectl("cron", "show", "a", "--json", check=0).json
    queuectl("cron", "edit", "a", "--overlap", "queue", check=0)
    after = queuectl("cron", "show", "a", "--json", check=0).json
    assert (after["overlap"], after["next_at"]) == ("queue", before["next_at"])
    assert "nothing to change in the schedule 'a'" in queuectl("cron", "edit", "a", check=2).err
    assert "--until: " in queuectl("cron", "edit", "a", "--until", "2001-01-01", check=2).err
    assert queuectl("cron", "edit", "none-such", "--tz", "UTC").code == 1
