"""queuectl run: add a job, follow its output, exit with its exit code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.commands.enqueue import add, file_options, read_document, source
from queuectl.cli.commands.logs import warn_missing_output
from queuectl.cli.errors import INTERRUPTED, REFUSED, Interrupted
from queuectl.cli.job_options import OPTION_GROUPS, JobCommand, command_input, job_options, read_flags
from queuectl.cli.job_view import end_line
from queuectl.cli.render import Details, Raw, Result
from queuectl.cli.worker_status import unserved_watch
from queuectl.errors import JobNotFound, StoreBusy, StoreUnreachable, Unavailable, UsageError
from queuectl.jobs.model import Job
from queuectl.operations import inspect, logs
from queuectl.operations.logs import LogView
from queuectl.operations.wait import exit_code, retry_store, wait
from queuectl.text import escape_control


@command("run", cls=JobCommand, option_groups=OPTION_GROUPS)
@job_options
@file_options
@show_env_option
def run(
    app: App, arguments: tuple[str, ...], file: str | None, form: str | None, show_env: bool, **options: Any
) -> Result:
    """Add a job, print its output as it arrives, and exit with its exit code.

    The exit status is the exit code of the job, or 128 + the signal that ended it (143 for a cancel). If the job was
    cancelled before it started, the exit status is 1. After Ctrl-C, the job keeps running.

    Examples:
        queuectl run 'make test'
        # with options of enqueue
        queuectl run --queue builds --timeout 10m -- make -j4 all
        # from a file
        queuectl run --file job.json
        # all fields of the finished job as JSON
        queuectl run --json 'make test'
    """
    flags = read_flags({**options, "file": "-" if arguments == ("-",) else file}, app)
    if not arguments and file is None and "command" not in flags:
        raise UsageError("nothing to run", hint="for example: queuectl run 'echo hello'")
    arguments, file = source(arguments, file, flags=flags, stream=False, form=form)
    jobs = read_document(app, file, form) if file else command_input(arguments, flags)
    if len(list(islice(jobs, 2))) != 1:
        raise UsageError("run takes one job", hint="queuectl enqueue adds several, queuectl wait waits for them")
    (job_id,) = add(app, jobs, flags=flags)
    if app.flags.json:
        return _answer(app, job_id, show_env=show_env)
    app.say(app.paint(f"job {escape_control(job_id)}", "dim"))
    output = _Output(app, job_id)
    return Raw(output, exit_code=output.code)


class _Output:
    """The output of the job, until it has ended or the user presses Ctrl-C."""

    def __init__(self, app: App, job_id: str) -> None:
        self._app = app
        self._job_id = job_id
        self._is_interrupted = False

    def __iter__(self) -> Iterator[bytes]:
        app, job_id = self._app, self._job_id
        try:
            view, reads = LogView(markers=False), retry_store(app.clock, app.open_reads)
            watch, tell = unserved_watch(app), partial(warn_missing_output, app)
            for piece in logs.follow_logs(reads, app.clock, [job_id], view, host=app.host, watch=watch, tell=tell):
                yield piece.data
        except KeyboardInterrupt:
            self._is_interrupted = True
            app.say("")  # the terminal has printed ^C
            _warn_still_running(app, job_id)
        except (StoreBusy, StoreUnreachable) as error:
            raise _with_follow_hint(error, job_id) from None
        except GeneratorExit:  # Ctrl-C or a broken pipe while the last part was printed
            _warn_still_running(app, job_id)
            raise
        else:
            if app.shows_messages:
                app.say(end_line(app, self._job()))

    def code(self) -> int:
        if self._is_interrupted:
            return INTERRUPTED
        try:
            return exit_code([self._job()])
        except JobNotFound:  # pruned right after its end
            return REFUSED

    def _job(self) -> Job:
        try:
            return retry_store(self._app.clock, lambda: self._app.open_reads().get(self._job_id))
        except (StoreBusy, StoreUnreachable) as error:
            raise _with_follow_hint(error, self._job_id) from None


def _answer(app: App, job_id: str, *, show_env: bool) -> Result:
    def look() -> inspect.JobDetails:
        return inspect.show(app.open_reads(), job_id, host=app.host, output_limit=app.settings.output_limit)

    try:
        ended = wait(retry_store(app.clock, app.open_reads), app.clock, [job_id])
        shown = retry_store(app.clock, look)
    except KeyboardInterrupt:
        raise Interrupted(job_id) from None
    except (StoreBusy, StoreUnreachable) as error:
        raise _with_follow_hint(error, job_id) from None
    return Details(shown.to_dict(show_env=show_env), text=lambda: (), exit_code=exit_code(ended))


def _with_follow_hint(error: Unavailable, job_id: str) -> Unavailable:
    """The error without the hint to try again, which would enqueue a second job."""
    error.hint = f"the job keeps running; to follow it: queuectl logs -f {job_id}"
    return error


def _warn_still_running(app: App, job_id: str) -> None:
    app.warn(f"{escape_control(job_id)} keeps running; to follow it: queuectl logs -f {escape_control(job_id)}")
