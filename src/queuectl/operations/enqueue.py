"""Enqueue jobs: validate all, then open the database, then write all or none. job_input.py reads files, lists and streams of jobs."""

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
    InvalidItem,
    InvalidJson,
    InvalidLine,
    KeyTaken,
    NotFound,
    QueuectlError,
    UsageError,
)
from queuectl.jobs.spec import Defaults, NewJob, command_variants, merge_fields, validate
from queuectl.store.types import Enqueued

if TYPE_CHECKING:
    from queuectl.store.enqueue import EnqueueStore
    from queuectl.store.reads import Reads

PROGRESS_INTERVAL: Final = 1024

Fields = dict[str, object]
Numbered = tuple[int | None, Fields]
Flags = Mapping[str, object]
Advance = Callable[[int, int | None], None]


def ignore_progress(done: int, of: int | None) -> None:
    """Report no progress."""


def job_defaults(source: EnqueueStore | Reads | None, environ: Mapping[str, str], *, cwd: str) -> Defaults:
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


# ── input ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class JobInput:
    """The fields of jobs, before validation; can be iterated more than once, as `items` can be called."""

    def __init__(
        self,
        items: Callable[[], Iterator[Numbered]],
        *,
        noun: str = "line",
        is_batch: bool = True,
        size: int | None = None,
    ) -> None:
        """`noun`: what the numbers count. `is_batch`: from an array or a document. `size`: the approximate number of jobs, if known."""
        self._items = items
        self.noun = noun
        self.is_batch = is_batch
        self.size = size

    def __iter__(self) -> Iterator[Numbered]:
        return self._items()

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        """`error` with its location."""
        if number is None or self.noun == "index":  # the same for every index
            return error
        return InvalidItem(number, error) if self.noun == "item" else InvalidLine(number, error)


def single_job(fields: Fields) -> JobInput:
    return JobInput(lambda: iter([(None, fields)]), noun="item", is_batch=False)


def job_list(jobs: Sequence[Fields]) -> JobInput:
    return JobInput(lambda: iter(enumerate(jobs, 1)), noun="item")


def looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def parse_arguments(arguments: Sequence[str]) -> JobInput:
    """One argument: JSON or a shell command. Several: JSON that the shell has split, or an argv."""
    if looks_like_json(arguments[0]):
        return _parse_json_argument(" ".join(arguments))
    if len(arguments) == 1:
        return single_job({"command": arguments[0]})
    return single_job({"argv": list(arguments)})


def _parse_json_argument(text: str) -> JobInput:
    first = text.lstrip()[0]
    from queuectl.operations.job_input import parse_json_jobs  # here, since most jobs are plain commands

    hint = f"quote JSON with ' ' for the shell; for a shell command that starts with {first} use --command"
    try:
        return parse_json_jobs(text)
    except InvalidJson as error:
        raise InvalidJson(error.message, hint=hint) from error
    except InvalidItem as error:
        raise InvalidItem(error.number, UsageError(error.cause.message, hint=hint)) from error


# ── prepare and add ─────────────────────────────────────────────────────────────────────────────────────────────────


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
        last = None
        if on_complete is not None:  # in the queue of the batch, so that the same workers run it
            fields = {name: flags[name] for name in ("batch", "queue") if name in flags}
            last = validate({"command": on_complete, **fields}, defaults)
        return Prepared(intake, jobs, last)


def add(inbox: EnqueueStore, prepared: Prepared, *, idempotency: tuple[str, str] | None = None) -> Enqueued:
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
        children = (any(parent.id == error.ref for parent in job.depends_on) for job in jobs)
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
