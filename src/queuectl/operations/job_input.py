"""Parse the input of enqueue beyond one command: files and streams of jobs, lists for templates, arrays, and files of variables.

Every JobInput yields `(number, fields)`: the number of the line or item, None for a single job. Errors in the text are raised
here, errors in a job by `validate`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from queuectl.errors import (
    DuplicateId,
    FileUnreadable,
    InvalidInput,
    InvalidItem,
    InvalidJson,
    InvalidLine,
    KeyTaken,
    QueuectlError,
    UsageError,
)
from queuectl.jobs.spec import Defaults, NewJob
from queuectl.operations.enqueue import (
    Fields,
    Flags,
    JobInput,
    Numbered,
    Queued,
    job_list,
    make_jobs,
    queued,
    single_job,
    with_location,
)
from queuectl.store.enqueue import new_job_ids
from queuectl.text import parse_json
from queuectl.units import ARRAY_INDEX_VARIABLE, ARRAY_KEY_PREFIX, parse_array

# jobs/templates.py is imported by the functions that use it: a plain `enqueue` does without it.
if TYPE_CHECKING:
    from queuectl.clock import Clock
    from queuectl.jobs.templates import Template
    from queuectl.store.enqueue import EnqueueStore

WHITESPACE: Final = b" \t\r\n"
BOM: Final = b"\xef\xbb\xbf"


class InputFormat(StrEnum):
    JSON = "json"  # one object or one array
    JSONL = "jsonl"  # an object a line
    LINES = "lines"  # a shell command a line


def job_lines(lines: Sequence[str], form: InputFormat, first: int = 1) -> JobInput:
    """A job for each line that is not blank. `first`: the number of the first line."""
    read = parse_json_line if form is InputFormat.JSONL else _parse_command_line

    def items() -> Iterator[Numbered]:
        for number, line in enumerate(lines, first):
            if line and not line.isspace():
                yield number, read(line, number)

    return JobInput(items, size=len(lines))


def _parse_command_line(line: str, _: int) -> Fields:
    return {"command": line.removesuffix("\r")}


def parse_json_line(line: str, number: int) -> Fields:
    try:
        return as_fields(parse_json(line))
    except InvalidJson as error:
        # The line number within the line is always 1.
        message = error.message.replace(", line 1 column", ", column")
        raise InvalidLine(number, InvalidJson(message, hint=error.hint)) from error


# ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_document(data: bytes, form: InputFormat | None) -> JobInput:
    """Parse a whole file. Without `form` its first non-blank character decides."""
    text = decode(data.removeprefix(BOM), first_line=1)
    match form or guess_format(data):
        case None:
            return job_list([])
        case InputFormat.JSON:
            return parse_json_jobs(text, is_batch=True) if text.strip() else job_list([])
        case InputFormat.LINES:
            return job_lines(text.split("\n"), InputFormat.LINES)
        case InputFormat.JSONL:
            # One object over several lines is accepted, too, unless the format was given.
            whole = None if form else _parse_multiline_object(text)
            return whole or job_lines(text.split("\n"), InputFormat.JSONL)


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


def parse_json_jobs(text: str, *, is_batch: bool = False) -> JobInput:
    """`is_batch`: also a single object is a list of one job."""
    value = parse_json(text)
    if not isinstance(value, list):
        return job_list([as_fields(value)]) if is_batch else single_job(as_fields(value))
    items = []
    for number, item in enumerate(value, 1):
        try:
            items.append(as_fields(item))
        except UsageError as error:
            raise InvalidItem(number, error) from error
    return job_list(items)


def _parse_multiline_object(text: str) -> JobInput | None:
    """The single object that `text` consists of; None if each line is an object."""
    lines = text.strip().split("\n")
    if len(lines) == 1 or lines[0].rstrip().endswith("}"):
        return None
    if any(line.startswith("{") for line in lines[1:]):
        return None
    return parse_json_jobs(text, is_batch=True)


# ── streams ─────────────────────────────────────────────────────────────────────────────────────────────────────────


# The number of a line, and its job or the error.
StreamLine = tuple[int, NewJob | QueuectlError]

_ARRAY_NOT_STREAMABLE: Final = UsageError(
    "a JSON array cannot be streamed", hint="give one object a line, or omit --stream"
)


class StreamBlock(NamedTuple):
    """Whole lines that arrived together; `first` is the number of the first one."""

    first: int
    lines: Sequence[bytes]
    form: InputFormat

    def parse(self, defaults: Defaults, flags: Flags) -> list[StreamLine]:
        """The job of each line or the error; nothing for a blank line."""
        found: list[StreamLine] = []
        for number, data in enumerate(self.lines, self.first):
            try:
                text = decode(data.removeprefix(BOM) if number == 1 else data, first_line=number)
                jobs = make_jobs(job_lines([text], self.form, first=number), defaults, flags=flags)
                found += [(number, job) for job in jobs]
            except UsageError as error:
                found.append((number, error))
        return found


def read_blocks(read: Callable[[], bytes], form: InputFormat | None) -> Iterator[StreamBlock]:
    """The lines of a stream as they arrive. `read` blocks until there are more and returns b"" at the end.

    Raises UsageError for a JSON array, which has to be read as a whole.
    """
    number = 1
    for block in _blocks(read):
        form = form or guess_format(block)
        if form is InputFormat.JSON:
            raise _ARRAY_NOT_STREAMABLE
        lines = block.split(b"\n")
        if form is not None:
            yield StreamBlock(number, lines, form)
        number += len(lines) - 1


def _blocks(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Complete lines, as many as have arrived; the last line may lack its newline."""
    pieces: list[bytes] = []
    while chunk := read():
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*pieces, head, newline])
            pieces = [tail]
        else:
            pieces.append(chunk)
    yield b"".join(pieces)


def has_jobs(lines: Sequence[StreamLine]) -> bool:
    return any(isinstance(found, NewJob) for _, found in lines)


def add_lines(
    store: EnqueueStore | None, lines: Sequence[StreamLine], clock: Clock
) -> Iterator[Queued | QueuectlError]:
    """For each line its job, after the commit, or the error. `store` may be None if there are only errors.

    Retries while the database is briefly unavailable, unless the jobs may have been committed.
    """
    from queuectl.errors.jobs import ParentEnded, ParentNotFound
    from queuectl.operations.wait import retry_store

    def add(jobs: Sequence[NewJob]) -> list[Queued]:
        assert store is not None
        return list(queued(retry_store(clock, lambda: store.enqueue(jobs))))

    invalid = (DuplicateId, KeyTaken, ParentNotFound, ParentEnded, InvalidInput)
    try:
        added = add(jobs) if (jobs := [found for _, found in lines if isinstance(found, NewJob)]) else []
    except invalid:
        added = None  # add them one by one to find out which one is invalid
    for number, found in lines:
        if not isinstance(found, NewJob):
            yield found
        elif added is not None:
            yield added.pop(0)
        else:
            try:
                yield add([found])[0]
            except DuplicateId as error:
                yield DuplicateId(error.job_id, where=f"line {number}")
            except KeyTaken as error:
                yield with_location(error, f"line {number}")
            except invalid as error:
                yield InvalidLine(number, error)


# ── templates and arrays ────────────────────────────────────────────────────────────────────────────────────────────


def _for_each(
    lines: Sequence[str],
    template: Template,
    *,
    colsep: str | None,
    noun: str = "item",
    is_skipped: Callable[[str], bool] = lambda _: False,
) -> JobInput:
    """A job for each line or item. `is_skipped`: whether a line is skipped because it is blank."""

    def items() -> Iterator[Numbered]:
        from queuectl.jobs.templates import TemplateLine

        for number, text in enumerate(lines, 1):
            if not is_skipped(text):
                try:
                    fields = template(TemplateLine(text, number, None if colsep is None else text.split(colsep)))
                except UsageError as error:
                    raise intake.blame(number, error) from error
                yield number, fields

    intake = JobInput(items, noun=noun, size=len(lines))
    return intake


def parse_for_each(data: bytes, arguments: Sequence[str], *, nul: bool, colsep: str | None) -> JobInput:
    """One argument is a template for the shell, several are an argv."""
    separator = None if colsep is None else _parse_separator(colsep, subject="--colsep")
    template = _parse_template(arguments[0] if len(arguments) == 1 else arguments, columns=separator is not None)
    text = decode(data.removeprefix(BOM), first_line=1)
    if nul:  # file names: one may be " "
        return _for_each(text.split("\0"), template, colsep=separator, is_skipped=lambda item: not item)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return _for_each(lines, template, colsep=separator, noun="line", is_skipped=lambda line: not line or line.isspace())


def for_each_item(items: Sequence[str], command: str | Sequence[str], *, colsep: str | None) -> JobInput:
    """The same for the APIs: a text is a template for the shell, a list is an argv."""
    separator = None if colsep is None else _parse_separator(colsep, subject="colsep")
    return _for_each(items, _parse_template(command, columns=separator is not None), colsep=separator)


def _parse_template(command: str | Sequence[str], *, columns: bool) -> Template:
    from queuectl.jobs.templates import argv_template, shell_template

    if isinstance(command, str):
        return shell_template(command, columns=columns)
    return argv_template(command, columns=columns)


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
    return _array(fields, indices)


def _array(fields: Fields, indices: Sequence[int]) -> JobInput:
    """The same job for each index, with the index in its environment."""
    env = fields.get("env")
    own = env if isinstance(env, dict) else {}

    def items() -> Iterator[Numbered]:
        for index in indices:
            # An invalid `env` is left for `validate` to report.
            with_index = {**own, ARRAY_INDEX_VARIABLE: str(index)} if env is None or own is env else env
            yield index, {**fields, "env": with_index}

    return JobInput(items, noun="index", size=len(indices))


def _parse_separator(text: str, *, subject: str) -> str:
    r"""`\t` means a tab, which is hard to type in a shell."""
    separator = text.replace("\\t", "\t")
    if not separator:
        raise InvalidInput(subject, "empty", hint=f"give the text between two columns, like {subject} , or '\\t'")
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

_ENV_BLANK: Final = re.compile(r"[ \t]*(?:#.*)?(?:\n|\Z)")
_ENV_NAME: Final = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)=[ \t]*")
_ENV_QUOTED: Final = {"'": re.compile(r"'([^']*)'"), '"': re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)}
_ENV_BARE: Final = re.compile(r"(.*)(?:\n|\Z)")
_ENV_LINE_END: Final = re.compile(r"(?:[ \t]+#.*|[ \t]*)(?:\n|\Z)")
# Escapes between double quotes; before any other letter a backslash is literal.
_ENV_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def parse_env_file(data: bytes, *, subject: str) -> dict[str, str]:
    """Parse variables; the last one of a name counts. Raises InvalidInput with the line, never with its text, which may be secret."""
    if len(data) > MAX_ENV_FILE_BYTES:
        raise InvalidInput(subject, "it is larger than 1 MiB", hint="put large values into a file")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{subject}, line {line}", "it is not UTF-8", hint="save it as UTF-8") from error

    def wrong(at: int, problem: str) -> InvalidInput:
        return InvalidInput(f"{subject}, line {text.count(chr(10), 0, at) + 1}", problem, hint=ENV_FILE_HINT)

    variables = {}
    at = 0
    while at < len(text):
        if blank := _ENV_BLANK.match(text, at):
            at = blank.end()
            continue
        if (name := _ENV_NAME.match(text, at)) is None:
            raise wrong(at, "it does not start with NAME=")
        if (quote := text[name.end() : name.end() + 1]) in ("'", '"'):
            if (quoted := _ENV_QUOTED[quote].match(text, name.end())) is None:
                raise wrong(at, f"there is no {quote} to end what begins here")
            value = quoted[1]
            if quote == '"':
                value = re.sub(r"\\(.)", lambda found: _ENV_ESCAPES.get(found[1], found[0]), value, flags=re.DOTALL)
            if (end := _ENV_LINE_END.match(text, quoted.end())) is None:
                raise wrong(quoted.end(), f"something follows the {quote} that ends the value")
        else:
            end = _ENV_BARE.match(text, name.end())
            assert end is not None
            value = re.split(r"(?:\A|[ \t])#", end[1], maxsplit=1)[0].rstrip(" \t")
        if "\0" in value:
            raise wrong(at, "it holds a NUL character")
        variables[name[1]] = value
        at = end.end()
    return variables
