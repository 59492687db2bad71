"""Enqueue jobs: validate all, then open the database, then write all or none. Streams: add lines as they arrive."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from queuectl.config import load_settings
from queuectl.errors import (
    Conflict,
    DuplicateId,
    InvalidInput,
    InvalidItem,
    InvalidLine,
    KeyTaken,
    NotFound,
    QueuectlError,
    UsageError,
)
from queuectl.jobs.spec import Defaults, NewJob, command_variants, merge_fields, validate
from queuectl.operations.job_input import CommandLines, InputFormat, JobInput, JsonLines, decode, guess_format
from queuectl.store.types import Enqueued

if TYPE_CHECKING:
    from queuectl.clock import Clock
    from queuectl.store.protocol import Enqueuer, Reads

PROGRESS_INTERVAL: Final = 1024

Flags = Mapping[str, object]
Advance = Callable[[int, int | None], None]


def ignore_progress(done: int, of: int | None) -> None:
    """Report no progress."""


def job_defaults(source: Enqueuer | Reads | None, environ: Mapping[str, str], *, cwd: str) -> Defaults:
    """What a job gets for the fields that it does not set: the settings in force, and the defaults of its queue.

    `source` is the database that holds them, None where there is none yet.
    """
    if source is None:
        return Defaults.of(load_settings({}, environ), cwd=cwd)
    return Defaults.of(load_settings(source.config(), environ), cwd=cwd, by_queue=source.queue_defaults())


class Queued(NamedTuple):
    id: str
    is_duplicate: bool  # the ID of an existing job


def queued(added: Enqueued) -> Iterator[Queued]:
    duplicates = added.duplicates
    return (Queued(job_id, place in duplicates) for place, job_id in enumerate(added))


class Prepared(NamedTuple):
    """Valid jobs, ready to be added. `last`: the job that runs when all of their batch have ended."""

    intake: JobInput
    jobs: Sequence[NewJob]
    last: NewJob | None = None


def prepare(
    intake: JobInput,
    defaults: Defaults,
    *,
    flags: Flags,
    advance: Advance = ignore_progress,
    on_complete: str | None = None,
) -> Prepared:
    """Validate every job of `intake`, with its fields overridden by `flags`. Uses no database.

    `on_complete` is a command that runs when all of the batch of `flags` have ended. Raises for the first invalid job.
    """
    with gc_paused():
        jobs = make_jobs(intake, defaults, flags=flags, advance=advance)
        last = None if on_complete is None else _last_job(on_complete, flags, defaults)
        return Prepared(intake, jobs, last)


def add(inbox: Enqueuer, prepared: Prepared, *, idempotency: tuple[str, str] | None = None) -> Enqueued:
    """Add the jobs and return their IDs in order: all or none. For a unique key that is in use, the ID of its job.

    `idempotency`: the key of a request and a digest of it, see `Inbox.enqueue`.
    """
    intake, jobs, last = prepared
    with gc_paused():
        try:
            return inbox.enqueue(jobs, on_complete=last, idempotency=idempotency)
        except DuplicateId as error:
            raise _locate_duplicate(error, intake, jobs) from error
        except KeyTaken as error:
            raise _locate_key_error(error, intake) from error
        except (NotFound, Conflict) as error:
            raise _locate_parent_error(error, intake, jobs) from error


def _last_job(command: str, flags: Flags, defaults: Defaults) -> NewJob:
    """The job of `--on-complete`, in the queue of the batch, so that the same workers run it."""
    fields = {"command": command, **{name: flags[name] for name in ("batch", "queue") if name in flags}}
    return validate(fields, defaults)


def make_jobs(
    intake: JobInput, defaults: Defaults, *, flags: Flags, advance: Advance = ignore_progress
) -> list[NewJob]:
    jobs: list[NewJob] = []
    add, size = jobs.append, intake.size
    number: int | None = None
    make: Callable[[object], NewJob] | None = None
    may_be_alike = not {"command", "argv", "id"} & flags.keys()
    try:
        for number, fields in intake:
            # Most batches are plain commands: then only the first is validated as a whole.
            is_bare = may_be_alike and type(fields) is dict and len(fields) == 1 and fields.get("command") is not None
            if is_bare and make is not None:
                add(make(fields["command"]))
            else:
                job = validate(merge_fields(fields, flags) if flags else fields, defaults)
                add(job)
                make = command_variants(job) if is_bare else make
            if number is not None and number % PROGRESS_INTERVAL == 0:
                advance(number, size)
    except (InvalidLine, InvalidItem):
        raise  # has its location already
    except UsageError as error:
        raise intake.blame(number, error) from error
    if "id" in flags and len(jobs) > 1:
        raise UsageError(f"--id names one job, and here are {len(jobs)}", hint="omit --id, or give one job")
    if any(job.depends_on for job in jobs):
        from queuectl.store.dependencies import refuse_cycles  # imported here: few jobs have dependencies

        refuse_cycles({job.id: [parent.id for parent in job.depends_on] for job in jobs if job.id is not None})
    return jobs


def _locate_duplicate(error: DuplicateId, intake: JobInput, jobs: Sequence[NewJob]) -> DuplicateId:
    """In a batch, add the location of the last job with that ID."""
    if not intake.is_batch:
        return error
    places = [number for (number, _), job in zip(intake, jobs, strict=True) if job.id == error.job_id]
    where = f"{intake.noun} {places[-1]}" if places else None
    return DuplicateId(error.job_id, where=where, twice=len(places) > 1)


def _locate_key_error(error: KeyTaken, intake: JobInput) -> KeyTaken:
    if not intake.is_batch:
        return error
    number, _ = next(islice(intake, error.place, None))
    return with_location(error, f"{intake.noun} {number}")


def with_location(error: KeyTaken, where: str) -> KeyTaken:
    """The same error with its location in a batch."""
    return KeyTaken(error.key, error.holder, error.state, hint=error.hint, where=where, place=error.place)


def _locate_parent_error(error: QueuectlError, intake: JobInput, jobs: Sequence[NewJob]) -> QueuectlError:
    """In a batch, add the location of the first job with that parent."""
    from queuectl.errors.jobs import ParentEnded, ParentNotFound  # imported here: few jobs have dependencies

    if intake.is_batch and isinstance(error, ParentNotFound | ParentEnded):
        children = (any(parent.id == error.said for parent in job.depends_on) for job in jobs)
        number = next(number for (number, _), is_it in zip(intake, children, strict=True) if is_it)
        error.message = f"{intake.noun} {number}: {error.message}"
    return error


@contextmanager
def gc_paused() -> Iterator[None]:
    # A batch creates a million objects that all stay alive: garbage collection took a tenth of the time.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
        numbered = enumerate(self.lines, self.first)
        return [line for number, text in numbered for line in _parse_line(text, number, self.form, defaults, flags)]


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


def _parse_line(text: bytes, number: int, form: InputFormat, defaults: Defaults, flags: Flags) -> Iterator[StreamLine]:
    """Nothing for a blank line."""
    try:
        kind = CommandLines if form is InputFormat.LINES else JsonLines
        line = decode(text.removeprefix(b"\xef\xbb\xbf") if number == 1 else text, first_line=number)
        for job in make_jobs(kind([line], first=number), defaults, flags=flags):
            yield number, job
    except UsageError as error:
        yield number, error


def has_jobs(lines: Sequence[StreamLine]) -> bool:
    return any(isinstance(found, NewJob) for _, found in lines)


def add_lines(inbox: Enqueuer | None, lines: Sequence[StreamLine], clock: Clock) -> Iterator[Queued | QueuectlError]:
    """For each line its job, after the commit, or the error. `inbox` may be None if there are only errors.

    Retries while the database is briefly unavailable, unless the jobs may have been committed.
    """
    from queuectl.errors.jobs import ParentEnded, ParentNotFound
    from queuectl.operations.wait import retry_store

    jobs = [found for _, found in lines if isinstance(found, NewJob)]
    added: list[Queued | QueuectlError] = []
    if inbox is not None and jobs:
        try:
            added = list(queued(retry_store(clock, lambda: inbox.enqueue(jobs))))
        except (DuplicateId, KeyTaken, ParentNotFound, ParentEnded, InvalidInput):
            # One of them is invalid: add them one by one to find out which.
            added = [_add_line(inbox, number, found, clock) for number, found in lines if isinstance(found, NewJob)]
    results = iter(added)
    for _, found in lines:
        yield next(results) if isinstance(found, NewJob) else found


def _add_line(inbox: Enqueuer, number: int, job: NewJob, clock: Clock) -> Queued | QueuectlError:
    from queuectl.errors.jobs import ParentEnded, ParentNotFound
    from queuectl.operations.wait import retry_store

    try:
        return next(queued(retry_store(clock, lambda: inbox.enqueue([job]))))
    except DuplicateId as error:
        return DuplicateId(error.job_id, where=f"line {number}")
    except KeyTaken as error:
        return with_location(error, f"line {number}")
    except (ParentNotFound, ParentEnded, InvalidInput) as error:
        return InvalidLine(number, error)
