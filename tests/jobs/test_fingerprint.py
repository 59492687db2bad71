"""Failures of the same kind have the same fingerprint."""

from __future__ import annotations

import pytest

from queuectl.jobs.fingerprint import fingerprint, fold
from queuectl.jobs.states import State


def of(error: str | None, last_output: str | None = None, state: State = State.DEAD) -> str | None:
    return fingerprint(state, error, last_output)


@pytest.mark.parametrize(
    "one, other",
    [
        ("order 4711 not found", "order 12 not found"),
        ("took 3.25s of 5m", "took 12s of 5m"),
        ("2026-11-19T10:00:00.123Z no route", "2026-11-20 23:59:59 no route"),
        ("user 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "user 9B2504E0-4f89-11d3-9a0c-0305e82c3302"),
        ("segfault at 0x7ffd12 in main", "segfault at 0xdeadbeef in main"),
        ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8 failed", "commit 1a2b3c4 failed"),
        ("job k3j2h1g0aa failed", "job 4711 failed"),
        ("cannot open /var/tmp/a.csv: denied", "cannot open ./b/c.csv: denied"),
        ("cannot open 'a file.txt'", 'cannot open "/other/file"'),
        ("GET https://a.example/users/1?x=y failed", "GET http://b.example failed"),
        ("no mailbox for jane@a.example", "no mailbox for bob.smith@mail.b.example"),
        ('File "/app/a.py", line 12, in run', 'File "/app/b.py", line 3, in run'),
        ("src/app/main.py:12: error", "lib/x/y.py:7: error"),
        ("spaces   differ", "spaces differ"),
    ],
)
def test_failures_that_differ_in_ids_numbers_and_paths_are_one_kind(one: str, other: str) -> None:
    assert fold(one) == fold(other)
    assert of("exit code 1", one) == of("exit code 1", other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("HTTP 404", "HTTP 500"),
        ("status: 404 for /a", "status: 503 for /a"),
        ("HTTP/1.1 404 Not Found", "HTTP/1.1 500 Internal Server Error"),
        ("KeyError: 'user_id'", "KeyError: 'email'"),
        ("connection refused", "connection reset"),
        ("it can't read", "it won't read"),
        ("read/write error", "read/open error"),
    ],
)
def test_failures_that_differ_in_what_went_wrong_are_not(one: str, other: str) -> None:
    assert of("exit code 1", one) != of("exit code 1", other)


def test_the_error_counts_too() -> None:
    kinds = [
        "exit code 1",
        "exit code 2",
        "killed by signal 9 (SIGKILL)",
        "killed by signal 11 (SIGSEGV)",
        "timeout after 3s",
    ]
    assert len({of(error, "same") for error in kinds}) == len(kinds)
    assert of("timeout after 3s") == of("timeout after 10s")
    assert of("could not start: /a/b: no such directory") == of("could not start: /c: no such directory")
    assert of("a", "b") != of("a b")


def test_only_failures_have_one() -> None:
    assert of("exit code 1", state=State.FAILED) == of("exit code 1")
    assert of(None) == of("")
    for state in set(State) - {State.FAILED, State.DEAD}:
        assert of("exit code 1", state=state) is None


def test_a_message_of_any_kind_is_folded_at_once() -> None:
    for text in ("\ufffd" * 200, "'" * 200, "/" * 200, "a." * 100, "1a" * 100, "-" * 200, '"a' * 100, "a/" * 100):
        assert isinstance(of(text, text), str)
