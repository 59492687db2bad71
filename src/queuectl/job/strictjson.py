"""JSON as the standard has it, and nothing that would surprise later.

Refused beyond what is not JSON at all: duplicate keys, NaN and Infinity, numbers that do not fit, nesting beyond 100,
lone surrogates. The way of a good text is short, since a bulk enqueue goes it a million times; whatever is wrong is
looked for again, slowly, to say where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from queuectl.errors import InvalidJson
from queuectl.job.shown import cut

DEEPEST: Final = 100
LONGEST_NUMBER: Final = 400  # digits; a float has no more than 309 before its point

_BLANK: Final = " \t\n\r"
_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'


class _Refused(Exception):
    """Raised by the hooks, which know the offending text but not where it stands."""

    def __init__(self, problem: str, token: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.token = token


class _DuplicateKey(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateKey
    return fields


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise _Refused("a number of absurd length", digits)
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > LONGEST_NUMBER:
        raise _Refused("a number of absurd length", digits)
    value = float(digits)
    if value in {float("inf"), float("-inf")}:
        raise _Refused("a number too large", digits)
    return value


def _constant(word: str) -> NoReturn:
    raise _Refused(f"{word} is not JSON", word)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
_raw_decode: Final = _DECODER.raw_decode


def parse_json(text: str) -> object:
    """The value that `text` holds. Raises InvalidJson with line, column and the offending text; never anything else."""
    # No text with fewer brackets can be nested deeper.
    if text.count("{") + text.count("[") > DEEPEST:
        _check_depth(text)
    try:
        value, end = _raw_decode(text, len(text) - len(text.lstrip(_BLANK)))
    except json.JSONDecodeError as error:
        raise _invalid(text, error.pos, error.msg[:1].lower() + error.msg[1:].removesuffix(" at")) from error
    except _DuplicateKey as error:
        at, key = next(_duplicate_keys(text))
        raise _invalid(text, at, f"duplicate key {cut(key)!r}") from error
    except _Refused as refused:
        raise _invalid(text, _position(text, refused.token), refused.problem) from refused
    if end != len(text) and text[end:].strip(_BLANK):
        raise _invalid(text, len(text) - len(text[end:].lstrip(_BLANK)), "more after the end")
    if not text.isascii() or "\\u" in text:
        _check_surrogates(text)
    return value


def _invalid(text: str, at: int, problem: str) -> InvalidJson:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    rest = text[at:].split("\n", 1)[0]
    found = repr(cut(rest)) if rest else "the end of the text" if at >= len(text) else "the end of the line"
    return InvalidJson(
        f"not valid JSON: {problem}, line {line} column {column}, at {found}",
        hint='a job looks like {"command": "echo hi", "priority": 5}; quote it with \' \' for the shell',
    )


def _check_depth(text: str) -> None:
    depth = 0
    for token in re.finditer(rf"{_STRING}|[\[{{]|[\]}}]", text):
        if token[0] in "{[":
            depth += 1
            if depth > DEEPEST:
                raise _invalid(text, token.start(), f"nested deeper than {DEEPEST} levels")
        elif token[0] in "}]":
            depth -= 1


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _invalid(text, error.start, "a lone surrogate") from error
    high: re.Match[str] | None = None
    for escape in re.finditer(r"\\(?:u([0-9a-fA-F]{4})|.)", text):
        code = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= code <= 0xDFFF
        is_pair = is_low and high is not None and high.end() == escape.start()
        if high is not None and not is_pair:
            raise _invalid(text, high.start(), "a lone surrogate")
        if is_low and not is_pair:
            raise _invalid(text, escape.start(), "a lone surrogate")
        high = escape if 0xD800 <= code <= 0xDBFF else None
    if high is not None:
        raise _invalid(text, high.start(), "a lone surrogate")


def _duplicate_keys(text: str) -> Iterator[tuple[int, str]]:
    """Where a key comes a second time in its object. The text is well formed up to the first of them: ask for one."""
    open_objects: list[set[str]] = []
    for token in re.finditer(
        rf"({_STRING})([{_BLANK}]*:)?|[{{}}]", text
    ):  # pragma: no branch - nobody asks for the last
        if token[0] == "{":
            open_objects.append(set())
        elif token[0] == "}":
            open_objects.pop()
        elif token[2]:
            key = json.loads(token[1])
            if key in open_objects[-1]:
                yield token.start(), key
            open_objects[-1].add(key)


def _position(text: str, token: str) -> int:
    """Where `token`, a number or a word that the decoder met, stands outside of strings."""
    tokens = re.finditer(rf"{_STRING}|-?Infinity|NaN|[-+.0-9eE]+", text)
    return next(found.start() for found in tokens if found[0] == token)
