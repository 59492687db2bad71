"""queuectl run"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.commands.enqueue import file_options, from_words, read_file, source
from queuectl.cli.exits import INTERRUPTED, REFUSED
from queuectl.cli.failure import Interrupted
from queuectl.cli.gone import tell_gone
from queuectl.cli.jobs import end_line
from queuectl.cli.jobwords import JobCommand, job_options, place_of, read_flags
from queuectl.cli.printable import printable
from queuectl.cli.result import Raw, Result, Sheet
from queuectl.cli.workers import unserved_watch
from queuectl.errors import JobNotFound, StoreBusy, StoreUnreachable, Unavailable, UsageError
from queuectl.job.model import Job
from queuectl.queue import inspect, logs
from queuectl.queue.enqueue import enqueue as add
from queuectl.queue.intake import Format, read_document
from queuectl.queue.logs import LogView
from queuectl.queue.patience import persist
from queuectl.queue.wait import exit_code, wait


@command(
    "run",
    cls=JobCommand,
    examples="""
        queuectl run 'make test'
        # with any option of enqueue
        queuectl run --queue builds --timeout 10m -- make -j4 all
        # as a file describes it
        queuectl run --file job.json
        # everything about it when it has ended, for a program
        queuectl run --json 'make test'
    """,
)
@job_options
@file_options
@show_env_option
def run(app: App, words: tuple[str, ...], file: str | None, form: str | None, show_env: bool, **options: Any) -> Result:
    """Add a job, print its output as it comes, and exit as the job does.

    Exits with its exit code, 128 + its signal (143 if it was cancelled while it ran), or 1 if it was cancelled before.
    Ctrl-C leaves the job running.
    """
    flags = read_flags({**options, "file": "-" if words == ("-",) else file}, app)
    if not words and file is None and "command" not in flags:
        raise UsageError("nothing to run", hint="say what to run: queuectl run 'echo hello'")
    words, file = source(words, file, flags=flags, stream=False, form=form)
    wanted = Format(form) if form else None
    intake = read_document(read_file(app, file), wanted) if file else from_words(words, flags)
    if len(list(islice(intake, 2))) != 1:
        raise UsageError("run takes one job", hint="queuectl enqueue adds several, queuectl wait waits for them")
    (job_id,) = add(intake, place_of(app), flags=flags)
    if app.flags.json:
        return _answer(app, job_id, show_env=show_env)
    app.say(app.paint(f"job {printable(job_id)}", "dim"))
    output = _Output(app, job_id)
    return Raw(output, exit_code=output.code)


class _Output:
    """What the job prints, until it has ended or somebody has seen enough."""

    def __init__(self, app: App, job_id: str) -> None:
        self._app = app
        self._job_id = job_id
        self._is_left = False

    def __iter__(self) -> Iterator[bytes]:
        app, job_id = self._app, self._job_id
        try:
            view, reads = LogView(markers=False), persist(app.clock, app.open_reads)
            watch, tell = unserved_watch(app), partial(tell_gone, app)
            for piece in logs.follow(reads, app.clock, [job_id], view, host=app.host, watch=watch, tell=tell):
                yield piece.data
        except KeyboardInterrupt:
            self._is_left = True
            app.say("")  # the terminal has printed ^C
            _say_how_to_go_on(app, job_id)
        except (StoreBusy, StoreUnreachable) as error:
            raise _still_going(error, job_id) from None
        except GeneratorExit:  # interrupted, or cut off, while what it gave was being printed
            _say_how_to_go_on(app, job_id)
            raise
        else:
            if app.is_talking:
                app.say(end_line(app, self._job()))

    def code(self) -> int:
        if self._is_left:
            return INTERRUPTED
        try:
            return exit_code([self._job()])
        except JobNotFound:  # removed as soon as it had ended
            return REFUSED

    def _job(self) -> Job:
        try:
            return persist(self._app.clock, lambda: self._app.open_reads().get(self._job_id))
        except (StoreBusy, StoreUnreachable) as error:
            raise _still_going(error, self._job_id) from None


def _answer(app: App, job_id: str, *, show_env: bool) -> Result:
    def look() -> inspect.Shown:
        return inspect.show(app.open_reads(), job_id, host=app.host, output_limit=app.settings.output_limit)

    try:
        ended = wait(persist(app.clock, app.open_reads), app.clock, [job_id])
        shown = persist(app.clock, look)
    except KeyboardInterrupt:
        raise Interrupted(job_id) from None
    except (StoreBusy, StoreUnreachable) as error:
        raise _still_going(error, job_id) from None
    return Sheet(shown.to_dict(show_env=show_env), people=lambda: (), exit_code=exit_code(ended))


def _still_going(error: Unavailable, job_id: str) -> Unavailable:
    """Not "try again": that would queue it twice."""
    error.hint = f"the job is queued and goes on; to follow it again: queuectl logs -f {job_id}"
    return error


def _say_how_to_go_on(app: App, job_id: str) -> None:
    app.warn(f"{printable(job_id)} goes on; to follow it again: queuectl logs -f {printable(job_id)}")
