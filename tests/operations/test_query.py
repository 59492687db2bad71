from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import InvalidInput, UnknownName, UsageError
from queuectl.jobs.states import State
from queuectl.operations.query import parse_count, parse_filter, parse_sort, query_of
from queuectl.store.types import Filter, Sort
from tests.messages import assert_readable

NOW = 1_900_000_000_000


def never() -> int:
    raise AssertionError("the time is not needed")


def test_states_are_accepted_in_any_case_and_as_a_list() -> None:
    where = parse_filter(now_ms=never, states=["Dead, FAILED", "pending"], queues=["a", "b"], tags=["x"])
    assert where == Filter(
        frozenset({State.DEAD, State.FAILED, State.PENDING}), frozenset({"a", "b"}), frozenset({"x"})
    )


def test_an_empty_filter_matches_all_jobs() -> None:
    assert parse_filter(now_ms=never) == Filter(includes_webhooks=False)


@pytest.mark.parametrize("text, nearest", [("deed", "'dead'"), ("complete", "'completed'"), ("", "known: blocked")])
def test_an_unknown_state_is_rejected_with_the_closest_match(text: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match="unknown state") as caught:
        parse_filter(now_ms=never, states=[text])
    assert nearest in caught.value.hint


@pytest.mark.parametrize(
    "since, seconds_ago",
    [("90", 90), ("1h30m", 5400), (timedelta(days=2), 172_800), (0.5, 0.5), ("5000w", 3_024_000_000)],
)
def test_since_may_be_a_duration(since: object, seconds_ago: float) -> None:
    assert parse_filter(since=since, now_ms=lambda: NOW).since_ms == max(0, NOW - int(seconds_ago * 1000))


@pytest.mark.parametrize(
    "since", ["2026-11-15T20:30:00Z", " 2026-11-15 22:30+02:00 ", datetime(2026, 11, 15, 20, 30, tzinfo=UTC)]
)
def test_since_may_be_a_time(since: object) -> None:
    assert parse_filter(since=since, now_ms=never).since_ms == 1_794_774_600_000


@pytest.mark.parametrize("since", ["yesterday", "-5m", "", "2026-13-01", True, "5 parsecs"])
def test_any_other_since_is_rejected(since: object) -> None:
    with pytest.raises(InvalidInput, match=r"^--since: "):
        parse_filter(since=since, now_ms=never, dashes="--")


def test_match_is_a_literal_text() -> None:
    assert parse_filter(match=" 100% _é ", now_ms=never) == Filter(match=(" 100% _é ",), includes_webhooks=False)


def test_a_query_adds_its_terms_to_the_other_conditions() -> None:
    query = 'queue:mail,web state:queued,DEAD error:"timed out" -tag:slow -state:done tag:eu id:ab since:2d IMG "a b"'
    where = parse_filter(query=query, queues=["x"], tags=["y"], match="convert", now_ms=lambda: NOW)
    assert where == Filter(
        frozenset({State.PENDING, State.DEAD}),
        frozenset({"mail", "web", "x"}),
        frozenset({"eu", "y"}),
        errors=frozenset({"timed out"}),
        prefixes=("ab",),
        since_ms=NOW - 172_800_000,
        match=("convert", "IMG", "a b"),
        unless=Filter(frozenset({State.COMPLETED}), tags=frozenset({"slow"})),
    )


@pytest.mark.parametrize(
    "query, problem",
    [
        ("queu:mail", "--where: unknown qualifier 'queu'"),
        ("-state:deed", "unknown state 'deed'"),
        ("state:a,", "--where: state: has an empty value"),
        ('""', "--match: expected some text, got ''"),
        ("since:soon", "--since: expected a time or a duration, got 'soon'"),
        ("since:1d since:2d", "--since: given more than once"),
        ("x" * 20_001, "--match: longer than 20,000 bytes"),
        (5, "--where: expected a query, got 5"),
        ("", "--where: expected a query, got ''"),
        (" \t", "--where: expected a query, got ' \\t'"),
    ],
)
def test_an_invalid_query_is_rejected(query: object, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filter(query=query, now_ms=never, dashes="--")
    assert caught.value.message == problem
    assert_readable(caught.value)


NAMES = st.text('ab: ",-\\\n%/ü', min_size=1, max_size=6)
PARTS = {
    "states": st.frozensets(st.sampled_from(State), max_size=3),
    **dict.fromkeys(
        ("queues", "tags", "batches", "fingerprints", "errors", "workers"), st.frozensets(NAMES, max_size=2)
    ),
    **dict.fromkeys(("match", "prefixes"), st.lists(NAMES, max_size=2).map(tuple)),
    "since_ms": st.none() | st.integers(0, NOW),
}
FILTERS = st.fixed_dictionaries(PARTS).map(lambda parts: Filter(**parts))


@settings(max_examples=60)
@given(where=FILTERS, unless=st.none() | FILTERS)
def test_the_query_of_a_filter_is_parsed_to_this_filter(where: Filter, unless: Filter | None) -> None:
    where = where._replace(
        includes_webhooks=bool(where.queues or where.tags or where.prefixes),
        unless=None if unless == Filter() else unless,
    )
    assert parse_filter(query=query_of(where) or None, now_ms=never) == where


@pytest.mark.parametrize("match", ["", "a\0b", "\udcff", 5, b"x"])
def test_an_impossible_match_is_rejected(match: object) -> None:
    with pytest.raises(InvalidInput, match=r"^match: "):
        parse_filter(match=match, now_ms=never)


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


def test_an_unknown_sort_key_is_rejected_with_the_closest_match() -> None:
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
    with pytest.raises(InvalidInput, match="limit: expected an integer of at least 0"):
        parse_count(value, subject="limit")
