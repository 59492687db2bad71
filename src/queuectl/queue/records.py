"""What people hand to import, read piece by piece: a JSON array, JSON lines, settings, or the SQLite file of another tool.

A source yields `(number, fields)`, the number of the line, item or row, and can say afterwards which settings it held.
"""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from io import BufferedReader
from typing import Final

from queuectl.errors import (
    InvalidInput,
    InvalidItem,
    InvalidJson,
    InvalidLine,
    InvalidRow,
    QueuectlError,
    UnknownLayout,
)
from queuectl.job.strictjson import parse_json
from queuectl.queue.intake import Fields, as_fields, decode
from queuectl.store.foreign import HEADER, MAGIC, Foreign

LONGEST: Final = 64 * 2**20  # bytes of one job, with its history
AT_ONCE: Final = 2**18

_BLANK: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|"', re.DOTALL)
_OF_JOBS: Final = frozenset({"id", "command", "argv", "state", "kind"})


class Records(ABC):
    noun = "line"
    ignored: tuple[str, ...] = ()  # what was there and is of no use here

    def __init__(self) -> None:
        self.settings: dict[str, object] = {}  # complete when all records were read

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Fields]]: ...

    def blame(self, number: int, error: QueuectlError) -> QueuectlError:
        """`error`, with where it was found."""
        return InvalidLine(number, error)


def open_records(path: str, file: BufferedReader) -> Records:
    """By what the file begins with. `path` is how it was named, `-` for stdin."""
    header = file.peek(HEADER)[:HEADER]
    if header.startswith(MAGIC):
        if path == "-":
            raise UnknownLayout("stdin", "it is a SQLite file", hint="give its name: SQLite reads files only")
        return ForeignRecords(path, header)
    if file.peek(len(_BOM))[: len(_BOM)] == _BOM:
        file.read(len(_BOM))
    line = _skip_blank(file)
    first = file.peek(1)[:1]
    if first == b"[":
        return ArrayRecords(file, line)
    if first in (b"{", b""):
        return LineRecords(file, line)
    shown = "stdin" if path == "-" else path
    raise UnknownLayout(shown, "it is neither JSON nor a SQLite file")


def _skip_blank(file: BufferedReader) -> int:
    """To the first character that counts. The number of its line."""
    line = 1
    while chunk := file.peek(1):
        blank = len(chunk) - len(chunk.lstrip(_BLANK))
        line += file.read(blank).count(b"\n")
        if blank < len(chunk):
            break
    return line


class ForeignRecords(Records):
    noun = "row"

    def __init__(self, path: str, header: bytes) -> None:
        super().__init__()
        self._path = path
        self._header = header

    def __iter__(self) -> Iterator[tuple[int, Fields]]:
        with Foreign(self._path, self._header) as foreign:
            self.ignored = tuple(f"column {name}" for name in foreign.ignored)
            self.settings = foreign.settings()
            yield from enumerate(foreign.jobs(), 1)

    def blame(self, number: int, error: QueuectlError) -> QueuectlError:
        return InvalidRow(number, error)


class LineRecords(Records):
    """An object a line; or one object over all lines, a job or the settings of another tool."""

    def __init__(self, file: BufferedReader, first: int) -> None:
        super().__init__()
        self._file = file
        self._first = first

    def __iter__(self) -> Iterator[tuple[int, Fields]]:
        number = self._first
        while line := self._file.readline(LONGEST + 1):
            sprawls = number == self._first and not line.rstrip().endswith(b"}")
            if sprawls:
                line += self._file.read(LONGEST)
            if len(line) > LONGEST:
                raise InvalidLine(number, _too_long())
            if line.strip():
                fields = self._read(line, number, sprawls=sprawls)
                if number > self._first or not _OF_JOBS.isdisjoint(fields):
                    yield number, fields
                else:
                    self._be_alone(number)
                    self.settings = fields
            number += 1

    def _read(self, line: bytes, number: int, *, sprawls: bool) -> Fields:
        text = decode(line, first_line=number)
        if sprawls:
            return as_fields(parse_json("\n" * (number - 1) + text))
        try:
            return as_fields(parse_json(text))
        except InvalidJson as error:
            told = error.message.replace(", line 1 column", ", column")
            raise InvalidLine(number, InvalidJson(told, hint=error.hint)) from error

    def _be_alone(self, number: int) -> None:
        if self._file.read(AT_ONCE).strip():
            problem = InvalidInput("id", "missing", hint="import takes jobs with a past; for new ones use enqueue")
            raise InvalidLine(number, problem)


class ArrayRecords(Records):
    noun = "item"

    def __init__(self, file: BufferedReader, line: int) -> None:
        super().__init__()
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0  # up to where the text is read
        self._line, self._column = line, 1  # of that

    def __iter__(self) -> Iterator[tuple[int, Fields]]:
        self._step(1)  # the bracket
        number = 1
        if self._next() != "]":
            while True:
                yield number, self._element(number)
                mark = self._next()
                self._step(1)
                if mark == "]":
                    break
                if mark != ",":
                    raise self._broken(f"expected a comma or the end of the array after item {number}")
                number += 1
        else:
            self._step(1)
        if self._next(may_end=True):
            raise self._broken("more after the end of the array")

    def blame(self, number: int, error: QueuectlError) -> QueuectlError:
        return InvalidItem(number, error)

    def _element(self, number: int) -> Fields:
        if self._next() != "{":
            raise InvalidItem(number, InvalidJson("expected a JSON object", hint="as export writes them"))
        end = self._end_of_object(number)
        text, line, column = self._text[self._at : end], self._line, self._column
        self._step(end - self._at)
        try:
            return as_fields(parse_json(text))
        except InvalidJson:
            # Once more from where it stands in the file, so that line and column are those of the file.
            try:
                parse_json("\n" * (line - 1) + " " * (column - 1) + text)
            except InvalidJson as error:
                raise InvalidItem(number, error) from error
            raise

    def _end_of_object(self, number: int) -> int:
        depth, scanned = 0, self._at
        while True:
            for token in _TOKEN.finditer(self._text, scanned):
                if token[0] == '"':  # a string that has no end yet
                    break
                scanned = token.end()
                if token[0] in "{[":
                    depth += 1
                elif token[0] in "}]":
                    depth -= 1
                    if not depth:
                        return scanned
            if len(self._text) - self._at > LONGEST:
                raise InvalidItem(number, _too_long())
            scanned -= self._at
            if not self._more():
                raise self._broken(f"the text ends within item {number}")
            scanned += self._at

    def _next(self, *, may_end: bool = False) -> str:
        """The next character that counts, "" at the end."""
        while True:
            rest = self._text[self._at : self._at + 64]
            blank = len(rest) - len(rest.lstrip(" \t\r\n"))
            self._step(blank)
            if blank < len(rest):
                return self._text[self._at]
            if self._at == len(self._text) and not self._more():
                if may_end:
                    return ""
                raise self._broken("the text ends before the array does")

    def _step(self, size: int) -> None:
        if not self._text:
            self._more()
        passed = self._text[self._at : self._at + size]
        if "\n" in passed:
            self._line += passed.count("\n")
            self._column = len(passed) - passed.rfind("\n")
        else:
            self._column += size
        self._at += size

    def _more(self) -> bool:
        data = self._file.read(AT_ONCE)
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self._line + self._text.count("\n", self._at) + data.count(b"\n", 0, error.start)
            cause = InvalidInput(
                "text", f"byte 0x{error.object[error.start]:02x} is not UTF-8", hint="convert it: iconv"
            )
            raise InvalidLine(line, cause) from error
        self._text = self._text[self._at :] + text
        self._at = 0
        return bool(data)

    def _broken(self, problem: str) -> InvalidJson:
        where = f"line {self._line} column {self._column}"
        return InvalidJson(f"not valid JSON: {problem}, {where}", hint="nothing was imported; is the file complete?")


def _too_long() -> InvalidInput:
    return InvalidInput("job", f"takes more than {LONGEST // 2**20} MiB", hint="no job of an export is that long")
