"""Output: stored in pieces, up to a limit, and only by the worker that holds the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Released
from queuectl.store.store import Store
from queuectl.store.types import OUTPUT_AT_ONCE, End, OutputPiece, Printed
from tests.clock import FakeClock
from tests.factories import new_job, settlement
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, OK, PID, Hands

BYTES = bytes(range(256))


def keep(hands: Hands, claim: Claim, at: int, data: bytes, *, keep_from: int = 0) -> None:
    hands.store.claims.exchange(hands.name, outputs=[OutputPiece(claim, at, data, keep_from)])


@pytest.fixture
def claim(store: Store, worker: Hands) -> Claim:
    store.enqueue([new_job("a", max_retries=3, backoff_base=1.0)])
    return worker.claim_one()


def test_what_a_run_printed_comes_back_byte_by_byte_and_in_order(store: Store, worker: Hands, claim: Claim) -> None:
    pieces = [OutputPiece(claim, 256, b"\n", 0), OutputPiece(claim, 0, BYTES, 0)]
    store.claims.exchange("w1", outputs=pieces)
    keep(worker, claim, 257, b"\0")
    assert store.output("a", 1) == [Printed(0, BYTES), Printed(256, b"\n"), Printed(257, b"\0")]


def test_a_run_that_printed_nothing_has_no_output(store: Store, claim: Claim) -> None:
    assert store.output("a", 1) == store.output("a", 2) == store.output("no-such-job", 1) == []


def test_output_is_read_from_a_byte_on(store: Store, worker: Hands, claim: Claim) -> None:
    for at in (0, 4, 8):
        keep(worker, claim, at, b"abcd")
    assert [piece.at for piece in store.output("a", 1, start=3)] == [0, 4, 8]
    assert [piece.at for piece in store.output("a", 1, start=4)] == [4, 8]
    assert [piece.at for piece in store.output("a", 1, start=11)] == [8]
    assert store.output("a", 1, start=12) == []


def test_many_pieces_are_read_some_at_a_time(store: Store, claim: Claim) -> None:
    store.claims.exchange("w1", outputs=[OutputPiece(claim, at, b"x", 0) for at in range(OUTPUT_AT_ONCE + 5)])
    first = store.output("a", 1)
    assert [piece.at for piece in first] == list(range(OUTPUT_AT_ONCE))
    assert len(store.output("a", 1, start=OUTPUT_AT_ONCE)) == 5


def test_what_need_not_be_kept_any_more_is_removed(store: Store, worker: Hands, claim: Claim) -> None:
    keep(worker, claim, 0, b"abcd")
    keep(worker, claim, 4, b"efgh")
    keep(worker, claim, 8, b"ijkl", keep_from=5)
    assert [piece.at for piece in store.output("a", 1)] == [4, 8]
    keep(worker, claim, 12, b"m", keep_from=8)
    assert [piece.at for piece in store.output("a", 1)] == [8, 12]


def test_the_same_piece_told_again_is_there_once(store: Store, worker: Hands, claim: Claim) -> None:
    keep(worker, claim, 0, b"abc")
    keep(worker, claim, 0, b"abcdef")
    keep(worker, claim, 0, b"ab")
    assert store.output("a", 1) == [Printed(0, b"abcdef")]


def test_what_comes_with_the_end_of_the_run_is_kept(store: Store, claim: Claim) -> None:
    end = End(claim, settlement(claim, OK), PID, 0, 0, 0, 4)
    done = store.claims.exchange("w1", outputs=[OutputPiece(claim, 0, b"last", 0)], ends=[end])
    assert [told for told, _ in done.settled] == [end]
    assert store.output("a", 1) == [Printed(0, b"last")]


def test_what_comes_after_the_end_changes_nothing(store: Store, worker: Hands, claim: Claim) -> None:
    keep(worker, claim, 0, b"abc")
    worker.end(claim)
    keep(worker, claim, 3, b"more", keep_from=3)
    assert store.output("a", 1) == [Printed(0, b"abc")]


def test_each_run_has_its_own_output(store: Store, worker: Hands, claim: Claim) -> None:
    keep(worker, claim, 0, b"one")
    worker.end(claim, Released(None))
    again = worker.claim_one()
    keep(worker, again, 0, b"two", keep_from=0)
    keep(worker, again, 3, b"!", keep_from=3)
    assert store.output("a", 1) == [Printed(0, b"one")]
    assert store.output("a", 2) == [Printed(3, b"!")]


def test_who_lost_the_job_can_neither_add_nor_remove_output(
    store: Store, worker: Hands, hire: Hire, claim: Claim
) -> None:
    keep(worker, claim, 0, b"abc")
    store.claims.rescue("w1", max_crashes=3)
    again = hire("w2").claim_one()
    keep(worker, claim, 3, b"more", keep_from=3)
    assert again.run == 2
    assert (store.output("a", 1), store.output("a", 2)) == ([Printed(0, b"abc")], [])


def test_a_worker_that_is_fenced_can_neither_add_nor_remove_output(store: Store, worker: Hands, claim: Claim) -> None:
    keep(worker, claim, 0, b"abc")
    store.claims.fence("w1")
    keep(worker, claim, 3, b"more", keep_from=3)
    assert store.output("a", 1) == [Printed(0, b"abc")]


def test_a_purged_job_takes_its_output_along(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a", max_retries=1)])
    claim = worker.claim_one()
    keep(worker, claim, 0, b"abc")
    worker.end(claim, BAD)
    store.purge(["a"])
    assert backend.rows("output") == []


def test_a_reset_removes_all_output(store: Store, worker: Hands, claim: Claim, backend: Backend) -> None:
    keep(worker, claim, 0, b"abc")
    worker.end(claim)
    store.reset()
    assert backend.rows("output") == []


def test_a_backup_has_the_output(
    store: Store, worker: Hands, claim: Claim, backend: Backend, clock: FakeClock, tmp_path: Path
) -> None:
    keep(worker, claim, 0, BYTES)
    store.backup(str(tmp_path / "copy.db"))
    copy = backend.open_copy(tmp_path / "copy.db", clock)
    assert copy.output("a", 1) == [Printed(0, BYTES)]
    copy.close()


def test_only_a_store_of_several_hosts_says_so(store: Store, backend: Backend) -> None:
    assert store.is_shared == (type(backend).__name__ == "PostgresBackend")


def test_the_latest_run_of_a_job_says_on_which_host_it_was_and_where_its_log_is(
    store: Store, worker: Hands, claim: Claim
) -> None:
    store.enqueue([new_job("b"), new_job("c")])
    worker.end(claim, OK)
    under_way = worker.claim_one()
    assert [one.log for one in store.latest_runs(["b"])] == [None]
    worker.start(under_way)
    found = {one.id: one for one in store.latest_runs(["a", "b", "c", "no-such-job"])}
    assert {job_id: one.log for job_id, one in found.items()} == {"a": claim.log, "b": under_way.log}
    assert {job_id: [one.run] for job_id, one in found.items()} == {"a": store.history("a"), "b": store.history("b")}
    assert store.latest_runs([]) == []
