from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.output.masking import STARS, Mark, Masking, parts_of
from tests.needs import FULL


def masked(pieces: Sequence[bytes], *secrets: bytes) -> tuple[bytes, list[Mark]]:
    """All that is given out, and the marks as if it were one piece."""
    masking = Masking(parts_of((f"s{number}", value) for number, value in enumerate(secrets)))
    out, marks = b"", list[Mark]()
    for number, piece in enumerate(pieces, 1):
        data, found = masking.feed(piece, is_last=number == len(pieces))
        marks += [mark._replace(at=mark.at + len(out)) for mark in found]
        out += data
    return out, marks


def put_back(out: bytes, marks: Sequence[Mark], *secrets: bytes) -> bytes:
    parts = parts_of((f"s{number}", value) for number, value in enumerate(secrets))
    text, place = b"", 0
    for at, length, pieces in marks:
        text += out[place:at] + b"".join(parts[part].text[start:stop] for part, start, stop in pieces)
        place = at + length
    return text + out[place:]


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
def test_secrets_become_stars_wherever_the_pieces_part(pieces: list[bytes], secrets: list[bytes], out: bytes) -> None:
    found, marks = masked(pieces, *secrets)
    assert found == out
    assert put_back(found, marks, *secrets) == b"".join(pieces)


def test_only_what_may_become_a_secret_is_held_back() -> None:
    masking = Masking(parts_of([("s", b"hunter2")]))
    assert masking.feed(b"Password: ") == (b"Password: ", [])
    assert masking.feed(b"who? hunt") == (b"who? ", [])
    assert masking.is_holding
    assert masking.feed(b"ing")[0] == b"hunting"


ALPHABET = st.sampled_from([b"a", b"b", b"ab", b"ba", b"\n", b"c"])
TEXTS = st.lists(ALPHABET, max_size=40).map(b"".join)
VALUES = st.lists(st.lists(ALPHABET, min_size=4, max_size=9).map(b"".join), min_size=1, max_size=3)


@settings(max_examples=20_000 if FULL else 400)
@given(text=TEXTS, secrets=VALUES, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_however_it_is_cut_nothing_of_a_secret_is_left_and_all_can_be_put_back(
    text: bytes, secrets: list[bytes], cuts: list[int]
) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[start:stop] for start, stop in zip(places, [*places[1:], len(text)], strict=True)]
    out, marks = masked(pieces, *secrets)
    assert out == masked([text], *secrets)[0]
    assert put_back(out, marks, *secrets) == text
    # Byte by byte: what is part of any secret is not given out.
    hidden = [False] * len(text)
    for part in parts_of((str(number), value) for number, value in enumerate(secrets)):
        for at in range(len(text)):
            if text.startswith(part.text, at):
                hidden[at : at + len(part.text)] = [True] * len(part.text)
    assert len(out.replace(STARS, b"")) == hidden.count(False)
