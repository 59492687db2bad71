from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.errors import NotFound
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited
from queuectl.logs.writer import LogWriter
from queuectl.operations.inspect import show
from queuectl.operations.logs import LogView, follow_logs, read_log
from queuectl.store.store import Store
from queuectl.store.types import OutputPiece, Start
from tests.clock import FakeClock
from tests.operations.life import OK, claim, end, enqueue, register

BARE = LogView(markers=False)


class Writer:
    """A worker that writes logs, one step for each poll."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store = store
        self.home = home
        self.held: dict[str, Claim] = {}
        self.logs: dict[str, LogWriter] = {}

    def start(self) -> str:
        held = claim(self.store, self.home)
        self.held[held.id] = held
        head = b"--- START x run=%d worker=w1 ---\n" % held.run
        self.logs[held.id] = LogWriter(held.log, lambda: head, is_first=held.run == 1, limit=1 << 20)
        self.record(held.id)
        return held.id

    def record(self, job_id: str) -> None:
        self.store.claims.exchange("w1", starts=[Start(self.held[job_id], 1, 0.0, self.logs[job_id].log_from)])

    def write(self, job_id: str, data: bytes) -> None:
        was_silent = self.logs[job_id].log_from is None
        self.logs[job_id].append(data)
        if was_silent:
            self.record(job_id)

    def end(self, job_id: str, outcome: Exited = OK) -> None:
        log_to = self.logs[job_id].end(lambda: b"--- END x ---\n")
        end(self.store, self.held[job_id], outcome, span=(self.logs[job_id].log_from, log_to))


class Steps(FakeClock):
    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self.steps = list(steps)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        assert self.steps, "follows for ever"
        self.steps.pop(0)()


@pytest.fixture
def writer(store: Store, other: Store, home: Path) -> Writer:
    register(store, home)
    return Writer(other, home)


def followed(store: Store, clock: FakeClock, ids: list[str], view: LogView = BARE) -> list[tuple[str, bytes]]:
    return [(piece.id, piece.data) for piece in follow_logs(store, clock, ids, view, host="here")]


def test_a_job_that_never_ran_has_no_output(store: Store) -> None:
    enqueue(store, "a")
    assert list(read_log(store, "a", LogView(), host="here")) == []


def test_a_log_is_read_by_run_and_from_its_end(store: Store, writer: Writer) -> None:
    enqueue(store, "a", max_retries=3, backoff_base=1.0)
    for output in (b"1\n2\n", b"3\n4\n"):
        writer.start()
        writer.write("a", output)
        writer.end("a", Exited(1))
        store.retry(["a"], states=frozenset({store.get("a").state}))
    assert b"".join(read_log(store, "a", LogView(markers=False), host="here")) == b"1\n2\n3\n4\n"
    assert b"".join(read_log(store, "a", LogView(markers=False, tail=3), host="here")) == b"2\n3\n4\n"
    assert (
        b"".join(read_log(store, "a", LogView(run=2), host="here"))
        == b"--- START x run=2 worker=w1 ---\n3\n4\n--- END x ---\n"
    )
    with pytest.raises(NotFound, match="no run 3, it has had 2"):
        list(read_log(store, "a", LogView(run=3), host="here"))


def test_a_silent_run_has_markers_and_no_log(store: Store, writer: Writer) -> None:
    enqueue(store, "a")
    assert store.get("a").log is None
    writer.start()
    assert b"".join(read_log(store, "a", LogView(), host="here")).endswith(b" run=1 worker=w1 ---\n")
    assert store.get("a").log is None
    writer.end("a")
    first, last = b"".join(read_log(store, "a", LogView(), host="here")).splitlines()
    assert (first.split()[1], last.split()[1], last.split()[3]) == (b"START", b"END", b"rc=0")
    assert b"".join(read_log(store, "a", BARE, host="here")) == b""
    assert list((writer.home / "logs").iterdir()) == []
    assert show(store, "a", host="here", output_limit=100).output == ""


def test_a_job_that_prints_after_a_silent_run_has_the_markers_of_both(store: Store, writer: Writer) -> None:
    enqueue(store, "a", max_retries=3)
    writer.start()
    writer.end("a", Exited(1))
    writer.store.retry(["a"], states=frozenset({writer.store.get("a").state}))
    writer.start()
    writer.write("a", b"two\n")
    assert store.get("a").log == writer.held["a"].log
    writer.end("a")
    lines = b"".join(read_log(store, "a", LogView(), host="here")).splitlines()
    assert [line.split()[1] for line in lines if line != b"two"] == [b"START", b"END", b"START", b"END"]
    assert lines[3] == b"two"


def test_a_silent_run_is_followed_from_its_start_to_its_end(store: Store, writer: Writer) -> None:
    enqueue(store, "a")
    clock = Steps(lambda: None, writer.start, lambda: writer.end("a"))
    pieces = [data for _, data in followed(store, clock, ["a"], LogView())]
    assert [piece.split()[1] for piece in pieces] == [b"START", b"END"]


def test_following_lasts_from_before_the_start_to_the_final_state(store: Store, writer: Writer) -> None:
    enqueue(store, "a", max_retries=2)
    clock = Steps(
        lambda: None,
        writer.start,
        lambda: writer.write("a", b"one\n"),
        lambda: writer.end("a", Exited(1)),
        lambda: writer.store.retry(["a"], states=frozenset({writer.store.get("a").state})),
        writer.start,
        lambda: [writer.write("a", b"two\n"), writer.end("a")],
    )
    assert b"".join(data for _, data in followed(store, clock, ["a"])) == b"one\ntwo\n"
    assert clock.steps == []


def test_following_an_ended_job_prints_its_output_and_ends(store: Store, writer: Writer) -> None:
    enqueue(store, "a")
    writer.start()
    writer.write("a", b"done\n")
    writer.end("a")
    assert followed(store, Steps(), ["a"]) == [("a", b"done\n")]


def test_following_a_job_that_is_cancelled_before_its_first_run_ends(store: Store, other: Store) -> None:
    enqueue(store, "a")
    assert followed(store, Steps(lambda: other.cancel(["a"])), ["a"]) == []


def test_following_a_job_that_is_removed_ends(store: Store, other: Store) -> None:
    enqueue(store, "a")
    assert followed(store, Steps(other.reset), ["a"]) == []


def test_following_one_run_ends_with_it(store: Store, writer: Writer) -> None:
    enqueue(store, "a", max_retries=3)
    clock = Steps(writer.start, lambda: [writer.write("a", b"x"), writer.end("a", Exited(1))])
    assert followed(store, clock, ["a"], LogView(run=1, markers=False)) == [("a", b"x")]


def test_several_jobs_are_followed_side_by_side(store: Store, writer: Writer) -> None:
    enqueue(store, "a")
    enqueue(store, "b")
    clock = Steps(
        writer.start,
        writer.start,
        lambda: writer.write("b", b"b1\n"),
        lambda: writer.write("a", b"a1\n"),
        lambda: writer.end("a"),
        lambda: [writer.write("b", b"b2\n"), writer.end("b")],
    )
    assert followed(store, clock, ["a", "b"]) == [("b", b"b1\n"), ("a", b"a1\n"), ("b", b"b2\n")]


def test_a_copy_of_a_shared_store_has_the_output_of_other_hosts(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    held = claim(store, home)
    store.claims.exchange("w1", outputs=[OutputPiece(held, 0, b"far away\n", 0)])
    end(store, held, span=(50, 59))
    assert b"".join(read_log(store, "a", BARE, host="here")) == b"far away\n"
    assert show(store, "a", host="here", output_limit=5).output == "away\n"
