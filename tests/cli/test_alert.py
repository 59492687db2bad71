"""queuectl alert, as a person types it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from queuectl.home import store_file
from queuectl.job.names import WEBHOOKS
from tests.hooks.receiver import Receiver, receiving, say
from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]

RUNS = ("--command", "page")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


# ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_alert_is_added_and_shown_as_it_was_said(queuectl: Program, tmp_path: Path) -> None:
    words = ("--dead", "10", "--within", "1h", "--queue", "mail", "--for", "90s", "--repeat", "2h")
    added = queuectl("alert", "add", "deaths", *words, *RUNS, "--json", check=0, cwd=tmp_path).json
    assert added == queuectl("alert", "show", "deaths", "--json", check=0).json
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
    assert header.split() == ["NAME", "STATE", "WHEN", "NOW", "CHECKED", "MESSAGE", "TELLS"]
    assert "10 jobs dead within 1h in mail" in row
    assert "never" in row


def test_an_alert_fires_at_its_threshold_unless_it_has_to_stay_so(queuectl: Program) -> None:
    for name, condition in (("a", ("--dead", "1")), ("b", ("--oldest", "10m")), ("c", ("--no-worker", "2m"))):
        queuectl("alert", "add", name, *condition, *RUNS, check=0)
    assert [one["for"] for one in queuectl("alert", "list", "--json", check=0).json] == [0, 0, 0]
    said = queuectl("alert", "add", "d", "--oldest", "10m", "--for", "1m", *RUNS, check=0).out
    assert said == "d: oldest job waits 10m, for 1m\n"


@pytest.mark.parametrize(
    "words, error",
    [
        (("a", *RUNS), "no condition for an alert"),
        (("a", "--dead", "1", "--oldest", "5m", *RUNS), "--dead and --oldest are two conditions for an alert"),
        (("a", "--dead", "1"), "whom to tell? nobody is named"),
        (("a", "--dead", "1", *RUNS, "--webhook", "https://example.org/"), "whom to tell? here are two"),
        (("a", "--dead", "0", *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--dead", "ten", *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--dead", "-1", *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--dead", "9" * 30, *RUNS), "--dead: expected a number of jobs from 1"),
        (("a", "--oldest", "0s", *RUNS), "--oldest: no time at all"),
        (("a", "--oldest", "soon", *RUNS), "--oldest: not a duration: 'soon'"),
        (("a", "--no-worker", "0", *RUNS), "--no-worker: no time at all"),
        (("a", "--no-worker", "1m", "--within", "1h", *RUNS), "--within: goes with --dead only"),
        (("a", "--dead", "1", "--within", "0", *RUNS), "--within: no time at all"),
        (("a", "--dead", "1", "--for", "-1s", *RUNS), "--for: a duration cannot be negative"),
        (("a", "--dead", "1", "--repeat", "0", *RUNS), "--repeat: no time at all"),
        (("a", "--dead", "1", "--queue", "no queue", *RUNS), "--queue: not the name of a queue"),
        (("a b", "--dead", "1", *RUNS), "name: not the name of an alert: 'a b'"),
        (("a", "--dead", "1", "--command", " "), "--command: blank"),
        (("a", "--dead", "1", "--webhook", "ftp://example.org"), "--webhook: not an http or https URL"),
        (("a", "--dead", "1", "--webhook", "https://u:p@example.org"), "--webhook: a URL with a user or a password"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(
    queuectl: Program, home: Path, words: tuple[str, ...], error: str
) -> None:
    done = queuectl("alert", "add", *words, check=2)
    assert done.err.startswith(f"error: {error}")
    assert len(done.err.splitlines()) == 2
    assert done.out == ""
    assert not home.exists()


def test_a_name_that_is_taken_is_refused(queuectl: Program) -> None:
    queuectl("alert", "add", "a", "--dead", "1", *RUNS, check=0)
    done = queuectl("alert", "add", "a", "--dead", "2", *RUNS, check=1)
    assert done.err == ("error: there is an alert 'a' already\nhint: choose another name, or queuectl alert remove a\n")
    assert queuectl("alert", "show", "a", "--json", check=0).json["threshold"] == 1


# ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_home_without_alerts_lists_none_and_is_not_made(queuectl: Program, home: Path) -> None:
    assert queuectl("alert", "list", "--json", check=0).json == []
    assert queuectl("alert", "check", "--json", check=0).json == []
    assert queuectl("alert", "check", check=0).out == ""
    for words in (("show", "a"), ("test", "a")):
        done = queuectl("alert", *words, check=1)
        assert done.err == "error: no alert 'a'\nhint: queuectl alert list shows the alerts there are\n"
    done = queuectl("alert", "remove", "a", "--json", check=1)
    assert done.json["refused"][0]["code"] == "alert-not-found"
    assert not home.exists()


def test_one_that_fires_is_told_by_the_check_and_shown_everywhere(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--id", "bad", "--max-retries", "1", "false", check=0)
    queuectl("worker", "start", "--drain", check=0)
    queuectl("alert", "add", "deaths", "--dead", "1", "--command", "echo told >> told", check=0, cwd=home)
    queuectl("alert", "add", "fine", "--dead", "5", "--command", "exit 9", check=0)
    assert queuectl("alert", "check", check=0).out == "deaths firing: 1 job is dead\n"
    assert queuectl("alert", "check", check=0).out == ""
    assert (home / "told").read_text() == "told\n"
    assert "1 alert firing: deaths: queuectl alert list" in queuectl("status", check=0).lines
    checks = {one["check"]: one for one in queuectl("doctor", "--json").json["checks"]}
    (finding,) = checks["alerts"]["findings"]
    assert (finding["code"], finding["severity"]) == ("alert-firing", "note")
    assert finding["message"] == "deaths fires: 1 job is dead"
    terminal = Terminal(home, "alert", "show", "deaths")
    assert terminal.end() == 0
    for words in ("deaths  firing", "1 job dead", "1 job is dead", "echo told >> told", str(home)):
        assert words in plain(terminal.shown)
    queuectl("dlq", "purge", "--all", "--yes", check=0)
    assert queuectl("alert", "check", check=0).out == "deaths over: 0 jobs are dead\n"
    assert "firing" not in queuectl("status", check=0).out
    assert (home / "told").read_text() == "told\n" * 2


def test_who_cannot_be_reached_makes_the_check_fail_and_is_kept(queuectl: Program, receiver: Receiver) -> None:
    receiver.answers = [say(500)]
    queuectl("alert", "add", "nobody", "--no-worker", "1ms", "--for", "0", "--webhook", receiver.url, check=0)
    done = queuectl("alert", "check", "--json", check=1)
    (told,) = done.json
    assert (told["name"], told["state"], told["job"]) == ("nobody", "firing", None)
    assert told["error"]["code"] == "call-unanswered"
    assert queuectl("alert", "show", "nobody", "--json", check=0).json["untold"] == 1
    findings = {one["check"]: one for one in queuectl("doctor", "--json").json["checks"]}["alerts"]["findings"]
    assert [finding["code"] for finding in findings] == ["alert-firing", "alert-untold"]
    shown = queuectl("alert", "show", "nobody", check=0).out
    assert "nobody has been reached yet" in shown
    assert "Told" not in shown
    assert queuectl("alert", "list", "--json", check=0).json[0]["message"] == "untold"


def test_a_message_that_waits_or_has_failed_for_good_is_never_said_to_have_arrived(
    queuectl: Program, home: Path, start_worker: StartWorker
) -> None:
    def calls(*words: str) -> Any:
        return queuectl("list", "--queue", WEBHOOKS, "--json", *words, check=0).json

    def message() -> str:
        one = queuectl("alert", "show", "deaths", "--json", check=0).json
        assert queuectl("alert", "list", "--json", check=0).json == [one]
        return str(one["message"])

    queuectl("enqueue", "--id", "bad", "--max-retries", "1", "false", check=0)
    queuectl("worker", "start", "--drain", check=0)
    queuectl("queue", "pause", WEBHOOKS, check=0)
    start_worker()
    queuectl("alert", "add", "deaths", "--dead", "1", "--command", "exit 9", check=0)
    (call,) = wait_until(calls, what="it to be told")
    assert message() == "queued"
    assert "queued, not delivered yet" in queuectl("alert", "show", "deaths", check=0).out
    with closing(sqlite3.connect(store_file(str(home)))) as db, db:
        db.execute(
            "update jobs set max_retries = 1 where id = ?", (call["id"],)
        )  # nobody else may, and ten tries take long
    queuectl("queue", "resume", WEBHOOKS, check=0)
    wait_until(lambda: calls("--state", "dead"), what="it to fail for good")
    assert message() == "dead"
    assert f"failed for good, nobody has it: queuectl logs {call['id']}" in queuectl("alert", "show", "deaths").out
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


def test_what_is_secret_in_a_url_is_shown_nowhere(queuectl: Program, receiver: Receiver) -> None:
    queuectl("alert", "add", "a", "--dead", "1", "--webhook", receiver.url, check=0)
    for words in (("list",), ("list", "--json"), ("show", "a"), ("show", "a", "--json"), ("test", "a")):
        assert "hidden" not in queuectl("alert", *words, check=0).out


def test_alerts_are_removed_and_what_is_not_there_is_refused(queuectl: Program) -> None:
    for name in ("a", "b", "c"):
        queuectl("alert", "add", name, "--dead", "1", *RUNS, check=0)
    assert queuectl("alert", "remove", "a", "nope", "b", check=1).out == "removed a\nremoved b\n"
    assert queuectl("alert", "list", "--quiet", check=0).lines == ["c"]
