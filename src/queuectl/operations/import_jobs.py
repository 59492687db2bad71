"""Import jobs: from JSON lines, a JSON array, the settings or the SQLite file of another tool. All or nothing."""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader
from typing import Final, NamedTuple

from queuectl.config import change_settings
from queuectl.cron.operations import start_imported
from queuectl.errors import (
    DuplicateId,
    InvalidInput,
    InvalidItem,
    InvalidJson,
    InvalidLine,
    InvalidRow,
    JobDiffers,
    QueuectlError,
    UnknownLayout,
    UnknownName,
    UsageError,
)
from queuectl.jobs.import_record import find_difference, parse_record, unpack_record
from queuectl.jobs.model import Job
from queuectl.jobs.spec import Defaults
from queuectl.operations.enqueue import Advance, Fields
from queuectl.operations.export import KIND, ConfigRecords, parse_config_record, without_existing
from queuectl.operations.job_input import BOM, WHITESPACE, as_fields, decode, parse_json_line
from queuectl.settings import resolve_key
from queuectl.store.foreign import HEADER, MAGIC, Foreign
from queuectl.store.import_staging import Stage
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.transfer import Importer
from queuectl.store.types import Filter
from queuectl.text import parse_json, short_repr

Present = Callable[[Sequence[str]], Mapping[str, Job]]
NO_CONFIG: Final = ConfigRecords.empty()


class ImportResult(NamedTuple):
    imported: int
    skipped: int  # existed already
    given_back: int  # of those imported, jobs that were running at the export: they are pending now
    settings: dict[str, str]
    ignored: list[str]  # content of the source without an equivalent
    queues: list[str]  # with new settings
    schedules: list[str]
    alerts: list[str]
    batches: list[str]  # with a new --on-complete


def import_jobs(
    source: RecordSource,
    defaults: Defaults,
    *,
    reads: Callable[[], Reads],
    open_store: Callable[[], Store],
    dry_run: bool,
    rules: bool,
    advance: Advance,
) -> ImportResult:
    """Import all records or none. Raises for an invalid record, or a conflict with an existing one, before anything is written.

    `dry_run`: validate only. `rules`: also import queue settings, schedules, alerts and --on-complete jobs, for operators.
    """
    with Stage() as stage:
        config = _read_records(source, defaults, stage, rules=rules, advance=advance, now_ms=reads().now_ms())
        settings, unknown = _parse_settings(source.settings, reads=reads)
        ignored = [*source.ignored, *unknown]
        _skip_existing(source, stage, lambda ids: {job.id: job for job in reads().jobs(Filter(ids=tuple(ids)))})
        if hidden := stage.first_hidden():
            raise source.blame(hidden[0], _hidden_value_error(hidden[1]))
        config = without_existing(config, reads()) if config != NO_CONFIG else config
        if not dry_run and (stage.remaining()[0] or settings or config != NO_CONFIG):
            with open_store().transfers.importer(settings, rules=config != NO_CONFIG) as target:
                # Again, now inside the transaction: a job may have been added meanwhile.
                _skip_existing(source, stage, target.present)
                config = without_existing(config, target.store) if config != NO_CONFIG else config
                _store_config(config, target, defaults)
                _add_records(stage, target, advance=advance)
        new, given_back = stage.remaining()
        names = (sorted(of_a_kind) for of_a_kind in config)
        return ImportResult(new, stage.size - new, given_back, settings, ignored, *names)


def _store_config(config: ConfigRecords, target: Importer, defaults: Defaults) -> None:
    for queue, rules in config.queues.items():
        target.set_rules(queue, rules)
    for one in config.schedules.values():
        target.add_schedule(start_imported(one, defaults, now_ms=target.now_ms()))
    for alert in config.alerts.values():
        target.add_alert(alert)
    for batch, job in config.batches.items():
        target.complete_with(batch, job)


def _read_records(
    source: RecordSource, defaults: Defaults, stage: Stage, *, rules: bool, advance: Advance, now_ms: int
) -> ConfigRecords:
    config = ConfigRecords.empty()
    for number, fields in source:
        try:
            if KIND in fields:
                if not rules:
                    # An alert runs commands, and webhooks of alerts and queues may have private addresses: a file of jobs must not
                    # add them unnoticed.
                    problem = f"the file has more than jobs: {short_repr(fields[KIND])}"
                    raise InvalidInput(KIND, problem, hint="if you trust all of it: queuectl db import --rules FILE")
                parse_config_record(fields, config, defaults, now_ms=now_ms)
                continue
            record = parse_record(fields, defaults)
        except UsageError as error:
            raise source.blame(number, error) from error
        if not stage.add(number, record):
            raise DuplicateId(record.id, where=f"{source.noun} {number}", twice=True)
        advance(number, None)
    return config


def _skip_existing(source: RecordSource, stage: Stage, present: Present) -> None:
    """Skip existing jobs. Raises JobDiffers for the ID of another job."""
    for page in stage.pages():
        there = present([id_ for _, id_, _ in page])
        for number, id_, packed in page:
            if id_ in there and (field := find_difference(unpack_record(packed), there[id_])):
                raise JobDiffers(id_, field, f"{source.noun} {number}")
        if there:
            stage.exclude(list(there))


def _add_records(stage: Stage, target: Importer, *, advance: Advance) -> None:
    done, total = 0, stage.remaining()[0]
    for page in stage.by_age():
        target.add(page)
        done += len(page)
        advance(done, total)
    for page in stage.by_age():  # after all parents are added, in any order
        if waiting := [record for record in page if record.depends_on]:
            target.link(waiting)


def _hidden_value_error(variable: str) -> InvalidInput:
    hint = "values of the environment are only in a file that export itself has made: queuectl db export FILE"
    return InvalidInput(f"env.{variable}", "the export hides its value", hint=hint)


def _parse_settings(found: Mapping[str, object], *, reads: Callable[[], Reads]) -> tuple[dict[str, str], list[str]]:
    """The settings to store, in canonical form, and the unknown ones."""
    wanted: dict[str, str | None] = {}
    unknown = []
    for name, value in found.items():
        try:
            key = resolve_key(name).name
        except UnknownName:
            unknown.append(f"setting {name}")
            continue
        if key.startswith("webhook-"):
            hint = f"queuectl config set {key} …"
            raise InvalidInput(name, "it makes this host send requests, so no file can set it", hint=hint)
        if value is not None:
            wanted[key] = _setting_text(value, name)
    if not wanted:
        return {}, unknown
    changes = change_settings(reads().config(), wanted)
    return {key: text for key, text in changes.items() if text is not None}, unknown


def _setting_text(value: object, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise InvalidInput(name, "expected a number, a text, true or false", hint="config list shows what each key takes")


MAX_RECORD_BYTES: Final = 64 * 2**20  # one job with its history
READ_CHUNK_BYTES: Final = 2**18

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|"', re.DOTALL)
_JOB_FIELDS: Final = frozenset({"id", "command", "argv", "state", "kind"})


_ERRORS: Final = {"line": InvalidLine, "item": InvalidItem, "row": InvalidRow}


class RecordSource(ABC):
    noun = "line"  # what the numbers count
    ignored: tuple[str, ...] = ()  # content without an equivalent

    def __init__(self) -> None:
        self.settings: dict[str, object] = {}  # complete after the iteration

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Fields]]: ...

    def blame(self, number: int, error: QueuectlError) -> QueuectlError:
        """`error` with its location."""
        return _ERRORS[self.noun](number, error)


def open_records(path: str, file: BufferedReader) -> RecordSource:
    """Choose the source by the first bytes of the file. `path` is as given, `-` for stdin."""
    header = file.peek(HEADER)[:HEADER]
    if header.startswith(MAGIC):
        if path == "-":
            raise UnknownLayout("stdin", "it is a SQLite file", hint="give its name: SQLite reads files only")
        return ForeignRecords(path, header)
    if file.peek(len(BOM))[: len(BOM)] == BOM:
        file.read(len(BOM))
    line = _skip_blank(file)
    first = file.peek(1)[:1]
    if first == b"[":
        return ArrayRecords(file, line)
    if first in (b"{", b""):
        return LineRecords(file, line)
    shown = "stdin" if path == "-" else path
    raise UnknownLayout(shown, "it is neither JSON nor a SQLite file")


def _skip_blank(file: BufferedReader) -> int:
    """Skip white space. Returns the line number of the first other character."""
    line = 1
    while chunk := file.peek(1):
        blank = len(chunk) - len(chunk.lstrip(WHITESPACE))
        line += file.read(blank).count(b"\n")
        if blank < len(chunk):
            break
    return line


class ForeignRecords(RecordSource):
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


class LineRecords(RecordSource):
    """One object per line; or a single object, a job or the settings of another tool."""

    def __init__(self, file: BufferedReader, first: int) -> None:
        super().__init__()
        self._file = file
        self._first = first

    def __iter__(self) -> Iterator[tuple[int, Fields]]:
        number = self._first
        while line := self._file.readline(MAX_RECORD_BYTES + 1):
            is_multiline = number == self._first and not line.rstrip().endswith(b"}")
            if is_multiline:
                line += self._file.read(MAX_RECORD_BYTES)
            if len(line) > MAX_RECORD_BYTES:
                raise InvalidLine(number, _too_long())
            if line.strip():
                fields = self._read(line, number, is_multiline=is_multiline)
                if number > self._first or not _JOB_FIELDS.isdisjoint(fields):
                    yield number, fields
                else:
                    self._require_single(number)
                    self.settings = fields
            number += 1

    def _read(self, line: bytes, number: int, *, is_multiline: bool) -> Fields:
        text = decode(line, first_line=number)
        if is_multiline:
            return as_fields(parse_json("\n" * (number - 1) + text))
        return parse_json_line(text, number)

    def _require_single(self, number: int) -> None:
        if self._file.read(READ_CHUNK_BYTES).strip():
            problem = InvalidInput("id", "missing", hint="import accepts jobs with a history; use enqueue for new ones")
            raise InvalidLine(number, problem)


class ArrayRecords(RecordSource):
    noun = "item"

    def __init__(self, file: BufferedReader, line: int) -> None:
        super().__init__()
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0  # position in the text
        self._line, self._column = line, 1

    def __iter__(self) -> Iterator[tuple[int, Fields]]:
        self._step(1)  # the opening bracket
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

    def _element(self, number: int) -> Fields:
        if self._next() != "{":
            raise InvalidItem(number, InvalidJson("expected a JSON object", hint="as export writes them"))
        end = self._end_of_object(number)
        text, line, column = self._text[self._at : end], self._line, self._column
        self._step(end - self._at)
        try:
            return as_fields(parse_json(text))
        except InvalidJson:
            # Again with an offset, so that line and column are those in the file.
            try:
                parse_json("\n" * (line - 1) + " " * (column - 1) + text)
            except InvalidJson as error:
                raise InvalidItem(number, error) from error
            raise

    def _end_of_object(self, number: int) -> int:
        depth, scanned = 0, self._at
        while True:
            for token in _TOKEN.finditer(self._text, scanned):
                if token[0] == '"':  # an incomplete string
                    break
                scanned = token.end()
                if token[0] in "{[":
                    depth += 1
                elif token[0] in "}]":
                    depth -= 1
                    if not depth:
                        return scanned
            if len(self._text) - self._at > MAX_RECORD_BYTES:
                raise InvalidItem(number, _too_long())
            scanned -= self._at
            if not self._more():
                raise self._broken(f"the text ends within item {number}")
            scanned += self._at

    def _next(self, *, may_end: bool = False) -> str:
        """The next non-blank character, "" at the end."""
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
        data = self._file.read(READ_CHUNK_BYTES)
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
    return InvalidInput(
        "job", f"takes more than {MAX_RECORD_BYTES // 2**20} MiB", hint="no job of an export is that long"
    )
