"""Adding jobs: validate all of it first, then open the store, then write all of it or none."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from queuectl.errors import (
    Conflict,
    DuplicateId,
    InvalidItem,
    InvalidLine,
    KeyTaken,
    NotFound,
    QueuectlError,
    Unavailable,
    UsageError,
)
from queuectl.job.newjob import NewJob
from queuectl.job.spec import Defaults, alike, merge, validate
from queuectl.queue.intake import Intake
from queuectl.store.entry import Enqueued

if TYPE_CHECKING:
    from queuectl.store.protocol import Inbox

TELL_EVERY: Final = 1024

Flags = Mapping[str, object]
Advance = Callable[[int, int | None], None]


def untold(done: int, of: int | None) -> None:
    """Nobody wants to know how far it is."""


class Place:
    """Where jobs go. Opening may make the home, so it comes last; looking makes nothing."""

    def __init__(
        self,
        open_inbox: Callable[[], Inbox],
        *,
        stored_defaults: Callable[[], Defaults],  # with what the store says
        bare_defaults: Callable[[], Defaults],  # without touching the store
    ) -> None:
        self.open_inbox = open_inbox
        self.stored_defaults = stored_defaults
        self.bare_defaults = bare_defaults

    def likely_defaults(self, *, is_batch: bool) -> Defaults:
        """What will hold, most likely. To be wrong only costs time: `enqueue` looks again once the store is open.

        For one job it is cheaper to be wrong than to open the store twice; for a batch it is the other way round.
        """
        if is_batch:
            try:
                return self.stored_defaults()
            except Unavailable:
                pass  # bad input is told before a bad store, which tells it itself when it is opened
        return self.bare_defaults()


class Queued(NamedTuple):
    id: str
    is_duplicate: bool  # it was there already


def queued(added: Enqueued) -> Iterator[Queued]:
    duplicates = added.duplicates
    return (Queued(job_id, place in duplicates) for place, job_id in enumerate(added))


def enqueue(
    intake: Intake,
    place: Place,
    *,
    flags: Flags,
    advance: Advance = untold,
    on_complete: str | None = None,
    idempotency: tuple[str, str] | None = None,
) -> Enqueued:
    """Store every job of `intake`, with `flags` on top of its fields, and return the ids in order: all or none. Where a job
    with a unique key was there already, its id. `on_complete` is a command that runs when all of the batch of `flags` have
    ended. `idempotency`: the key of a request and a digest of it, see `Inbox.enqueue`.

    Raises before anything is made or written if one of them is wrong.
    """
    with no_garbage():
        expected = place.likely_defaults(is_batch=intake.is_batch)
        jobs = make_jobs(intake, expected, flags=flags, advance=advance)
        if not jobs:
            return Enqueued()
        inbox = place.open_inbox()
        actual = place.stored_defaults()
        if actual != expected:
            jobs = make_jobs(intake, actual, flags=flags, advance=advance)
        last = None if on_complete is None else _last_job(on_complete, flags, actual)
        try:
            return inbox.enqueue(jobs, on_complete=last, idempotency=idempotency)
        except DuplicateId as error:
            raise _with_place(error, intake, jobs) from error
        except KeyTaken as error:
            raise _at_its_place(error, intake) from error
        except (NotFound, Conflict) as error:
            raise _with_child(error, intake, jobs) from error


def _last_job(command: str, flags: Flags, defaults: Defaults) -> NewJob:
    """In the queue of the others: whoever serves that runs it too."""
    fields = {"command": command, **{name: flags[name] for name in ("batch", "queue") if name in flags}}
    return validate(fields, defaults)


def make_jobs(intake: Intake, defaults: Defaults, *, flags: Flags, advance: Advance = untold) -> list[NewJob]:
    jobs: list[NewJob] = []
    add, size = jobs.append, intake.size
    number: int | None = None
    make: Callable[[object], NewJob] | None = None
    may_be_alike = not {"command", "argv", "id"} & flags.keys()
    try:
        for number, fields in intake:
            # Most batches are commands with nothing else said about each: then only the first is looked at as a whole.
            is_bare = may_be_alike and type(fields) is dict and len(fields) == 1 and fields.get("command") is not None
            if is_bare and make is not None:
                add(make(fields["command"]))
            else:
                job = validate(merge(fields, flags) if flags else fields, defaults)
                add(job)
                make = alike(job) if is_bare else make
            if number is not None and number % TELL_EVERY == 0:
                advance(number, size)
    except (InvalidLine, InvalidItem):
        raise  # says where already
    except UsageError as error:
        raise intake.blame(number, error) from error
    if "id" in flags and len(jobs) > 1:
        raise UsageError(f"--id names one job, and here are {len(jobs)}", hint="leave --id away, or give one job")
    if any(job.depends_on for job in jobs):
        from queuectl.store.linking import refuse_cycles  # here, since most jobs wait for nobody

        refuse_cycles({job.id: [parent.id for parent in job.depends_on] for job in jobs if job.id is not None})
    return jobs


def _with_place(error: DuplicateId, intake: Intake, jobs: Sequence[NewJob]) -> DuplicateId:
    """A batch names the place: the last one with that id, which is the one too many if it is there twice."""
    if not intake.is_batch:
        return error
    places = [number for (number, _), job in zip(intake, jobs, strict=True) if job.id == error.job_id]
    where = f"{intake.noun} {places[-1]}" if places else None
    return DuplicateId(error.job_id, where=where, twice=len(places) > 1)


def _at_its_place(error: KeyTaken, intake: Intake) -> KeyTaken:
    if not intake.is_batch:
        return error
    number, _ = next(islice(intake, error.place, None))
    return told_at(error, f"{intake.noun} {number}")


def told_at(error: KeyTaken, where: str) -> KeyTaken:
    """The same, with where in a batch it was found."""
    return KeyTaken(error.key, error.holder, error.state, hint=error.hint, where=where, place=error.place)


def _with_child(error: QueuectlError, intake: Intake, jobs: Sequence[NewJob]) -> QueuectlError:
    """A batch names the first that would wait for a parent that it cannot wait for."""
    from queuectl.errors.flow import ParentEnded, ParentNotFound  # here, since most jobs wait for nobody

    if intake.is_batch and isinstance(error, ParentNotFound | ParentEnded):
        children = (any(parent.id == error.said for parent in job.depends_on) for job in jobs)
        number = next(number for (number, _), is_it in zip(intake, children, strict=True) if is_it)
        error.message = f"{intake.noun} {number}: {error.message}"
    return error


@contextmanager
def no_garbage() -> Iterator[None]:
    # A batch makes a million objects that all stay: looking for cycles among them took a tenth of the time.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
