"""What people hand to enqueue (words, a document, a stream of lines), read as the fields of jobs.

Everything here yields `(number, fields)`: the number of the line or item, None for a job that stands alone. What is wrong
with the text itself is said here; what is wrong with a job, `validate` says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from queuectl.errors import InvalidInput, InvalidItem, InvalidJson, InvalidLine, QueuectlError, UsageError

Fields = dict[str, object]
Numbered = tuple[int | None, Fields]

_BLANK: Final = b" \t\r\n"
BOM: Final = b"\xef\xbb\xbf"


class Format(StrEnum):
    JSON = "json"  # one object or one array
    JSONL = "jsonl"  # an object a line
    LINES = "lines"  # a shell command a line


class Intake(ABC):
    """Jobs as they were written; can be read more than once. `is_batch`: they came as an array or a document."""

    is_batch = True
    noun = "line"  # what the numbers count

    @abstractmethod
    def __iter__(self) -> Iterator[Numbered]: ...

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        """`error`, with where it was found."""
        return error if number is None else InvalidLine(number, error)

    @property
    def size(self) -> int | None:
        """About how many, if that is known."""
        return None


class Given(Intake):
    """Jobs that were read at once: from words, or from one JSON text."""

    noun = "item"

    def __init__(self, items: Sequence[Fields], *, is_batch: bool) -> None:
        self.items = items
        self.is_batch = is_batch

    def __iter__(self) -> Iterator[Numbered]:
        return ((number if self.is_batch else None, fields) for number, fields in enumerate(self.items, 1))

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        return error if number is None else InvalidItem(number, error)


class JsonLines(Intake):
    def __init__(self, lines: Sequence[str], first: int = 1) -> None:
        self.lines = lines
        self.first = first

    def __iter__(self) -> Iterator[Numbered]:
        from queuectl.job.strictjson import parse_json

        for number, line in enumerate(self.lines, self.first):
            if line and not line.isspace():
                try:
                    yield number, as_fields(parse_json(line))
                except InvalidJson as error:
                    # A line has one line: its own count of them would only contradict ours.
                    told = error.message.replace(", line 1 column", ", column")
                    raise InvalidLine(number, InvalidJson(told, hint=error.hint)) from error

    @property
    def size(self) -> int:
        return len(self.lines)


class CommandLines(Intake):
    def __init__(self, lines: Sequence[str], first: int = 1) -> None:
        self.lines = lines
        self.first = first

    def __iter__(self) -> Iterator[Numbered]:
        for number, line in enumerate(self.lines, self.first):
            if line and not line.isspace():
                yield number, {"command": line.removesuffix("\r")}

    @property
    def size(self) -> int:
        return len(self.lines)


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def read_words(words: Sequence[str]) -> Given:
    """One word: JSON or a shell command. Several: JSON that a shell has split, or an argv."""
    if looks_like_json(words[0]):
        return _read_json_word(" ".join(words))
    if len(words) == 1:
        return Given([{"command": words[0]}], is_batch=False)
    return Given([{"argv": list(words)}], is_batch=False)


def _read_json_word(text: str) -> Given:
    first = text.lstrip()[0]
    hint = f"quote JSON with ' ' for the shell; for a shell command that starts with {first} use --command"
    try:
        return _read_json(text)
    except InvalidJson as error:
        raise InvalidJson(error.message, hint=hint) from error
    except InvalidItem as error:
        raise InvalidItem(error.number, UsageError(error.cause.message, hint=hint)) from error


# ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def read_document(data: bytes, form: Format | None) -> Intake:
    """A whole file. Without `form` its first character that is not blank decides."""
    text = decode(data.removeprefix(BOM), first_line=1)
    match form or guess_format(data):
        case None:
            return Given([], is_batch=True)
        case Format.JSON:
            given = _read_json(text) if text.strip() else Given([], is_batch=True)
            return Given(given.items, is_batch=True)
        case Format.LINES:
            return CommandLines(text.split("\n"))
        case Format.JSONL:
            # One object over several lines is no batch of lines, unless somebody said so.
            whole = None if form else _read_sprawling_object(text)
            return whole or JsonLines(text.split("\n"))


def guess_format(data: bytes) -> Format | None:
    """By the first character that is not blank; None if there is none yet."""
    first = data.removeprefix(BOM).lstrip(_BLANK)[:1]
    if not first:
        return None
    return Format.JSON if first == b"[" else Format.JSONL if first == b"{" else Format.LINES


def decode(data: bytes, *, first_line: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        number = first_line + data.count(b"\n", 0, error.start)
        byte = data[error.start]
        cause = InvalidInput("text", f"byte 0x{byte:02x} is not UTF-8", hint="convert it, for example with iconv")
        raise InvalidLine(number, cause) from error


def as_fields(value: object) -> Fields:
    if isinstance(value, dict):
        return value
    raise InvalidJson("expected a JSON object", hint='a job looks like {"command": "echo hi"}')


def _read_json(text: str) -> Given:
    # Here, since json takes 2 ms to load, and a plain command needs none of it.
    from queuectl.job.strictjson import parse_json

    value = parse_json(text)
    if isinstance(value, list):
        return Given(list(_objects(value)), is_batch=True)
    return Given([as_fields(value)], is_batch=False)


def _objects(values: Iterable[object]) -> Iterator[Fields]:
    for number, value in enumerate(values, 1):
        try:
            yield as_fields(value)
        except UsageError as error:
            raise InvalidItem(number, error) from error


def _read_sprawling_object(text: str) -> Given | None:
    """The one object that `text` is, if its first line alone is none; None if these are lines."""
    lines = text.strip().split("\n")
    if len(lines) == 1 or lines[0].rstrip().endswith("}"):
        return None
    if any(line.startswith("{") for line in lines[1:]):
        return None
    return Given(_read_json(text).items, is_batch=True)
