"""Templates: one command for each line of a list. A placeholder stands for the line, or for a part of it.

    {}  the line      {/}  its base name      {.}  without its extension      {n}  its number      {1} {2} …  its columns

In a command for the shell each becomes one quoted word, whatever the line holds. Where the shell would not read it as that it
is refused, see job/shellscan.py. In an argv, which no shell reads, it is put in as it is. A backslash before a placeholder
makes it plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
        self._literals = [""]
        self._names: list[str] = []

    def literal(self, text: str) -> None:
        self._literals[-1] += text

    def placeholder(self, name: str) -> None:
        self._names.append(name)
        self._literals.append("")

    @property
    def is_fixed(self) -> bool:
        return not self._names

    def fill(self, line: Line, put: Callable[[str], str]) -> str:
        pieces = [self._literals[0]]
        for name, literal in zip(self._names, self._literals[1:], strict=True):
            pieces += (put(_value(name, line)), literal)
        return "".join(pieces)


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


def _value(name: str, line: Line) -> str:
    match name:
        case "":
            return line.text
        case "n":
            return str(line.number)
        case "/":
            return _base(line.text)
        case ".":
            return _stem(line.text)
        case _:
            columns = line.columns or ()
            if int(name) > len(columns):
                raise InvalidInput(
                    f"{{{name}}}", f"the line has {len(columns)} columns", hint="check --colsep, or the line"
                )
            return columns[int(name) - 1]


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _stem(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    # A name that only begins with dots has no extension: .profile, ..
    return folder + slash + stem if dot and stem.strip(".") else path
