"""Commands that wait: run a job and print its output, wait for jobs or a batch, and show the progress of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, group, show_env_option
from queuectl.cli.commands.enqueue import add, file_options, read_document, source
from queuectl.cli.commands.logs import unserved_watch, warn_missing_output
from queuectl.cli.completion import complete_batches
from queuectl.cli.errors import INTERRUPTED, REFUSED, Interrupted
from queuectl.cli.filters import Selection, find_jobs, ids_and_filters, report_not_found
from queuectl.cli.job_options import OPTION_GROUPS, JobCommand, command_input, job_options, read_flags
from queuectl.cli.job_view import end_line
from queuectl.cli.render import Details, Nothing, Raw, Result, StatusLine, Table
from queuectl.cli.tables import BAR_WIDTH, Column, bar_text
from queuectl.errors import JobNotFound, StoreBusy, StoreUnreachable, Unavailable, UsageError
from queuectl.jobs.model import Job
from queuectl.jobs.states import FINAL, State
from queuectl.operations import inspect, logs
from queuectl.operations.logs import LogView
from queuectl.operations.wait import (
    Progress,
    all_progress,
    exit_code,
    first_not_completed,
    progress,
    retry_store,
    retrying_reads,
    wait_batch,
)
from queuectl.operations.wait import wait as wait_for_jobs
from queuectl.text import escape_control
from queuectl.units import humanize_elapsed, humanize_time, parse_duration_ms


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
    return _follow(app, job_id)


def _follow(app: App, job_id: str) -> Raw:
    """The output of the job, until it has ended or the user presses Ctrl-C."""
    is_interrupted = False

    def job() -> Job:
        try:
            return retry_store(app.clock, lambda: app.open_reads().get(job_id))
        except (StoreBusy, StoreUnreachable) as error:
            raise _with_follow_hint(error, job_id) from None

    def output() -> Iterator[bytes]:
        nonlocal is_interrupted
        try:
            view, reads = LogView(markers=False), retry_store(app.clock, app.open_reads)
            watch, tell = unserved_watch(app), partial(warn_missing_output, app)
            for piece in logs.follow_logs(reads, app.clock, [job_id], view, host=app.host, watch=watch, tell=tell):
                yield piece.data
        except KeyboardInterrupt:
            is_interrupted = True
            app.say("")  # the terminal has printed ^C
            _warn_still_running(app, job_id)
        except (StoreBusy, StoreUnreachable) as error:
            raise _with_follow_hint(error, job_id) from None
        except GeneratorExit:  # Ctrl-C or a broken pipe while the last part was printed
            _warn_still_running(app, job_id)
            raise
        else:
            if app.shows_messages:
                app.say(end_line(app, job()))

    def code() -> int:
        if is_interrupted:
            return INTERRUPTED
        try:
            return exit_code([job()])
        except JobNotFound:  # pruned right after its end
            return REFUSED

    return Raw(output(), exit_code=code)


def _answer(app: App, job_id: str, *, show_env: bool) -> Result:
    def look() -> inspect.JobDetails:
        return inspect.show(app.open_reads(), job_id, host=app.host, output_limit=app.settings.output_limit)

    try:
        ended = wait_for_jobs(retry_store(app.clock, app.open_reads), app.clock, [job_id])
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


@command("wait")
@ids_and_filters(but=("batches",))
@click.option(
    "--batch", metavar="NAME", shell_complete=complete_batches, help="Wait until all jobs of this batch have ended."
)
@click.option("--timeout", metavar="TIME", help="Maximum time to wait (90, 90s, 1h30m); then exit 124.")
@click.option("--any", "any_of_them", is_flag=True, help="Wait until one of the jobs has ended.")
@show_env_option
def wait(
    app: App,
    ids: tuple[str, ...],
    selection: Selection,
    batch: str | None,
    timeout: str | None,
    any_of_them: bool,
    show_env: bool,
) -> Result:
    """Wait until jobs are completed, dead or cancelled.

    If all jobs completed, the exit status is 0. Otherwise it is that of the first job that did not complete: its exit
    code, 128 + its signal, or 1. Filters are applied once, at the start. Without --state, they skip finished jobs.

    Examples:
        queuectl wait 7f3a && echo it worked
        queuectl wait --timeout 10m $(queuectl enqueue 'make test')
        # a batch, with a progress bar
        queuectl wait --batch nightly
        # the first one to end
        queuectl wait --any --json 7f3a 91bc
        # until a queue has no more jobs to run
        queuectl wait --queue mail
    """
    seconds = None if timeout is None else parse_duration_ms(timeout, subject="--timeout") / 1000
    if batch is not None:
        if ids or selection or any_of_them:
            raise UsageError("--batch and other jobs or --any at once", hint="wait for the batch, or for single jobs")
        return _wait_for_batch(app, batch, seconds)
    found = find_jobs(app, ids, selection, default=frozenset(State) - FINAL)
    # Without --json now; with it at the end, as the only error, or not at all after a timeout.
    if found.refused and (not app.flags.json or not found.done):
        report_not_found(app, found)
    if not found.done and found.refused:
        return Nothing(exit_code=REFUSED)
    if not found.done:
        return Details([], text=lambda: ())
    unserved = unserved_watch(app)
    waiting: list[str] = found.done

    def watch(unended: Sequence[Job]) -> None:
        nonlocal waiting
        if len(unended) != len(waiting):
            still = {job.id for job in unended}
            _report_ended(app, [job_id for job_id in waiting if job_id not in still])
            waiting = [job.id for job in unended]
        unserved(unended)

    ended = wait_for_jobs(
        app.open_reads(), app.clock, found.done, any_of_them=any_of_them, timeout=seconds, watch=watch
    )
    unreported = set(waiting)
    _report_ended(app, [job.id for job in ended if job.id in unreported])
    if found.refused:
        if app.flags.json:
            report_not_found(app, found)
        return Nothing(exit_code=REFUSED)
    return Details([job.to_dict(show_env=show_env) for job in ended], text=lambda: (), exit_code=exit_code(ended))


def _wait_for_batch(app: App, name: str, seconds: float | None) -> Result:
    store, line = app.open_reads(), StatusLine(app)

    def watch(found: Progress) -> None:
        # One column less: some terminals wrap after the last one.
        line.draw(lambda: bar_line(app, found, width=app.width_of(app.stderr) - 1), force=not found.batch.open)

    try:
        ended = wait_batch(store, app.clock, name, timeout=seconds, watch=watch)
    finally:
        if line.is_drawn:
            app.write_stderr("\n")
    code = exit_code(first_not_completed(store, name))
    return Details(ended.to_dict(), text=lambda: (), exit_code=code)


def _report_ended(app: App, ended: Sequence[str]) -> None:
    for job_id in ended if app.shows_messages else ():
        app.say(end_line(app, retrying_reads(app.open_reads(), app.clock).get(job_id)))


batch = group(
    "batch",
    "Show the progress of batches, which are named groups of jobs.",
    examples="""
        queuectl enqueue --file jobs.txt --batch nightly
        queuectl batch show nightly
        queuectl wait --batch nightly
    """,
)


@batch.subcommand("list", "List batches, newest first.", examples="queuectl batch list")
def batch_list(app: App) -> Result:
    """List batches, newest first."""
    store = app.open_reads()
    return Table(
        all_progress(store),
        _batch_columns(store.now_ms()),
        to_json=Progress.to_dict,
        to_id=lambda one: one.batch.name,
        empty="No batches.",
    )


@batch.subcommand("show", "Show the progress of a batch.", examples="queuectl batch show nightly")
@click.argument("name", metavar="NAME", shell_complete=complete_batches)
def batch_show(app: App, name: str) -> Result:
    """Show the progress of a batch: done, failed and running jobs, its rate and the estimated time left.

    Dead and cancelled jobs count as failed. Jobs that wait for a retry do not.
    """
    found = progress(app.open_reads(), name)
    return Details(found.to_dict(), text=lambda: _batch_lines(app, found), id=name)


def _batch_lines(app: App, found: Progress) -> Iterator[str]:
    batch = found.batch
    yield bar_line(app, found, width=app.width)
    if batch.on_complete is not None:
        then = f"queued as {batch.on_complete_job}" if batch.on_complete_job else "when all have ended"
        yield f"on complete: {escape_control(batch.on_complete)} ({then})"
    if found.failed:
        yield app.paint(f"failed jobs: queuectl list --batch {batch.name} --state dead,cancelled", "dim")


def _batch_columns(now_ms: int) -> list[Column[Progress]]:
    return [
        Column("BATCH", lambda one: one.batch.name),
        Column("JOBS", lambda one: f"{one.batch.added:,}", right=True),
        Column("DONE", lambda one: f"{one.done:,}", right=True),
        Column("FAILED", lambda one: f"{one.failed:,}", right=True),
        Column("RUNNING", lambda one: f"{one.running:,}", right=True),
        Column("WAITING", lambda one: f"{one.waiting:,}", right=True),
        Column("BEGUN", lambda one: humanize_time(one.batch.created_at, now_ms), right=True),
    ]


MIN_BAR_WIDTH: Final = 8


def bar_line(app: App, progress: Progress, *, width: int | None = None) -> str:
    """The progress of a batch on at most `width` columns: the bar gets shorter, then less important parts are omitted."""
    total = max(1, progress.batch.added)
    ended = progress.done + progress.failed
    parts = [
        f"{ended:,} of {progress.batch.added:,}",
        f"{progress.done:,} done",
        f"{progress.failed:,} failed",
        f"{progress.running:,} running",
    ]
    if progress.rate is not None:
        parts.append(f"{progress.rate:.3g}/s")
        if progress.batch.open and progress.left_ms is not None:
            parts.append(f"{humanize_elapsed(progress.left_ms)} left")
    text = f" {100 * ended // total:3} %  {', '.join(parts)}"
    while width is not None and len(parts) > 1 and len(text) + MIN_BAR_WIDTH > width:
        del parts[-2 if len(parts) > 4 else -1]  # the rate before the time left
        text = f" {100 * ended // total:3} %  {', '.join(parts)}"
    length = BAR_WIDTH if width is None else max(MIN_BAR_WIDTH, min(BAR_WIDTH, width - len(text)))
    return bar_text(progress.done, progress.failed, total, width=length, color=app.color_on(app.stdout)) + text
