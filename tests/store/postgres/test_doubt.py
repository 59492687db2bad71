"""Doubt: what may have been done is neither done twice nor forgotten."""

from __future__ import annotations

from queuectl.store.postgres.doubt import Doubt
from tests.factories import unknown_claim


def test_what_was_offered_and_is_held_is_given_out_once() -> None:
    doubt = Doubt()
    doubt.add(ends=[], offers=["x", "y"])
    held = [unknown_claim("a", token="x"), unknown_claim("b", token="somebody-elses")]
    doubt.look(held)
    assert not doubt.has_offers
    assert doubt.hand_out(5) == held[:1]
    assert doubt.hand_out(5) == []


def test_what_could_not_be_given_is_given_next_time_and_first() -> None:
    doubt = Doubt()
    doubt.add(ends=[], offers=["x", "y", "z"])
    claims = [unknown_claim(token, token=token) for token in ("x", "y", "z")]
    doubt.look(claims)
    doubt.take_back(doubt.hand_out(2))
    assert doubt.hand_out(2) == claims[:2]
    assert doubt.hand_out(2) == claims[2:]


def test_an_end_is_in_doubt_until_somebody_has_looked() -> None:
    doubt = Doubt()
    doubt.add(ends=["x"], offers=[])
    assert doubt.is_about_end("x")
    assert not doubt.is_about_end("y")
    doubt.forget_end("x")
    assert not doubt.is_about_end("x")
