"""enqueue: add jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.exits import DONE, USAGE
from queuectl.cli.failure import InvalidLines, report
from queuectl.cli.jobwords import JobCommand, job_options, place_of, read_flags
from queuectl.cli.manywords import many_options, read_many, read_on_complete
from queuectl.cli.printable import printable
from queuectl.cli.result import Result, Sheet, Stream
from queuectl.cli.style import took
from queuectl.errors import FileUnreadable, InvalidInput, QueuectlError, UsageError
from queuectl.queue.enqueue import Place, Queued, queued
from queuectl.queue.enqueue import enqueue as add
from queuectl.queue.intake import Format, Given, Intake, looks_like_json, read_document, read_words
from queuectl.store.entry import Enqueued

AT_ONCE = 1 << 16
LOOKED_AT = 500  # jobs, to find out about their queues
FEW = 5  # as many ids or refusals one line can name

F = TypeVar("F", bound=Callable[..., Any])


def file_options(function: F) -> F:
    """The options of `enqueue` and `run` that name a file of jobs."""
    forms = click.Choice(["json", "jsonl", "lines"])
    function = click.option("--format", "form", type=forms, help="How it is written; else its first character.")(
        function
    )
    return click.option("--file", metavar="FILE", help="Read the jobs from a file, - for stdin.")(function)


@command(
    "enqueue",
    cls=JobCommand,
    examples="""
        # one word is a command for the shell
        queuectl enqueue 'sleep 2 && echo done'

        # several words run without a shell, exactly as they are
        queuectl enqueue --priority 5 -- convert in.png -resize 50% out.png

        # JSON, with any field of a job
        queuectl enqueue '{"id": "job1", "command": "sleep 2", "max_retries": 5}'

        # many at once, all or nothing: JSON lines, a JSON array, or one command a line
        queuectl enqueue --file jobs.jsonl --queue mail
        find . -name '*.log' | sed 's/^/gzip /' | queuectl enqueue --file -

        # a command for each line of a list; {.} is the line without its extension
        find . -name '*.jpg' -print0 | queuectl enqueue --for-each - -0 'convert {} {.}.png'

        # the same command a hundred times, each with another $QUEUECTL_ARRAY_INDEX
        queuectl enqueue --array 1-100 './simulate --seed "$QUEUECTL_ARRAY_INDEX"'
        # at most four of them at a time
        queuectl enqueue --array 1-100%4 './render --frame "$QUEUECTL_ARRAY_INDEX"'

        # under one name, with something to run when all of them have ended
        queuectl enqueue --file jobs.txt --batch nightly --on-complete 'mail -s done me'
        queuectl wait --batch nightly

        # not twice: prints the id of the one that waits or runs, if there is one
        queuectl enqueue 'make report' --unique report

        # one after the other: only when the other has completed
        queuectl enqueue --after "$(queuectl enqueue 'make build')" 'make test'

        # later, with a time limit, and wait for it
        queuectl wait $(queuectl enqueue 'make report' --delay 10m --timeout 1h)
    """,
)
@job_options
@file_options
@click.option("--stream", is_flag=True, help="Add each line as it arrives; a bad one is skipped.")
@many_options
@show_env_option
def enqueue(
    app: App, words: tuple[str, ...], file: str | None, form: str | None, stream: bool, show_env: bool, **options: Any
) -> Result:
    """Add jobs and print their ids, once they are safe.

    A word that begins with { or [ is JSON, any other single word a command for the shell, several words a program
    with its arguments, run without a shell. Options of jobs win over what JSON says.
    """
    flags = read_flags({**options, "file": file or ("-" if stream or words == ("-",) else None)}, app)
    many = read_many(options)
    on_complete = read_on_complete(options, stream=stream)
    if many:
        many.refuse_beside(file=file, stream=stream, form=form)
    else:
        words, file = source(words, file, flags=flags, stream=stream, form=form)
    place = place_of(app)
    wanted = Format(form) if form else None
    if stream:
        return _stream(app, place, str(file), flags=flags, form=wanted, show_env=show_env)
    if many:
        intake = many.intake(words, flags, read=partial(read_file, app), from_words=from_words)
    else:
        intake = read_document(read_file(app, file), wanted) if file else from_words(words, flags)
    if not intake.is_batch:
        added = next(queued(add(intake, place, flags=flags, on_complete=on_complete)))
        return single(app, added, show_env=show_env)
    from queuectl.cli.progress import progress

    with progress(app, "reading", total=intake.size) as advance:
        ids = add(intake, place, flags=flags, advance=advance, on_complete=on_complete)
    return _batch(app, ids, show_env=show_env)


def source(
    words: tuple[str, ...], file: str | None, *, flags: Mapping[str, object], stream: bool, form: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Either words or a file: exactly one place for jobs to come from."""
    if file == "":
        raise InvalidInput("--file", "the name is empty", hint="give the name of a file, or - for stdin")
    if words == ("-",) and file is None:
        words, file = (), "-"
    if stream and file is None and not words:
        file = "-"
    if words and file:
        raise UsageError("jobs from words and from a file at once", hint="leave one of the two away")
    if words and (stream or form):
        raise UsageError(
            f"{'--stream' if stream else '--format'} is for a file", hint="add --file FILE, or - for stdin"
        )
    if stream and "id" in flags:
        raise UsageError("--id names one job, and a stream has many", hint="leave --id away")
    if not words and not file and "command" not in flags:
        raise UsageError("nothing to enqueue", hint="say what to run: queuectl enqueue 'echo hello'")
    return words, file


def from_words(words: tuple[str, ...], flags: Mapping[str, object]) -> Intake:
    if not words:
        return Given([{}], is_batch=False)
    if "command" in flags and not looks_like_json(words[0]):
        raise UsageError("what to run was said twice: by words and by --command", hint="leave one of the two away")
    if not words[0] or not "".join(words).strip():
        raise UsageError("the command is blank", hint="say what to run, like 'echo hello'")
    return read_words(words)


def read_file(app: App, path: str) -> bytes:
    try:
        if path == "-":
            return app.stdin_bytes.read()
        with open(path, "rb") as document:
            return document.read()
    except OSError as error:
        raise _unreadable(path, error) from error


def _reader(app: App, path: str) -> Callable[[], bytes]:
    """Waits for more, and gives what has arrived without waiting for any more than that."""
    try:
        fd = app.stdin_bytes.fileno() if path == "-" else os.open(path, os.O_RDONLY)
    except OSError as error:
        raise _unreadable(path, error) from error

    def read() -> bytes:
        try:
            return os.read(fd, AT_ONCE)
        except OSError as error:
            raise _unreadable(path, error) from error

    return read


def _unreadable(path: str, error: OSError) -> FileUnreadable:
    return FileUnreadable("stdin" if path == "-" else path, error.strerror or str(error), or_stdin=True)


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def single(app: App, added: Queued, *, show_env: bool = False) -> Result:
    job_id = added.id
    app.done = _done(added)
    return Sheet(
        lambda: _to_json(app, added, show_env=show_env),
        people=lambda: [job_id],
        id=job_id,
        note=lambda: _words_about(app, added),
    )


def _batch(app: App, added: Enqueued, *, show_env: bool) -> Result:
    new = [job_id for place, job_id in enumerate(added) if place not in added.duplicates]
    if new:
        named = ", ".join(new) if len(new) <= FEW else f"{new[0]} … {new[-1]}"
        app.done = f"{len(new):,} jobs were added: {named}"
    return Stream(
        queued(added),
        to_line=lambda one: one.id,
        to_json=partial(_to_json, app, show_env=show_env),
        summary=lambda: _summary(app, new, there=len(added.duplicates)),
    )


def _stream(
    app: App, place: Place, path: str, *, flags: Mapping[str, object], form: Format | None, show_env: bool
) -> Result:
    from queuectl.queue.stream import enqueue_stream

    refused = 0
    first: list[QueuectlError] = []

    def rows() -> Iterator[Queued]:
        nonlocal refused
        try:
            for answer in enqueue_stream(_reader(app, path), place, flags=flags, form=form, clock=app.clock):
                if not isinstance(answer, QueuectlError):
                    app.done = _done(answer)
                    yield answer
                    continue
                refused += 1
                if not app.flags.json:
                    report(app, answer)
                elif refused <= FEW:
                    first.append(answer)
        except QueuectlError:
            first.clear()  # it ends the command, and is the error to tell
            raise
        finally:
            if first:  # with --json, stderr holds one error, however many lines were wrong
                report(app, first[0] if refused == 1 else InvalidLines(first, refused))

    return Stream(
        rows(),
        to_line=lambda one: one.id,
        to_json=partial(_to_json, app, show_env=show_env),
        live=True,
        exit_code=lambda: USAGE if refused else DONE,
    )


def _done(added: Queued) -> str:
    return f"the job {added.id} {'was there already' if added.is_duplicate else 'was added'}"


def _to_json(app: App, added: Queued, *, show_env: bool) -> dict[str, Any]:
    return {**app.open_store().get(added.id).to_dict(show_env=show_env), "duplicate": added.is_duplicate}


def _words_about(app: App, added: Queued) -> str:
    from queuectl.job.model import to_ms

    store = app.open_store()
    job = store.get(added.id)
    if added.is_duplicate:
        return app.paint(f"there already, {job.state}: not queued twice", "dim")
    wait_ms = to_ms(job.run_at) - store.now_ms()
    # A worker may have been quicker than these words: then the time is that of a retry, and no news of the enqueue.
    when = f", due in {took(wait_ms)}" if wait_ms > 0 and not job.runs else ""
    paused = _paused(app, [added.id])
    when = f", {printable(job.reason)}" if job.state == "blocked" and job.reason else when
    idle = "; no worker is running: queuectl worker start" if _is_idle(app) else ""
    return app.paint(f"queued in {job.queue}{when}{'; ' if paused else ''}{paused}{idle}", "dim")


def _summary(app: App, ids: Sequence[str], *, there: int) -> str:
    already = f"{there:,} there already, not queued twice"
    if not ids:
        return f"nothing queued: {already}" if there else "no jobs in it: nothing queued"
    jobs = "1 job" if len(ids) == 1 else f"{len(ids):,} jobs"
    span = ids[0] if len(ids) == 1 else f"{ids[0]} … {ids[-1]}"
    idle = "\nno worker is running: queuectl worker start" if _is_idle(app) else ""
    more = f"; {already}" if there else ""
    paused = _paused(app, ids)
    news = (f"\n{paused}" if paused else "") + idle
    return f"queued {jobs}: {span}{more}{app.paint(news, 'dim')}"


def _paused(app: App, ids: Sequence[str]) -> str:
    """Which of their queues start nothing now, in words; of a crowd, the first few hundred are looked at."""
    from queuectl.queue.queues import paused_of

    names = " ".join(paused_of(app.open_store(), ids[:LOOKED_AT]))
    return f"{names} is paused: queuectl queue resume {names}" if names else ""


def _is_idle(app: App) -> bool:
    from queuectl.cli.workers import is_serving

    return not any(map(is_serving(app), app.open_store().workers()))
