"""Doubt: what may have been done is neither done twice nor forgotten."""

from __future__ import annotations

from queuectl.store.postgres.exchange import UnknownCommit
from tests.factories import unknown_claim


def test_what_was_offered_and_is_held_is_given_out_once() -> None:
    doubt = UnknownCommit()
    doubt.add(ends=[], offers=["x", "y"])
    held = [unknown_claim("a", token="x"), unknown_claim("b", token="other")]
    doubt.find_claims(held)
    assert not doubt.has_offers
    assert doubt.take_claims(5) == held[:1]
    assert doubt.take_claims(5) == []


def test_what_could_not_be_given_is_given_next_time_and_first() -> None:
    doubt = UnknownCommit()
    doubt.add(ends=[], offers=["x", "y", "z"])
    claims = [unknown_claim(token, token=token) for token in ("x", "y", "z")]
    doubt.find_claims(claims)
    doubt.return_claims(doubt.take_claims(2))
    assert doubt.take_claims(2) == claims[:2]
    assert doubt.take_claims(2) == claims[2:]


def test_an_end_is_unknown_until_it_was_looked_up() -> None:
    doubt = UnknownCommit()
    doubt.add(ends=["x"], offers=[])
    assert doubt.is_about_end("x")
    assert not doubt.is_about_end("y")
    doubt.forget_end("x")
    assert not doubt.is_about_end("x")
