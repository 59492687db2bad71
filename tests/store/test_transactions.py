"""What a transaction does to the counts."""

from __future__ import annotations

from queuectl.store.transactions import NO_RUN, OUTSIDE, Transitions


def test_equal_moves_become_one_row() -> None:
    moves = Transitions()
    moves.add("mail", OUTSIDE, "pending", jobs=3)
    moves.add("mail", OUTSIDE, "pending")
    moves.add("mail", "processing", "failed", ending="timeout")
    moves.add("mail", "processing", "failed", ending="failed")
    assert moves.rows() == [
        ("mail", OUTSIDE, "pending", NO_RUN, 4),
        ("mail", "processing", "failed", "timeout", 1),
        ("mail", "processing", "failed", "failed", 1),
    ]


def test_a_transaction_that_moves_nothing_writes_nothing() -> None:
    assert Transitions().rows() == []
