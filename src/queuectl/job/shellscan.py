"""Where a command for the shell has placeholders, and whether the shell would read one word there.

A placeholder becomes a word in quotes of its own. Inside quotes those would end the ones around it, and what the line holds
would be a command. So this follows the shell's rules as far as they are the same in every shell; behind anything that is not
followed (a here-document, `…`, $(…) inside quotes, arithmetic) a placeholder is refused, rather than hoped for.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput

LONGEST_SHOWN: Final = 200
PLACEHOLDER: Final = re.compile(r"\{([/.n]?|[1-9][0-9]?)\}")

# ${name} is no more than a name.
_VARIABLE: Final = re.compile(r"\$\{(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}")
# What is not followed, outside quotes and inside "…".
_LOST: Final = re.compile(r"`|\$\(\(|\(\(|\$\{|\$\[|\$'|<<")
_LOST_IN_QUOTES: Final = re.compile(r"`|\$\(|\$\{|\$\[")
# After these a new word begins, so that a # begins a comment.
_BREAKS: Final = frozenset(" \t\n;|&()<>")


class Found(NamedTuple):
    start: int
    stop: int
    name: str  # what is inside the braces


class _In(Enum):
    PLAIN = auto()
    SINGLE = auto()
    DOUBLE = auto()
    COMMENT = auto()
    LOST = auto()


def find(text: str, *, columns: bool) -> list[Found]:
    """The placeholders in `text`, in order. `columns`: those with a number are some, and else plain text where the shell would
    quote it. Raises InvalidInput, which says where, and what to write instead."""
    scan = _Scan(text)
    found = []
    while scan.at < len(text):
        hit = PLACEHOLDER.match(text, scan.at)
        if hit is None or (hit[1].isdigit() and not columns and scan.place is not _In.PLAIN):
            scan.step()
            continue
        if hit[1].isdigit() and not columns:
            raise no_columns(hit[0])
        if scan.place is not _In.PLAIN:
            raise scan.refusal(hit)
        found.append(Found(hit.start(), hit.end(), hit[1]))
        scan.skip_word(hit.end())
    return found


def no_columns(placeholder: str) -> InvalidInput:
    hint = f"say what parts them, like --colsep ,; for plain text write \\{placeholder}"
    return InvalidInput(placeholder, "a column, and there is no --colsep", hint=hint)


class _Scan:
    def __init__(self, text: str) -> None:
        self.at = 0
        self.place = _In.PLAIN
        self._text = text
        self._since = 0  # where that place began
        self._is_fresh = True  # a word may begin here

    def step(self) -> None:
        char = self._text[self.at]
        match self.place:
            case _In.PLAIN:
                self._step_plain(char)
            case _In.DOUBLE:
                self._step_double(char)
            case _In.SINGLE:
                self._step_until(char, "'")
            case _In.COMMENT:
                self._step_until(char, "\n")
            case _:  # lost: to the end
                self.at += 1

    def skip_word(self, to: int) -> None:
        self.at = to
        self._is_fresh = False

    def refusal(self, hit: re.Match[str]) -> InvalidInput:
        where = f"{hit[0]} at character {hit.start() + 1}"
        begun = f"from character {self._since + 1} on"
        text = self._text
        match self.place:
            case _In.SINGLE | _In.DOUBLE:
                mark = text[self._since]
                instead = f"{text[: hit.start()]}{mark}{hit[0]}{mark}{text[hit.end() :]}"
                if len(instead) > LONGEST_SHOWN or not instead.isprintable():
                    instead = f"{mark}a {mark}{hit[0]}{mark} b{mark}"
                hint = f"it brings its own quotes: end these before it, and begin them again: {instead}"
                return InvalidInput(where, f"inside quotes, {begun}", hint=hint)
            case _In.COMMENT:
                return InvalidInput(where, f"inside a comment, {begun}", hint="take it out of the comment")
            case _:
                what = text[self._since] if text[self._since] == "`" else text[self._since : self._since + 2]
                hint = f'take it into a variable first, like f={hit[0]}; … "$f"'
                return InvalidInput(where, f"behind {what}, {begun}, where it may not be one word", hint=hint)

    def _step_plain(self, char: str) -> None:
        text, at = self._text, self.at
        if char == "\\":
            # A line that goes on in the next is the same line; anything else that is escaped belongs to a word.
            self._is_fresh = self._is_fresh and text[at + 1 : at + 2] == "\n"
            self.at += 2
        elif variable := _VARIABLE.match(text, at):
            self.skip_word(variable.end())
        elif _LOST.match(text, at):
            self._enter(_In.LOST)
        elif char == "'":
            self._enter(_In.SINGLE)
        elif char == '"':
            self._enter(_In.DOUBLE)
        elif char == "#" and self._is_fresh:
            self._enter(_In.COMMENT)
        else:
            self._is_fresh = char in _BREAKS
            self.at += 1

    def _step_double(self, char: str) -> None:
        if char == "\\":
            self.at += 2
        elif variable := _VARIABLE.match(self._text, self.at):
            self.at = variable.end()
        elif _LOST_IN_QUOTES.match(self._text, self.at):
            self._enter(_In.LOST)
        else:
            self._step_until(char, '"')

    def _step_until(self, char: str, end: str) -> None:
        if char == end:
            self.place = _In.PLAIN
            self._is_fresh = char == "\n"
        self.at += 1

    def _enter(self, place: _In) -> None:
        self.place, self._since = place, self.at
        self.at += 1
