"""The chain of the audit: nothing in it can be changed, removed or put elsewhere without leaving a trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.job.audit import NOTHING, Act, Actor, Ends, Entry, Link, alike, ends_of, faults, link_hash, record_of

ALICE = Actor(1000, "alice", "box", "queuectl")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


START = Link(0, NOTHING)


def chain(count: int, *, base: Link = START) -> tuple[list[Entry], Ends]:
    entries: list[Entry] = []
    before = base.hash
    for seq in range(base.seq + 1, base.seq + 1 + count):
        record = record_of(ALICE, Act("cancel", [f"job{seq}"]))
        before = link_hash(before, seq, 1000 + seq, record)
        entries.append(Entry(seq, 1000 + seq, record, before))
    return entries, Ends(base, Link(base.seq + count, before))


@given(VALUES)
def test_a_record_is_json_and_says_what_was_meant(value: object) -> None:
    said = json.loads(record_of(ALICE, Act("edit", ["j"], {"x": value}, None)))
    assert said["before"] == {"x": value}
    assert (said["who"]["user"], said["what"], said["subjects"], said["after"]) == ("alice", "edit", ["j"], None)


def test_a_hash_can_be_made_by_anybody() -> None:
    assert link_hash(NOTHING, 1, 5, "{}") == hashlib.sha256(f"{NOTHING}\n1\n5\n{{}}".encode()).hexdigest()


@pytest.mark.parametrize("base", [Link(0, NOTHING), Link(7, "f" * 64)])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_chain_that_was_left_alone_holds(count: int, base: Link) -> None:
    assert not list(faults(*chain(count, base=base)))


def changed(entries: list[Entry]) -> None:
    entries[2] = entries[2]._replace(record=entries[2].record.replace("alice", "mallory"))


def moved_in_time(entries: list[Entry]) -> None:
    entries[2] = entries[2]._replace(at=1)


def swapped(entries: list[Entry]) -> None:
    one, two = entries[1], entries[2]
    entries[1], entries[2] = two._replace(seq=one.seq), one._replace(seq=two.seq)


def rewritten(entries: list[Entry]) -> None:
    changed(entries)
    entries[2] = entries[2]._replace(hash=link_hash(entries[1].hash, *entries[2][:3]))


def added(entries: list[Entry]) -> None:
    entries.append(Entry(6, 9, "{}", link_hash(entries[-1].hash, 6, 9, "{}")))


@pytest.mark.parametrize(
    "harm, said",
    [
        (changed, "record 3 is not the one that was written"),
        (moved_in_time, "record 3 is not the one that was written"),
        (swapped, "record 2 is not the one that was written"),
        (rewritten, "record 4 is not the one that was written"),
        (lambda entries: entries.pop(2), "record 3 was removed"),
        (lambda entries: entries.__delitem__(slice(1, 3)), "record 2 to 3 was removed"),
        (lambda entries: entries.pop(), "the newest records, up to 5, were removed"),
        (lambda entries: entries.clear(), "the newest records, up to 5, were removed"),
        (added, "the end was changed"),
    ],
)
def test_whatever_is_done_to_it_is_found(harm: Callable[[list[Entry]], object], said: str) -> None:
    entries, ends = chain(5)
    harm(entries)
    found = list(faults(entries, ends))
    assert found
    assert found[0].what.startswith(said)


def test_what_all_have_is_said_once() -> None:
    assert alike({"a": 1, "b": 1}) == 1
    assert alike({"a": 1, "b": 2}) == {"a": 1, "b": 2}


def test_an_actor_is_named_by_user_or_number_and_by_token() -> None:
    assert str(ALICE) == "alice@box"
    assert str(ALICE._replace(user=None, token="ci")) == "1000@box (ci)"


def test_a_store_in_which_nothing_was_recorded_has_a_chain_of_nothing() -> None:
    assert ends_of(None) == Ends(START, START)
    assert ends_of((1, "a", 2, "b")) == Ends(Link(1, "a"), Link(2, "b"))
