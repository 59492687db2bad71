"""The query language of job lists: `queue:mail state:dead error:"timed out" -tag:test ffmpeg`.

A query is a list of terms. A term is a qualifier with values, or a word that the command contains. Values with spaces or commas are in
double quotes, in which `\\"` and `\\\\` stand for a quote and a backslash. The meaning of the terms is in operations/query.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.text import closest_match, short_repr

COMMAND: Final = "command"  # the qualifier of a word without one
# Each with what it means, for help and completion.
QUALIFIERS: Final = {
    "state": "any of these states",
    "queue": "any of these queues",
    "tag": "all of these tags",
    "batch": "any of these batches",
    "worker": "latest run by any of these workers",
    "fingerprint": "any of these fingerprints of an error",
    "error": "any of these texts in the error",
    "id": "ID begins with any of these",
    "since": "enqueued since this time, or at most this long ago",
    COMMAND: "all of these texts in the command, as words without a qualifier",
}

_QUALIFIER: Final = re.compile(r"(-?)([A-Za-z][A-Za-z_-]*):")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(["\\])')
_WORD: Final = re.compile(r"\S+")
_VALUE: Final = re.compile(r"[^\s,]+")
_SPACE: Final = re.compile(r"\s*")
_NEEDS_QUOTES: Final = re.compile(r'[\s",]|^$')
_LOOKS_LIKE_TERM: Final = re.compile(r"[-:]")


class Term(NamedTuple):
    qualifier: str
    values: tuple[str, ...]
    is_negated: bool = False


def parse_query(text: str, *, subject: str) -> list[Term]:
    """Raises InvalidInput. `subject` names the option or parameter in messages."""
    terms, at = [], _skip_space(text, 0)
    while at < len(text):
        found = _QUALIFIER.match(text, at)
        if found and not _is_address(text, found):
            minus, name = found.groups()
            _check_qualifier(name, subject)
            values, at = _parse_values(text, found.end(), name=name, subject=subject)
            terms.append(Term(name.lower(), values, is_negated=bool(minus)))
        else:
            word, at = _parse_value(text, at, _WORD, subject=subject)
            terms.append(Term(COMMAND, (word,)))
        at = _skip_space(text, at)
    return terms


def starts_with_qualifier(text: str) -> bool:
    found = _QUALIFIER.match(text)
    return found is not None and found[2].lower() in QUALIFIERS


def format_query(terms: Iterable[Term]) -> str:
    """The text that `parse_query` parses to these terms."""
    return " ".join(_format_term(term) for term in terms)


def _is_address(text: str, found: re.Match[str]) -> bool:
    """Whether it is the beginning of `https://…`, which is text."""
    return text.startswith("//", found.end()) and found[2].lower() not in QUALIFIERS


def _check_qualifier(name: str, subject: str) -> None:
    if name.lower() not in QUALIFIERS:
        nearest = closest_match(name.lower(), QUALIFIERS)
        known = f"did you mean '{nearest}:'?" if nearest else f"known: {', '.join(QUALIFIERS)}"
        hint = f"{known} Put text with a colon in double quotes"
        raise InvalidInput(subject, f"unknown qualifier {short_repr(name)}", hint=hint)


def _parse_values(text: str, at: int, *, name: str, subject: str) -> tuple[tuple[str, ...], int]:
    values = []
    while True:
        value, at = _parse_value(text, at, _VALUE, subject=subject)
        if not value:
            raise InvalidInput(subject, f"{name}: has an empty value", hint=f"for example {name}:a or {name}:a,b")
        values.append(value)
        if not text.startswith(",", at):
            return tuple(values), at
        at += 1


def _parse_value(text: str, at: int, plain: re.Pattern[str], *, subject: str) -> tuple[str, int]:
    """The value and where it ends. Empty if there is none."""
    if text.startswith('"', at):
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            raise InvalidInput(subject, "a closing quote is missing", hint='write \\" for a quote within quotes')
        return _ESCAPED.sub(r"\1", quoted[1]), quoted.end()
    found = plain.match(text, at)
    return (found[0], found.end()) if found else ("", at)


def _skip_space(text: str, at: int) -> int:
    return at + len(_SPACE.match(text, at)[0])  # type: ignore[index] # it matches anything


def _format_term(term: Term) -> str:
    is_word = term.qualifier == COMMAND and not term.is_negated
    if is_word:
        return " ".join(_format_value(value, is_word=True) for value in term.values)
    values = ",".join(_format_value(value, is_word=False) for value in term.values)
    return f"{'-' * term.is_negated}{term.qualifier}:{values}"


def _format_value(value: str, *, is_word: bool) -> str:
    if _NEEDS_QUOTES.search(value) or (is_word and _LOOKS_LIKE_TERM.search(value)):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return value
