"""Parse the input of enqueue: arguments, files of jobs, lists for templates, arrays, and files of variables.

Every JobInput yields `(number, fields)`: the number of the line or item, None for a single job. Errors in the text are raised
here, errors in a job by `validate`.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from queuectl.errors import (
    FileUnreadable,
    InvalidInput,
    InvalidItem,
    InvalidJson,
    InvalidLine,
    QueuectlError,
    UsageError,
)
from queuectl.store.enqueue import new_job_ids
from queuectl.text import parse_json
from queuectl.units import ARRAY_INDEX_VARIABLE, ARRAY_KEY_PREFIX, parse_array

# jobs/templates.py is imported by the functions that use it: a plain `enqueue` does without it.
if TYPE_CHECKING:
    from queuectl.jobs.templates import Template

Fields = dict[str, object]
Numbered = tuple[int | None, Fields]

WHITESPACE: Final = b" \t\r\n"
BOM: Final = b"\xef\xbb\xbf"


class InputFormat(StrEnum):
    JSON = "json"  # one object or one array
    JSONL = "jsonl"  # an object a line
    LINES = "lines"  # a shell command a line


class JobInput(ABC):
    """The fields of jobs, before validation; can be iterated more than once. `is_batch`: from an array or a document."""

    is_batch = True
    noun = "line"  # what the numbers count

    @abstractmethod
    def __iter__(self) -> Iterator[Numbered]: ...

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        """`error` with its location."""
        return error if number is None else InvalidLine(number, error)

    @property
    def size(self) -> int | None:
        """The approximate number of jobs; None if unknown."""
        return None


class ParsedJobs(JobInput):
    """Jobs from arguments, or from one JSON text."""

    noun = "item"

    def __init__(self, items: Sequence[Fields], *, is_batch: bool) -> None:
        self.items = items
        self.is_batch = is_batch

    def __iter__(self) -> Iterator[Numbered]:
        return ((number if self.is_batch else None, fields) for number, fields in enumerate(self.items, 1))

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        return error if number is None else InvalidItem(number, error)


class JsonLines(JobInput):
    def __init__(self, lines: Sequence[str], first: int = 1) -> None:
        self.lines = lines
        self.first = first

    def __iter__(self) -> Iterator[Numbered]:
        for number, line in enumerate(self.lines, self.first):
            if line and not line.isspace():
                try:
                    yield number, as_fields(parse_json(line))
                except InvalidJson as error:
                    # The line number within the line is always 1.
                    told = error.message.replace(", line 1 column", ", column")
                    raise InvalidLine(number, InvalidJson(told, hint=error.hint)) from error

    @property
    def size(self) -> int:
        return len(self.lines)


class CommandLines(JobInput):
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


def parse_arguments(words: Sequence[str]) -> ParsedJobs:
    """One argument: JSON or a shell command. Several: JSON that the shell has split, or an argv."""
    if looks_like_json(words[0]):
        return _parse_json_argument(" ".join(words))
    if len(words) == 1:
        return ParsedJobs([{"command": words[0]}], is_batch=False)
    return ParsedJobs([{"argv": list(words)}], is_batch=False)


def _parse_json_argument(text: str) -> ParsedJobs:
    first = text.lstrip()[0]
    hint = f"quote JSON with ' ' for the shell; for a shell command that starts with {first} use --command"
    try:
        return _parse_json_jobs(text)
    except InvalidJson as error:
        raise InvalidJson(error.message, hint=hint) from error
    except InvalidItem as error:
        raise InvalidItem(error.number, UsageError(error.cause.message, hint=hint)) from error


# ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_document(data: bytes, form: InputFormat | None) -> JobInput:
    """Parse a whole file. Without `form` its first non-blank character decides."""
    text = decode(data.removeprefix(BOM), first_line=1)
    match form or guess_format(data):
        case None:
            return ParsedJobs([], is_batch=True)
        case InputFormat.JSON:
            given = _parse_json_jobs(text) if text.strip() else ParsedJobs([], is_batch=True)
            return ParsedJobs(given.items, is_batch=True)
        case InputFormat.LINES:
            return CommandLines(text.split("\n"))
        case InputFormat.JSONL:
            # One object over several lines is accepted, too, unless the format was given.
            whole = None if form else _parse_multiline_object(text)
            return whole or JsonLines(text.split("\n"))


def guess_format(data: bytes) -> InputFormat | None:
    """From the first non-blank character; None if there is none yet."""
    first = data.removeprefix(BOM).lstrip(WHITESPACE)[:1]
    if not first:
        return None
    return InputFormat.JSON if first == b"[" else InputFormat.JSONL if first == b"{" else InputFormat.LINES


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


def _parse_json_jobs(text: str) -> ParsedJobs:
    value = parse_json(text)
    if isinstance(value, list):
        return ParsedJobs(list(_objects(value)), is_batch=True)
    return ParsedJobs([as_fields(value)], is_batch=False)


def _objects(values: Iterable[object]) -> Iterator[Fields]:
    for number, value in enumerate(values, 1):
        try:
            yield as_fields(value)
        except UsageError as error:
            raise InvalidItem(number, error) from error


def _parse_multiline_object(text: str) -> ParsedJobs | None:
    """The single object that `text` consists of; None if each line is an object."""
    lines = text.strip().split("\n")
    if len(lines) == 1 or lines[0].rstrip().endswith("}"):
        return None
    if any(line.startswith("{") for line in lines[1:]):
        return None
    return ParsedJobs(_parse_json_jobs(text).items, is_batch=True)


class ForEach(JobInput):
    """A job for each non-blank line."""

    def __init__(self, lines: Sequence[str], template: Template, *, colsep: str | None) -> None:
        self._lines = lines
        self._template = template
        self._colsep = colsep

    def __iter__(self) -> Iterator[Numbered]:
        from queuectl.jobs.templates import TemplateLine

        fill, colsep = self._template.fill, self._colsep
        for number, text in enumerate(self._lines, 1):
            if not self._is_blank(text):
                try:
                    fields = fill(TemplateLine(text, number, None if colsep is None else text.split(colsep)))
                except UsageError as error:
                    raise self.blame(number, error) from error
                yield number, fields

    @property
    def size(self) -> int:
        return len(self._lines)

    def _is_blank(self, text: str) -> bool:
        return not text or text.isspace()


class ForEachItem(ForEach):
    """A job for each non-empty item between NULs: file names, which may contain newlines."""

    noun = "item"

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        return error if number is None else InvalidItem(number, error)

    def _is_blank(self, text: str) -> bool:
        return not text  # a file may be called " "


class ForEachValue(ForEachItem):
    """A job for each item of a program, also for a blank one."""

    def _is_blank(self, text: str) -> bool:  # noqa: ARG002 # none is
        return False


class Array(JobInput):
    """The same job for each index, with the index in its environment."""

    noun = "index"

    def __init__(self, fields: Fields, indices: Sequence[int]) -> None:
        self._fields = fields
        self._indices = indices

    def __iter__(self) -> Iterator[Numbered]:
        env = self._fields.get("env")
        own = env if isinstance(env, dict) else {}
        for index in self._indices:
            # An invalid `env` is left for `validate` to report.
            yield (
                index,
                {
                    **self._fields,
                    "env": {**own, ARRAY_INDEX_VARIABLE: str(index)} if env is None or own is env else env,
                },
            )

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:  # noqa: ARG002 # the same for every index
        return error

    @property
    def size(self) -> int:
        return len(self._indices)


def parse_for_each(data: bytes, words: Sequence[str], *, nul: bool, colsep: str | None) -> JobInput:
    """One argument is a template for the shell, several are an argv."""
    separator = None if colsep is None else _parse_separator(colsep, subject="--colsep")
    template = _parse_template(words[0] if len(words) == 1 else words, columns=separator is not None)
    text = decode(data.removeprefix(BOM), first_line=1)
    if nul:
        return ForEachItem(text.split("\0"), template, colsep=separator)
    return ForEach([line.removesuffix("\r") for line in text.split("\n")], template, colsep=separator)


def for_each_item(items: Sequence[str], command: str | Sequence[str], *, colsep: str | None) -> JobInput:
    """The same for the APIs: a text is a template for the shell, a list is an argv."""
    separator = None if colsep is None else _parse_separator(colsep, subject="colsep")
    return ForEachValue(items, _parse_template(command, columns=separator is not None), colsep=separator)


def _parse_template(command: str | Sequence[str], *, columns: bool) -> Template:
    from queuectl.jobs.templates import ArgvTemplate, ShellTemplate

    return (
        ShellTemplate(command, columns=columns) if isinstance(command, str) else ArgvTemplate(command, columns=columns)
    )


def make_array(fields: Fields, text: str, *, flags: Fields, subject: str = "--array") -> JobInput:
    """With `%N` in `text` the jobs get a new concurrency key, of which at most N run at a time. `flags` override fields later."""
    indices, places = parse_array(text, subject=subject)
    if places is not None:
        if any(given.get(name) is not None for given in (fields, flags) for name in ("key", "places")):
            raise UsageError(
                f"a key and {subject} …%{places} at once: the array has a key of its own",
                hint="omit %N, and limit the key by its queue: queuectl queue set QUEUE --per-key N",
            )
        fields = {**fields, "key": f"{ARRAY_KEY_PREFIX}{new_job_ids(1)[0]}", "places": places}
    return Array(fields, indices)


def _parse_separator(text: str, *, subject: str) -> str:
    r"""`\t` means a tab, which is hard to type in a shell."""
    separator = text.replace("\\t", "\t")
    if not separator:
        raise InvalidInput(subject, "empty", hint=f"say what stands between two columns, like {subject} , or '\\t'")
    return separator


def read_env_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of `NAME=value` lines, as `enqueue --env-file` does, for the `env` of a job. Nothing is expanded.

    Raises FileUnreadable, or InvalidInput, which names the line.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_ENV_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileUnreadable(name, getattr(error, "strerror", None) or str(error)) from error
    return parse_env_file(data, subject=name)


MAX_ENV_FILE_BYTES: Final = 1 << 20  # the limit of all arguments of a program
ENV_FILE_HINT: Final = "a line is NAME=value, NAME='value', NAME=\"value\" or # a comment"

_ENV_NAME: Final = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)=")
_BLANK: Final = " \t"
# Escapes between double quotes; before any other letter a backslash is literal.
_ENV_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def parse_env_file(data: bytes, *, subject: str) -> dict[str, str]:
    """Parse variables; the last one of a name counts. Raises InvalidInput with the line, never with its text, which may be secret."""
    if len(data) > MAX_ENV_FILE_BYTES:
        raise InvalidInput(subject, "it is larger than 1 MiB", hint="put large values into a file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{subject}, line {line}", "it is not UTF-8", hint="save it as UTF-8") from error
    return dict(_EnvFileParser(text.replace("\r\n", "\n"), subject).variables())


class _EnvFileParser:
    def __init__(self, text: str, subject: str) -> None:
        self._text = text
        self._subject = subject
        self._at = 0
        self._line = 1

    def variables(self) -> list[tuple[str, str]]:
        found = []
        while self._at < len(self._text):
            self._skip(_BLANK)
            if self._peek() not in ("\n", "#", ""):
                found.append(self._variable())
            self._end_line()
        return found

    def _variable(self) -> tuple[str, str]:
        name = _ENV_NAME.match(self._text, self._at)
        if name is None:
            raise self._wrong("it does not start with NAME=")
        self._at = name.end()
        self._skip(_BLANK)
        match self._peek():
            case "'":
                value = self._quoted("'")
            case '"':
                value = self._quoted('"')
            case _:
                value = self._bare()
        if "\0" in value:
            raise self._wrong("it holds a NUL character")
        return name[1], value

    def _bare(self) -> str:
        """Up to the end of the line, or to a # after a blank."""
        end = self._line_end()
        value = self._text[self._at : end]
        self._at = end
        comment = re.search(r"(?:\A|[ \t])#", value)
        return (value if comment is None else value[: comment.start()]).rstrip(_BLANK)

    def _quoted(self, quote: str) -> str:
        """A quoted value, which may span several lines."""
        began, at, value = self._line, self._at + 1, []
        while (letter := self._text[at : at + 1]) != quote:
            if not letter:
                self._line = began
                raise self._wrong(f"there is no {quote} to end what begins here")
            if letter == "\\" and quote == '"' and (meant := _ENV_ESCAPES.get(self._text[at + 1 : at + 2])) is not None:
                value.append(meant)
                at += 2
                continue
            self._line += letter == "\n"
            value.append(letter)
            at += 1
        self._at = at + 1
        behind = self._text[self._at : self._line_end()]
        if behind.strip(_BLANK) and not re.match(r"[ \t]+#", behind):
            raise self._wrong(f"something follows the {quote} that ends the value")
        self._at += len(behind)
        return "".join(value)

    def _end_line(self) -> None:
        self._at = self._line_end() + 1
        self._line += 1

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, letters: str) -> None:
        while self._peek() and self._peek() in letters:
            self._at += 1

    def _wrong(self, problem: str) -> InvalidInput:
        return InvalidInput(f"{self._subject}, line {self._line}", problem, hint=ENV_FILE_HINT)
