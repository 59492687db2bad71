"""Templates: one command for each line of a list. A placeholder stands for the line, or for a part of it.

    {}  the line      {/}  its base name      {.}  without its extension      {n}  its number      {1} {2} …  its columns

In a command for the shell each becomes one quoted word, whatever the line holds. Where the shell would not read it as that it
is refused, see job/shellscan.py. In an argv, which no shell reads, it is put in as it is. A backslash before a placeholder
makes it plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput, UsageError
from queuectl.job.shellscan import PLACEHOLDER, find, no_columns

_ESCAPED: Final = re.compile(rf"(\\?){PLACEHOLDER.pattern}")


class Line(NamedTuple):
    text: str
    number: int  # from 1
    columns: Sequence[str] | None  # None: nobody has said where they end


class _Text:
    """Literals, and between them placeholders by what is inside their braces."""

    def __init__(self) -> None:
        self._form = ""  # for the operator %, which is the fastest way to fill a hundred thousand
        self._values: list[Callable[[Line], str]] = []

    def literal(self, text: str) -> None:
        self._form += text.replace("%", "%%")

    def placeholder(self, name: str) -> None:
        self._form += "%s"
        self._values.append(_VALUES.get(name) or partial(_column, name))

    @property
    def is_fixed(self) -> bool:
        return not self._values

    def fill(self, line: Line, put: Callable[[str], str]) -> str:
        return self._form % tuple([put(value(line)) for value in self._values])


class ShellTemplate:
    def __init__(self, text: str, *, columns: bool) -> None:
        """Raises InvalidInput for a placeholder where the shell would not read one word, UsageError if there is none."""
        self._text = _Text()
        end = 0
        for start, stop, name in find(text, columns=columns):
            self._text.literal(text[end:start])
            self._text.placeholder(name)
            end = stop
        self._text.literal(text[end:])
        if self._text.is_fixed:
            raise UsageError(
                "no placeholder in the command: all jobs would be the same",
                hint="write {} where the line belongs, like 'gzip {}'",
            )

    def fill(self, line: Line) -> dict[str, object]:
        return {"command": self._text.fill(line, quoted)}


class ArgvTemplate:
    def __init__(self, words: Sequence[str], *, columns: bool) -> None:
        """Without a placeholder the line becomes the last word, as with xargs."""
        self._words = [_read_word(word, columns=columns) for word in words]
        if all(word.is_fixed for word in self._words):
            self._words.append(_read_word("{}", columns=columns))

    def fill(self, line: Line) -> dict[str, object]:
        return {"argv": [word.fill(line, str) for word in self._words]}


Template = ShellTemplate | ArgvTemplate


def quoted(word: str) -> str:
    """One word for a shell. Also what would need no quotes: `2` before a `>` would be no word, nor would `if` or `a=b`."""
    return "'" + word.replace("'", "'\\''") + "'"


def _read_word(word: str, *, columns: bool) -> _Text:
    text, end = _Text(), 0
    for hit in _ESCAPED.finditer(word):
        text.literal(word[end : hit.start()])
        if hit[1]:
            text.literal(hit[0][1:])
        elif hit[2].isdigit() and not columns:
            raise no_columns(hit[0])
        else:
            text.placeholder(hit[2])
        end = hit.end()
    text.literal(word[end:])
    return text


def _column(name: str, line: Line) -> str:
    columns = line.columns or ()
    if int(name) > len(columns):
        found = "one column" if len(columns) == 1 else f"{len(columns)} columns"
        raise InvalidInput(f"{{{name}}}", f"the line has {found}", hint="check --colsep, or the line")
    return columns[int(name) - 1]


def _text(line: Line) -> str:
    return line.text


def _number(line: Line) -> str:
    return str(line.number)


def _base(line: Line) -> str:
    return line.text.rstrip("/").rpartition("/")[2] or line.text


def _stem(line: Line) -> str:
    path = line.text
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    # A name that only begins with dots has no extension: .profile, ..
    return folder + slash + stem if dot and stem.strip(".") else path


# By what is inside the braces; all others are columns.
_VALUES: Final[dict[str, Callable[[Line], str]]] = {"": _text, "n": _number, "/": _base, ".": _stem}
