"""Commands that add jobs: enqueue and clone.

Imports that only some invocations need are inside of functions: `enqueue` runs in tight loops of scripts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import combine_options, command, show_env_option
from queuectl.cli.completion import complete_jobs
from queuectl.cli.errors import DONE, USAGE, InvalidLines, report
from queuectl.cli.job_options import (
    ONE_OF_THEM,
    OPTION_GROUPS,
    JobCommand,
    command_input,
    field_options,
    job_options,
    many_options,
    read_flags,
    read_many,
    read_on_complete,
    reading,
)
from queuectl.cli.render import Details, Result, Stream
from queuectl.config import working_directory
from queuectl.errors import InvalidInput, QueuectlError, Unavailable, UsageError
from queuectl.operations import enqueue as use
from queuectl.operations.enqueue import Advance, JobInput, Queued, ignore_progress, job_defaults, prepare, queued
from queuectl.store.types import Enqueued
from queuectl.text import escape_control
from queuectl.units import humanize_elapsed, to_ms

READ_BYTES = 1 << 16
MAX_PAUSE_LOOKUPS = 500  # jobs whose queues are looked up to report paused ones
MAX_LISTED = 5  # ids or refusals in one message

# For `enqueue` and `run`.
file_options: Final = combine_options(
    click.option("--file", metavar="FILE", help="Read jobs from a file (-: stdin)."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["json", "jsonl", "lines"]),
        help="Format of the file (default: detected).",
    ),
)


@command(
    "enqueue",
    cls=JobCommand,
    prints_jobs=True,
    option_groups=OPTION_GROUPS,
    examples="""
        # one argument is a command for the shell
        queuectl enqueue 'sleep 2 && echo done'

        # several arguments run without a shell, unchanged
        queuectl enqueue --priority 5 -- convert in.png -resize 50% out.png

        # JSON, with any field of a job
        queuectl enqueue '{"id": "job1", "command": "sleep 2", "max_attempts": 5}'

        # many at once, all or nothing: JSON or one command per line
        queuectl enqueue --file jobs.jsonl --queue mail
        find . -name '*.log' | sed 's/^/gzip /' | queuectl enqueue --file -

        # a command for each line of a list; {.} is the line without its extension
        ls *.jpg | queuectl enqueue --for-each - 'convert {} {.}.png'

        # the same command a hundred times, each with its own $QUEUECTL_ARRAY_INDEX
        queuectl enqueue --array 1-100 './simulate --seed "$QUEUECTL_ARRAY_INDEX"'
        # at most four of them at a time
        queuectl enqueue --array 1-100%4 './render --frame "$QUEUECTL_ARRAY_INDEX"'

        # a batch, with a command to run when all of its jobs have ended
        queuectl enqueue --file jobs.txt --batch nightly --on-complete ./report.sh
        queuectl wait --batch nightly

        # a unique job: while one waits or runs, prints its ID instead
        queuectl enqueue 'make report' --unique report

        # a dependency: starts after the other job has completed
        queuectl enqueue --after "$(queuectl enqueue 'make build')" 'make test'

        # delayed, with a time limit; wait for it
        queuectl wait $(queuectl enqueue 'make report' --delay 10m --timeout 1h)
    """,
)
@job_options
@file_options
@click.option("--stream", is_flag=True, help="Add each line as it arrives; skip invalid lines.")
@many_options
@show_env_option
def enqueue(
    app: App,
    arguments: tuple[str, ...],
    file: str | None,
    form: str | None,
    stream: bool,
    show_env: bool,
    **options: Any,
) -> Result:
    """Add jobs and print their IDs after the jobs are stored.

    An argument that begins with { or [ is JSON. Any other single argument is a command for the shell. Several
    arguments are a program with its arguments, which runs without a shell. Options override fields of the JSON.
    """
    flags = read_flags({**options, "file": file or ("-" if stream or arguments == ("-",) else None)}, app)
    on_complete = read_on_complete(options, stream=stream)
    beside = {"--file": file, "--stream": stream, "--format": form}
    jobs = read_many(options, arguments, flags, beside=beside, read=partial(read_file, app))
    if jobs is None:
        arguments, file = source(arguments, file, flags=flags, stream=stream, form=form)
        if stream:
            return _stream(app, str(file), flags=flags, form=form, show_env=show_env)
        jobs = read_document(app, file, form) if file else command_input(arguments, flags)
    if not jobs.is_batch:
        added = next(queued(add(app, jobs, flags=flags, on_complete=on_complete)))
        return single(app, added, show_env=show_env)
    from queuectl.cli.render import progress

    with progress(app, "reading", total=jobs.size) as advance:
        ids = add(app, jobs, flags=flags, advance=advance, on_complete=on_complete)
    return _batch(app, ids, show_env=show_env)


def add(
    app: App,
    jobs: JobInput,
    *,
    flags: Mapping[str, object],
    advance: Advance = ignore_progress,
    on_complete: str | None = None,
) -> Enqueued:
    """Add all jobs or none. Nothing is created before all of them are known to be valid."""
    cwd = working_directory()
    try:
        store = app.find_enqueuer()
        defaults = job_defaults(store, app.environ, cwd=cwd)
    except Unavailable:
        # Invalid input is reported before a database that cannot be opened.
        prepare(jobs, job_defaults(None, app.environ, cwd=cwd), flags=flags, on_complete=on_complete)
        raise
    prepared = prepare(jobs, defaults, flags=flags, advance=advance, on_complete=on_complete)
    if not prepared.jobs:
        return Enqueued()
    return use.add(store or app.open_enqueuer(), prepared)


def source(
    arguments: tuple[str, ...], file: str | None, *, flags: Mapping[str, object], stream: bool, form: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Check that the jobs come from exactly one place: arguments or a file."""
    if file == "":
        raise InvalidInput("--file", "the name is empty", hint="give the name of a file, or - for stdin")
    if arguments == ("-",) and file is None:
        arguments, file = (), "-"
    if stream and file is None and not arguments:
        file = "-"
    if arguments and file:
        raise UsageError("jobs from arguments and from a file at once", hint=ONE_OF_THEM)
    if arguments and (stream or form):
        raise UsageError(
            f"{'--stream' if stream else '--format'} requires --file", hint="add --file FILE, or - for stdin"
        )
    if stream and "id" in flags:
        raise UsageError("--id names one job, and a stream has many", hint="omit --id")
    if not arguments and not file and "command" not in flags:
        raise UsageError("nothing to enqueue", hint="for example: queuectl enqueue 'echo hello'")
    return arguments, file


def read_file(app: App, path: str) -> bytes:
    with reading(path):
        if path == "-":
            return app.stdin_bytes.read()
        with open(path, "rb") as document:
            return document.read()


def read_document(app: App, path: str, form: str | None) -> JobInput:
    from queuectl.operations.job_input import InputFormat, parse_document

    return parse_document(read_file(app, path), InputFormat(form) if form else None)


def _reader(app: App, path: str) -> Callable[[], bytes]:
    """A function that blocks until input arrives and returns what there is."""
    with reading(path):
        fd = app.stdin_bytes.fileno() if path == "-" else os.open(path, os.O_RDONLY)

    def read() -> bytes:
        with reading(path):
            return os.read(fd, READ_BYTES)

    return read


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def single(app: App, added: Queued, *, show_env: bool = False) -> Result:
    return Details(
        lambda: _to_json(app, added, show_env=show_env),
        text=lambda: [added.id],
        id=added.id,
        note=lambda: _note(app, added),
        effect=_effect(added),
    )


def _batch(app: App, added: Enqueued, *, show_env: bool) -> Result:
    new = [job_id for index, job_id in enumerate(added) if index not in added.duplicates]

    def effect() -> str | None:
        named = ", ".join(new) if len(new) <= MAX_LISTED else f"{new[0]} … {new[-1]}"
        return f"{len(new):,} jobs were added: {named}" if new else None

    return Stream(
        queued(added),
        to_line=lambda one: one.id,
        to_json=partial(_to_json, app, show_env=show_env),
        summary=lambda: _summary(app, new, there=len(added.duplicates)),
        effect=effect,
    )


def _stream(app: App, path: str, *, flags: Mapping[str, object], form: str | None, show_env: bool) -> Result:
    from queuectl.operations.job_input import InputFormat, add_lines, has_jobs, read_blocks
    from queuectl.operations.wait import retry_store

    cwd = working_directory()
    refused = 0
    last: Queued | None = None
    first: list[QueuectlError] = []

    def answers() -> Iterator[Queued | QueuectlError]:
        for block in read_blocks(_reader(app, path), InputFormat(form) if form else None):
            store = retry_store(app.clock, app.find_enqueuer)
            defaults = retry_store(app.clock, partial(job_defaults, store, app.environ, cwd=cwd))
            lines = block.parse(defaults, flags)
            if store is None and has_jobs(lines):
                store = retry_store(app.clock, app.open_enqueuer)
            yield from add_lines(store, lines, app.clock)

    def rows() -> Iterator[Queued]:
        nonlocal refused, last
        try:
            for answer in answers():
                if not isinstance(answer, QueuectlError):
                    last = answer
                    yield answer
                    continue
                refused += 1
                if not app.flags.json:
                    report(app, answer)
                elif refused <= MAX_LISTED:
                    first.append(answer)
        except QueuectlError:
            first.clear()  # this error ends the command and is reported instead
            raise
        finally:
            if first:  # with --json, stderr holds a single error
                report(app, first[0] if refused == 1 else InvalidLines(first, refused))

    return Stream(
        rows(),
        to_line=lambda one: one.id,
        to_json=partial(_to_json, app, show_env=show_env),
        live=True,
        effect=lambda: None if last is None else _effect(last),
        exit_code=lambda: USAGE if refused else DONE,
    )


def _effect(added: Queued) -> str:
    return f"the job {added.id} {'already existed' if added.is_duplicate else 'was added'}"


def _to_json(app: App, added: Queued, *, show_env: bool) -> dict[str, Any]:
    return {**app.open_store().get(added.id).to_dict(show_env=show_env), "duplicate": added.is_duplicate}


def _note(app: App, added: Queued) -> str:
    store = app.open_store()
    job = store.get(added.id)
    if added.is_duplicate:
        return app.paint(f"already exists, {job.state}: not queued again", "dim")
    wait_ms = to_ms(job.run_at) - store.now_ms()
    # A worker may have run the job already: then run_at is the time of a retry.
    when = f", due in {humanize_elapsed(wait_ms)}" if wait_ms > 0 and not job.runs else ""
    paused = _paused(app, [added.id])
    when = f", {escape_control(job.reason)}" if job.state == "blocked" and job.reason else when
    idle = "; no worker is running: queuectl worker start" if _is_idle(app) else ""
    return app.paint(f"queued in {job.queue}{when}{'; ' if paused else ''}{paused}{idle}", "dim")


def _summary(app: App, ids: Sequence[str], *, there: int) -> str:
    already = f"{there:,} already {'exists' if there == 1 else 'exist'}, not queued again"
    if not ids:
        return f"nothing queued: {already}" if there else "nothing queued: the input has no jobs"
    jobs = "1 job" if len(ids) == 1 else f"{len(ids):,} jobs"
    span = ids[0] if len(ids) == 1 else f"{ids[0]} … {ids[-1]}"
    idle = "\nno worker is running: queuectl worker start" if _is_idle(app) else ""
    more = f"; {already}" if there else ""
    paused = _paused(app, ids)
    notes = (f"\n{paused}" if paused else "") + idle
    return f"queued {jobs}: {span}{more}{app.paint(notes, 'dim')}"


def _paused(app: App, ids: Sequence[str]) -> str:
    """A message about paused queues of these jobs; of many jobs, only the first are looked up."""
    from queuectl.operations.queues import paused_of

    names = " ".join(paused_of(app.open_store(), ids[:MAX_PAUSE_LOOKUPS]))
    return f"{names} is paused: queuectl queue resume {names}" if names else ""


def _is_idle(app: App) -> bool:
    return not any(map(app.is_serving, app.open_store().workers()))


# ── clone ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@command(
    "clone",
    prints_jobs=True,
    option_groups=OPTION_GROUPS,
    examples="""
        queuectl clone 7f3a
        # the same with another time limit, later
        queuectl clone 7f3a --timeout 2h --delay 10m
        queuectl wait $(queuectl clone last)
    """,
)
@click.argument("ref", metavar="ID", shell_complete=complete_jobs)
@field_options
def clone(app: App, ref: str, **options: Any) -> Result:
    """Add a copy of a job and print the new ID. The original can be in any state.

    The copy has no history. It keeps the dependencies that the original still waits for. Options of enqueue override its
    fields.
    """
    from queuectl.jobs.fields import absolute
    from queuectl.operations.control import clone as copy_of

    flags = read_flags(options, app)
    if isinstance(flags.get("cwd"), str):
        flags["cwd"] = absolute(str(flags["cwd"]), working_directory())
    reads = app.open_reads()
    new = copy_of(reads, ref, flags)
    return single(app, next(queued(app.open_store().enqueue([new]))))
