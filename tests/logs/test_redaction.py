from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.logs.redaction import SHORTEST_SECRET, STARS, Redactor
from tests.needs import FULL


def redacted(pieces: Sequence[bytes], *secrets: bytes) -> bytes:
    redactor = Redactor(secrets)
    return b"".join(redactor.feed(piece, is_last=number == len(pieces)) for number, piece in enumerate(pieces, 1))


@pytest.mark.parametrize(
    "pieces, secrets, out",
    [
        ([b"the password is hunter2!"], [b"hunter2"], b"the password is ***!"),
        ([b"hun", b"ter", b"2\n"], [b"hunter2"], b"***\n"),
        ([b"hun", b"ter", b"3\n"], [b"hunter2"], b"hunter3\n"),
        ([b"hunter2hunter2"], [b"hunter2"], b"******"),
        ([b"abcdefghi"], [b"abcdef", b"defghi"], b"***"),
        ([b"abcdef", b"ghi"], [b"abcdef", b"defghi"], b"***"),
        ([b"abcdef", b"gh!"], [b"abcdef", b"defghi"], b"***gh!"),
        ([b"abcd"], [b"abcdefgh", b"abcd"], b"***"),
        ([b"abcdef", b"gh"], [b"abcdefgh", b"abcd"], b"***"),
        ([b"aaaaaaa"], [b"aaaa"], b"***"),
        ([b"aaa", b"aaa", b"a"], [b"aaaa"], b"***"),
        (["größe".encode()[:3], "größe".encode()[3:]], ["größe".encode()], b"***"),
        ([b"-----BEGIN\nabcd\n-----END\n"], [b"-----BEGIN\nabcd\n-----END\n"], b"***\n***\n***\n"),
        ([b"abcd\r\n"], [b"abcd\r\nefgh"], b"***\r\n"),
        ([b"abc"], [b"abc"], b"abc"),
        ([b"a\nb\n"], [b"a\nb\nlonger"], b"a\nb\n"),
        ([b"x"], [b""], b"x"),
        ([b"hunter"], [b"hunter2"], b"hunter"),
    ],
)
def test_secrets_become_stars_however_the_output_is_divided(
    pieces: list[bytes], secrets: list[bytes], out: bytes
) -> None:
    assert redacted(pieces, *secrets) == out


def test_only_bytes_that_may_begin_a_secret_are_held_back() -> None:
    redactor = Redactor([b"hunter2"])
    assert redactor.feed(b"Password: ") == b"Password: "
    assert redactor.feed(b"who? hunt") == b"who? "
    assert redactor.is_holding
    assert redactor.feed(b"ing") == b"hunting"


ALPHABET = st.sampled_from([b"a", b"b", b"ab", b"ba", b"\n", b"c"])
TEXTS = st.lists(ALPHABET, max_size=40).map(b"".join)
VALUES = st.lists(st.lists(ALPHABET, min_size=4, max_size=9).map(b"".join), min_size=1, max_size=3)


@settings(max_examples=20_000 if FULL else 400)
@given(text=TEXTS, secrets=VALUES, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_no_byte_of_a_secret_is_written_however_the_output_is_divided(
    text: bytes, secrets: list[bytes], cuts: list[int]
) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[start:stop] for start, stop in zip(places, [*places[1:], len(text)], strict=True)]
    out = redacted(pieces, *secrets)
    assert out == redacted([text], *secrets)
    hidden = [False] * len(text)
    for secret in (line for value in secrets for line in value.splitlines() if len(line) >= SHORTEST_SECRET):
        for at in range(len(text)):
            if text.startswith(secret, at):
                hidden[at : at + len(secret)] = [True] * len(secret)
    assert len(out.replace(STARS, b"")) == hidden.count(False)
