"""Adding jobs for Python programs: one, many, one for each item, an array. See client.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from queuectl.config import Settings, environ, load_settings, working_directory
from queuectl.errors import InvalidInput, InvalidItem, JobNotFound
from queuectl.job.model import Job
from queuectl.job.shown import shown
from queuectl.job.spec import Defaults
from queuectl.queue import many
from queuectl.queue.enqueue import Place, enqueue, queued
from queuectl.queue.intake import Given, Intake
from queuectl.queue.pick import find
from queuectl.queue.pythonic import Fields, fields_of, plain_fields
from queuectl.store.protocol import Reads, Store


class Adding(ABC):
    """What a Queue has for putting work in."""

    def enqueue(
        self,
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        unique: str | None = None,
        **fields: Any,
    ) -> Job:
        """Add a job: `command` for the shell, or `argv` to run without one. It is safe when this returns.

        `fields` are those of the command line's JSON: id, queue, priority, max_retries, backoff_base, timeout, run_at (also
        a datetime), delay (also a timedelta), cwd, env, tags, key, places; memory, cpu_time, nice, open_files, processes, file_size. `after` are ids or jobs that have to complete first,
        `after_any` such as have to end, however, and `after_fail` such as have to fail for good. Raises InvalidInput, UnknownName,
        DuplicateId, ParentNotFound or ParentEnded.

        `unique` is a key that one job at a time has while it waits or runs; `unique_for` (also a timedelta) and `if_exists` are
        as on the command line. The job that comes back may be the one that was there: its `is_duplicate` says so. Raises
        KeyTaken where that is an error.

        >>> from queuectl import Queue
        >>> with Queue() as queue:
        ...     queue.enqueue(argv=["printf", "%s", "a b"], timeout="1m30s").timeout
        90
        >>> with Queue() as queue:
        ...     [queue.enqueue("true", unique="report").is_duplicate for _ in range(2)]
        [False, True]
        >>> with Queue() as queue:
        ...     build = queue.enqueue("make build")
        ...     queue.enqueue("make test", after=[build]).state
        <State.BLOCKED: 'blocked'>
        """
        if unique is not None:
            fields = {"unique_key": unique, **fields}
        job = fields_of({"command": command, "argv": argv, **fields}, 1)
        return self._add(Given([job], is_batch=False), {})[0]

    def enqueue_many(
        self, jobs: Iterable[str | Mapping[str, Any]], *, batch: str | None = None, on_complete: str | None = None
    ) -> list[Job]:
        """Add many jobs, all or none: each a command for the shell or a mapping of fields. With `batch`, under that name;
        `on_complete` is a command that runs once, when all of the batch have ended.

        Raises InvalidItem, which names the first that is wrong, and InvalidInput for one job where many are expected.

        >>> with Queue() as queue:
        ...     [job.priority for job in queue.enqueue_many(["true", {"command": "false", "priority": 7}])]
        [0, 7]
        """
        given = [{"command": job} if isinstance(job, str) else job for job in _many(jobs, "jobs")]
        items = [fields_of(job, number) for number, job in enumerate(given, 1)]
        return self._add(Given(items, is_batch=True), {}, batch=batch, on_complete=on_complete)

    def enqueue_each(
        self,
        items: Iterable[str],
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        colsep: str | None = None,
        batch: str | None = None,
        on_complete: str | None = None,
        **fields: Any,
    ) -> list[Job]:
        """Add a job for each of `items`, all or none, as `enqueue --for-each` does: in `command` each of `{}`, `{/}`, `{.}`, `{n}`
        and, with `colsep`, `{1}` becomes one quoted word; in `argv` it is put in as it is. `fields` are for each of them.

        >>> with Queue() as queue:
        ...     [job.command for job in queue.enqueue_each(["a b.jpg"], "convert {} {.}.png", queue="images")]
        ["convert 'a b.jpg' 'a b'.png"]
        """
        given = list(_many(items, "items"))
        for number, item in enumerate(given, 1):
            if not isinstance(item, str):
                raise InvalidItem(
                    number, InvalidInput("item", f"expected a text, got {shown(item)}", hint="like str(item)")
                )
        intake = many.for_each_given(given, _one_of(command, argv), colsep=colsep)
        return self._add(intake, plain_fields(fields), batch=batch, on_complete=on_complete)

    def enqueue_array(
        self,
        indices: str | Iterable[int],
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        at_once: int | None = None,
        batch: str | None = None,
        on_complete: str | None = None,
        **fields: Any,
    ) -> list[Job]:
        """Add the same job for each index, all or none; each finds its own in `QUEUECTL_ARRAY_INDEX`. `indices` are numbers, or a
        text as for `enqueue --array`; at most `at_once` of them run at a time, as with `%N`.

        >>> with Queue() as queue:
        ...     len(queue.enqueue_array(range(1, 101), "./render", at_once=4))
        100
        >>> with Queue() as queue:
        ...     [job.env["QUEUECTL_ARRAY_INDEX"] for job in queue.enqueue_array("0-90:30%2", "./render")]
        ['0', '30', '60', '90']
        """
        text = indices if isinstance(indices, str) else ",".join(map(str, _many(indices, "indices")))
        if at_once is not None:
            text = f"{text}%{at_once}"
        job = plain_fields({"command": command, "argv": argv, **fields})
        return self._add(many.array(job, text, flags={}, subject="indices"), {}, batch=batch, on_complete=on_complete)

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _look(self) -> Reads: ...

    @abstractmethod
    def _write(self) -> Store: ...

    @abstractmethod
    def _settings(self) -> Settings: ...

    def _add(
        self,
        intake: Intake,
        flags: Fields,
        *,
        batch: str | None = None,
        on_complete: str | None = None,
        idempotency: tuple[str, str] | None = None,
    ) -> list[Job]:
        if on_complete is not None and batch is None:
            raise InvalidInput("on_complete", "there is no batch", hint="give the batch a name")
        cwd = working_directory()
        place = Place(
            self._write,
            stored_defaults=lambda: Defaults.of(self._settings(), cwd=cwd, by_queue=self._look().queue_defaults()),
            bare_defaults=lambda: Defaults.of(load_settings({}, environ()), cwd=cwd),
        )
        flags = flags if batch is None else {**flags, "batch": batch}
        ids = enqueue(intake, place, flags=flags, on_complete=on_complete, idempotency=idempotency)
        added = find(self._look(), ids)
        for job_id in ids if idempotency is not None else ():
            if job_id not in added:  # a request of long ago, repeated: they may have been removed since
                raise JobNotFound(job_id)
        return [replace(added[one.id], is_duplicate=True) if one.is_duplicate else added[one.id] for one in queued(ids)]


def _many(given: Iterable[Any], name: str) -> Iterable[Any]:
    # Letters and the names of fields can be iterated over, and would be taken for jobs.
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidInput(name, f"expected many, got {shown(given)}", hint="give a list, or use enqueue for one")
    return given


def _one_of(command: str | None, argv: Sequence[str] | None) -> str | Sequence[str]:
    if (command is None) == (argv is None):
        raise InvalidInput(
            "command", "expected either a command or an argv", hint='like "gzip {}" or argv=["gzip", "{}"]'
        )
    return command if command is not None else list(argv or ())
