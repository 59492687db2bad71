"""queuectl alert on the command line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from queuectl.paths import store_file
from queuectl.text import WEBHOOK_QUEUE
from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until
from tests.webhooks.receiver import Receiver, receiving, say

StartWorker = Callable[..., WorkerProcess]

RUNS = ("--command", "page")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


# ── edit, pause and resume ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_edit_changes_the_given_options_and_keeps_the_others(queuectl: Program) -> None:
    queuectl("alert", "add", "a", "--dead", "10", "--within", "1h", "--queue", "mail", "--repeat", "2h", *RUNS, check=0)
    changed = queuectl("alert", "edit", "a", "--dead", "20", "--queue", "none", "--json", check=0).json
    assert [changed[name] for name in ("threshold", "within", "queue", "repeat", "command")] == [
        20,
        3600,
        None,
        7200,
        "page",
    ]
    changed = queuectl("alert", "edit", "a", "--oldest", "5m", "--webhook", "https://h.example", "--json", check=0).json
    assert [changed[name] for name in ("kind", "threshold", "within", "command")] == ["oldest", 300, None, None]
    assert "nothing to change in the alert 'a'" in queuectl("alert", "edit", "a", check=2).err
    assert "--within: is allowed with --dead only" in queuectl("alert", "edit", "a", "--within", "1h", check=2).err
    entry = queuectl("audit", "--what", "alert edit", "--json", check=0).json[0]
    assert (entry["before"]["when"], entry["after"]["when"]) == ("20 jobs dead within 1h", "oldest job waits 5m")


def test_a_paused_alert_does_not_fire_until_it_is_resumed(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    queuectl("alert", "add", "late", "--oldest", "1ms", "--command", "true", check=0)
    assert queuectl("alert", "pause", "late", "none-such").code == 1
    assert queuectl("alert", "check", "--json", check=0).json == []
    assert queuectl("alert", "show", "late", "--json", check=0).json["state"] == "paused"
    queuectl("alert", "resume", "late", check=0)
    assert [one["state"] for one in queuectl("alert", "check", "--json", check=0).json] == ["firing"]
    queuectl("alert", "pause", "late", check=0)
    assert queuectl("status", check=0).out.count("firing") == 0


# ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_added_alert_is_shown_with_its_options(queuectl: Program, tmp_path: Path) -> None:
    arguments = ("--dead", "10", "--within", "1h", "--queue", "mail", "--for", "90s", "--repeat", "2h")
    added = queuectl("alert", "add", "deaths", *arguments, *RUNS, "--json", check=0, cwd=tmp_path).json
    assert {**added, "notifications": []} == queuectl("alert", "show", "deaths", "--json", check=0).json
    assert queuectl("alert", "list", "--json", check=0).json == [added]
    assert {name: value for name, value in added.items() if name != "created_at"} == {
        "name": "deaths",
        "kind": "dead",
        "threshold": 10,
        "within": 3600,
        "queue": "mail",
        "for": 90,
        "repeat": 7200,
        "webhook": None,
        "command": "page",
        "state": "ok",
        "value": None,
        "changed_at": None,
        "checked_at": None,
        "told_at": None,
        "message": None,
        "untold": 0,
    }
    assert queuectl("alert", "list", "--quiet", check=0).lines == ["deaths"]
    header, row = queuectl("alert", "list", check=0).lines
    assert header.split() == ["NAME", "STATE", "WHEN", "NOW", "CHECKED", "MESSAGE", "TARGET"]
    assert "10 jobs dead within 1h in mail" in row
    assert "never" in row


def test_an_alert_fires_at_its_threshold_unless_for_delays_it(queuectl: Program) -> None:
    for name, condition in (("a", ("--dead", "1")), ("b", ("--oldest", "10m")), ("c", ("--no-worker", "2m"))):
        queuectl("alert", "add", name, *condition, *RUNS, check=0)
    assert [one["for"] for one in queuectl("alert", "list", "--json", check=0).json] == [0, 0, 0]
    printed = queuectl("alert", "add", "d", "--oldest", "10m", "--for", "1m", *RUNS, check=0).out
    assert printed == "d: oldest job waits 10m, for 1m\n"


@pytest.mark.parametrize(
    "arguments, error",
    [
        (("a", *RUNS), "no condition for an alert"),
        (("a", "--dead", "1", "--oldest", "5m", *RUNS), "--dead and --oldest are two conditions for an alert"),
        (("a", "--dead", "1"), "neither a webhook nor a command for an alert"),
        (("a", "--dead", "1", *RUNS, "--webhook", "https://example.org/"), "both a webhook and a command for an alert"),
        (("a", "--dead", "0", *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--dead", "ten", *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--dead", "-1", *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--dead", "9" * 30, *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--oldest", "0s", *RUNS), "--oldest: must be longer than 0"),
        (("a", "--oldest", "soon", *RUNS), "--oldest: expected a duration, got 'soon'"),
        (("a", "--no-worker", "0", *RUNS), "--no-worker: must be longer than 0"),
        (("a", "--no-worker", "1m", "--within", "1h", *RUNS), "--within: is allowed with --dead only"),
        (("a", "--dead", "1", "--within", "0", *RUNS), "--within: must be longer than 0"),
        (("a", "--dead", "1", "--for", "-1s", *RUNS), "--for: a duration cannot be negative"),
        (("a", "--dead", "1", "--repeat", "0", *RUNS), "--repeat: must be longer than 0"),
        (("a", "--dead", "1", "--queue", "no queue", *RUNS), "--queue: not the name of a queue"),
        (("a b", "--dead", "1", *RUNS), "name: not the name of an alert: 'a b'"),
        (("a", "--dead", "1", "--command", " "), "--command: blank"),
        (("a", "--dead", "1", "--webhook", "ftp://example.org"), "--webhook: not an http or https URL"),
        (
            ("a", "--dead", "1", "--webhook", "https://u:p@example.org"),
            "--webhook: the URL contains a user or a password",
        ),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_created(
    queuectl: Program, home: Path, arguments: tuple[str, ...], error: str
) -> None:
    done = queuectl("alert", "add", *arguments, check=2)
    assert done.err.startswith(f"error: {error}")
    assert len(done.err.splitlines()) == 2
    assert done.out == ""
    assert not home.exists()


def test_a_name_that_is_taken_is_refused(queuectl: Program) -> None:
    queuectl("alert", "add", "a", "--dead", "1", *RUNS, check=0)
    done = queuectl("alert", "add", "a", "--dead", "2", *RUNS, check=1)
    assert done.err == ("error: there is an alert 'a' already\nhint: choose another name, or queuectl alert remove a\n")
    assert queuectl("alert", "show", "a", "--json", check=0).json["threshold"] == 1


# ── list, show, check ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_listing_alerts_creates_no_data_directory(queuectl: Program, home: Path) -> None:
    assert queuectl("alert", "list", "--json", check=0).json == []
    assert queuectl("alert", "check", "--json", check=0).json == []
    assert queuectl("alert", "check", check=0).out == ""
    for arguments in (("show", "a"), ("test", "a")):
        done = queuectl("alert", *arguments, check=1)
        assert done.err == "error: no alert 'a'\nhint: see all alerts: queuectl alert list\n"
    done = queuectl("alert", "remove", "a", "--json", check=1)
    assert done.json["refused"][0]["code"] == "alert-not-found"
    assert not home.exists()


def test_a_firing_alert_is_printed_by_check_and_shown_everywhere(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--id", "bad", "--max-retries", "1", "false", check=0)
    queuectl("worker", "start", "--drain", check=0)
    queuectl("alert", "add", "deaths", "--dead", "1", "--command", "echo told >> told", check=0, cwd=home)
    queuectl("alert", "add", "fine", "--dead", "5", "--command", "exit 9", check=0)
    assert queuectl("alert", "check", check=0).out == "deaths firing: 1 job is dead; the latest is bad: exit code 1\n"
    assert queuectl("alert", "check", check=0).out == ""
    assert (home / "told").read_text() == "told\n"
    assert "1 alert firing: deaths: queuectl alert list" in queuectl("status", check=0).lines
    checks = {one["check"]: one for one in queuectl("doctor", "--json").json["checks"]}
    (finding,) = checks["alerts"]["findings"]
    assert (finding["code"], finding["severity"]) == ("alert-firing", "note")
    assert finding["message"] == "deaths fires: 1 job is dead"
    terminal = Terminal(home, "alert", "show", "deaths")
    assert terminal.end() == 0
    for arguments in ("deaths  firing", "1 job dead", "1 job is dead", "echo told >> told", str(home)):
        assert arguments in plain(terminal.shown)
    queuectl("dlq", "purge", "--all", "--yes", check=0)
    assert queuectl("alert", "check", check=0).out == "deaths over: 0 jobs are dead\n"
    assert "firing" not in queuectl("status", check=0).out
    assert (home / "told").read_text() == "told\n" * 2


def test_a_failed_delivery_makes_the_check_fail_and_stays_to_be_sent(queuectl: Program, receiver: Receiver) -> None:
    receiver.answers = [say(500)]
    queuectl("alert", "add", "no-worker", "--no-worker", "1ms", "--for", "0", "--webhook", receiver.url, check=0)
    done = queuectl("alert", "check", "--json", check=1)
    (reported,) = done.json
    assert (reported["name"], reported["state"], reported["job"]) == ("no-worker", "firing", None)
    assert reported["error"]["code"] == "call-unanswered"
    assert queuectl("alert", "show", "no-worker", "--json", check=0).json["untold"] == 1
    findings = {one["check"]: one for one in queuectl("doctor", "--json").json["checks"]}["alerts"]["findings"]
    assert [finding["code"] for finding in findings] == ["alert-firing", "alert-untold"]
    shown = queuectl("alert", "show", "no-worker", check=0).out
    assert "not delivered yet" in shown
    assert "Told" not in shown
    assert queuectl("alert", "list", "--json", check=0).json[0]["message"] == "untold"


def test_a_queued_or_dead_notification_is_not_reported_as_delivered(
    queuectl: Program, home: Path, start_worker: StartWorker
) -> None:
    def calls(*arguments: str) -> Any:
        return queuectl("list", "--queue", WEBHOOK_QUEUE, "--json", *arguments, check=0).json

    def message() -> str:
        one = queuectl("alert", "show", "deaths", "--json", check=0).json
        assert [one] == [
            {**found, "notifications": one["notifications"]}
            for found in queuectl("alert", "list", "--json", check=0).json
        ]
        return str(one["message"])

    queuectl("enqueue", "--id", "bad", "--max-retries", "1", "false", check=0)
    queuectl("worker", "start", "--drain", check=0)
    queuectl("queue", "pause", WEBHOOK_QUEUE, check=0)
    start_worker()
    queuectl("alert", "add", "deaths", "--dead", "1", "--command", "exit 9", check=0)
    (call,) = wait_until(calls, what="it to be told")
    assert message() == "queued"
    assert "queued, not delivered yet" in queuectl("alert", "show", "deaths", check=0).out
    with closing(sqlite3.connect(store_file(str(home)))) as db, db:
        db.execute("update jobs set max_retries = 1 where id = ?", (call["id"],))  # ten attempts would take too long
    queuectl("queue", "resume", WEBHOOK_QUEUE, check=0)
    wait_until(lambda: calls("--state", "dead"), what="it to fail for good")
    assert message() == "dead"
    assert f"failed, not delivered: queuectl logs {call['id']}" in queuectl("alert", "show", "deaths").out
    findings = {one["check"]: one for one in queuectl("doctor", "--json").json["checks"]}["alerts"]["findings"]
    assert [finding["code"] for finding in findings] == ["alert-firing", "alert-unheard"]


def test_a_test_calls_or_runs_at_once_and_changes_no_alert(queuectl: Program, home: Path, receiver: Receiver) -> None:
    queuectl("alert", "add", "calls", "--dead", "1", "--webhook", receiver.url, check=0)
    queuectl("alert", "add", "runs", "--dead", "1", "--command", 'echo "$QUEUECTL_ALERT_STATE"', check=0)
    before = queuectl("alert", "list", "--json", check=0).json
    called = f"called http://127.0.0.1:{receiver.port}/…: 204"
    assert queuectl("alert", "test", "calls", check=0).lines == [called]
    assert queuectl("alert", "test", "calls", "--json", check=0).json == {
        "name": "calls",
        "state": "test",
        "text": called,
    }
    assert queuectl("alert", "test", "runs", check=0).out == 'ran echo "$QUEUECTL_ALERT_STATE": test\n'
    assert len(receiver.received) == 2
    assert queuectl("alert", "list", "--json", check=0).json == before
    receiver.answers = [say(404)]
    done = queuectl("alert", "test", "calls", check=1)
    assert done.err.startswith("error: 127.0.0.1: it answered 404 Not Found\nhint: ")
    queuectl("alert", "add", "fails", "--dead", "1", "--command", "echo why; exit 3", check=0)
    done = queuectl("alert", "test", "fails", check=1)
    assert done.err.startswith("error: the command of fails: it ended with exit code 3: why\nhint: ")


def test_secrets_in_a_url_are_redacted_everywhere(queuectl: Program, receiver: Receiver) -> None:
    queuectl("alert", "add", "a", "--dead", "1", "--webhook", receiver.url, check=0)
    for arguments in (("list",), ("list", "--json"), ("show", "a"), ("show", "a", "--json"), ("test", "a")):
        assert "hidden" not in queuectl("alert", *arguments, check=0).out


def test_alerts_are_removed_and_unknown_names_refused(queuectl: Program) -> None:
    for name in ("a", "b", "c"):
        queuectl("alert", "add", name, "--dead", "1", *RUNS, check=0)
    assert queuectl("alert", "remove", "a", "nope", "b", check=1).out == "removed a\nremoved b\n"
    assert queuectl("alert", "list", "--quiet", check=0).lines == ["c"]
