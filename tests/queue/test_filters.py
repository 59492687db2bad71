from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.lifecycle import State
from queuectl.queue.filters import parse_count, parse_filter, parse_sort
from queuectl.store.protocol import Filter, Sort


def test_states_are_taken_in_any_case_and_several_in_one_word() -> None:
    where = parse_filter(states=["Dead, FAILED", "pending"], queues=["a", "b"], tags=["x"])
    assert where == Filter(
        frozenset({State.DEAD, State.FAILED, State.PENDING}), frozenset({"a", "b"}), frozenset({"x"})
    )


def test_nothing_wanted_means_all_that_there_is() -> None:
    assert parse_filter() == Filter()


@pytest.mark.parametrize("text, nearest", [("deed", "'dead'"), ("complete", "'completed'"), ("", "known: blocked")])
def test_an_unknown_state_names_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match="unknown state") as caught:
        parse_filter(states=[text])
    assert nearest in caught.value.hint


@pytest.mark.parametrize(
    "text, sort, is_descending",
    [
        ("created", Sort.CREATED, True),
        ("-created", Sort.CREATED, False),
        ("-Priority", Sort.PRIORITY, False),
        ("run-at", Sort.RUN_AT, False),
        ("-queue", Sort.QUEUE, True),
    ],
)
def test_a_minus_reverses_a_sort_key(text: str, sort: Sort, is_descending: bool) -> None:
    assert parse_sort(text) == (sort, is_descending)


def test_an_unknown_sort_key_names_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        parse_sort("-prio")
    assert "priority" in caught.value.hint


def test_a_count_is_not_negative() -> None:
    assert parse_count(None, subject="--limit") is None
    assert parse_count(0, subject="--limit") == 0
    with pytest.raises(InvalidInput, match="--limit"):
        parse_count(-1, subject="--limit")


@pytest.mark.parametrize("value", ["5", 5.0, True, [5]])
def test_a_count_is_a_whole_number(value: object) -> None:
    with pytest.raises(InvalidInput, match="limit: expected a whole number"):
        parse_count(value, subject="limit")
