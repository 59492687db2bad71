"""Commands that change jobs: cancel, retry, hold, release, run-now, priority, edit, and the dead letter queue.

Imports that only the editor of `edit` and the lists of `dlq` need are inside of functions.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import click

from queuectl.cli.app import App
from queuectl.cli.command import combine_options, command, group, integer, show_env_option
from queuectl.cli.completion import complete_jobs, complete_jobs_after_a_number, complete_queues, complete_secrets
from queuectl.cli.errors import confirm, yes_option
from queuectl.cli.filters import Selection, filter_options, ids_and_filters, page_options, require_ids_or_filters
from queuectl.cli.job_options import ONE_OF_THEM, ChangeCommand, editable_options
from queuectl.cli.render import Advance, Done, Result, progress
from queuectl.errors import Conflict, InvalidInput, QueuectlError, UsageError, WrongState
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.model import BulkResult, Job
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.spec import check_field
from queuectl.jobs.states import WAITING, State
from queuectl.operations import control
from queuectl.operations.bulk import BULK_BATCH_SIZE, resolve_ids
from queuectl.operations.query import parse_state
from queuectl.store.store import Store
from queuectl.store.types import Chosen, Filter
from queuectl.text import escape_control, plural
from queuectl.units import format_duration, iso, to_ms

# Between two batches of a bulk change: other writers that wait for the lock try every 2 ms.
BULK_PAUSE_SECONDS: Final = 0.003


class BulkFunction(Protocol):
    def __call__(self, store: Store, refs: Iterable[str], /, *, exact: bool = False) -> BulkResult: ...


class BulkAction(NamedTuple):
    """A change to jobs."""

    do: BulkFunction
    name: str  # "cancel", for the question
    done: str  # "cancelled", printed before each id
    able: frozenset[State]  # the states in which a job can be changed
    wants: Callable[[Chosen], bool] = lambda _: True  # whether it would change a job


def apply(app: App, action: BulkAction, ids: tuple[str, ...], selection: Selection, *, yes: bool) -> Done:
    """Change jobs by id, or after a confirmation those that match the filters."""
    require_ids_or_filters(ids, selection)
    if ids:
        return apply_to_ids(app, action, ids)
    return apply_to_matching(app, action, selection.where_able(app, action.able, done=action.done), yes=yes)


def apply_to_ids(app: App, action: BulkAction, refs: Sequence[str]) -> Done:
    """Change jobs by id. If none exists, no data directory and no database is created."""
    found = resolve_ids(app.open_reads(), refs)
    if not found.done:
        return Done([], refused=found.refused, verb=action.done)
    return _run(app, action, refs, exact=False)


def apply_to_matching(
    app: App, action: BulkAction, where: Filter, *, yes: bool, what: str = "job", loses: str = ""
) -> Done:
    """Change the jobs that match, after a confirmation. `loses`: what is removed with them, for the question."""
    chosen = [job for job in app.open_reads().choose(where) if action.wants(job)]
    if not chosen:
        matching = "" if where.names_states_only else "matching "
        app.say(app.paint(f"no {matching}{what}s to {action.name}", "dim"))
        return Done([], verb=action.done)
    confirm(app, f"{action.name.capitalize()} {_jobs_text(chosen, what)}{loses}?", yes=yes)
    return _run(app, action, [job.id for job in chosen], exact=True)


def _run(app: App, action: BulkAction, refs: Sequence[str], *, exact: bool) -> Done:
    with progress(app, action.done, total=len(refs)) as advance:
        answer = action.do(app.open_store(), _counted(app, refs, advance), exact=exact)
    return Done(answer.done, refused=answer.refused, verb=action.done, is_bulk=exact)


def _counted(app: App, refs: Sequence[str], advance: Advance) -> Iterator[str]:
    for number, ref in enumerate(refs):
        if number and number % BULK_BATCH_SIZE == 0:
            app.clock.sleep(BULK_PAUSE_SECONDS)
        advance(number, len(refs))
        yield ref


def _jobs_text(chosen: Sequence[Chosen], what: str) -> str:
    """`12 jobs (10 pending, 2 processing)`."""
    counts = Counter(job.state for job in chosen)
    states = ", ".join(f"{counts[state]:,} {state}" for state in State if counts[state])
    return f"{plural(len(chosen), what)} ({states})" if what == "job" else plural(len(chosen), what)


@command("cancel")
@ids_and_filters()
@yes_option
def cancel(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Cancel jobs.

    Waiting jobs are cancelled immediately. All processes of a running job get SIGTERM, and SIGKILL after kill-grace. The
    command returns when they have exited.

    Examples:
        queuectl cancel 7f3a
        # all waiting jobs of a queue; asks first
        queuectl cancel --state pending --queue mail
        queuectl cancel --match ffmpeg --since 1h --yes
    """

    def on_wait(waiting: Sequence[str]) -> None:
        app.say(app.paint(f"cancelling {', '.join(map(escape_control, waiting))} …", "dim"))

    def cancel_jobs(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> BulkResult:
        return control.cancel(
            store, app.clock, refs, rescue=lambda: app.rescue(spare=True), on_wait=on_wait, exact=exact
        )

    return apply(app, BulkAction(cancel_jobs, "cancel", "cancelled", control.CANCELLABLE), ids, selection, yes=yes)


_RETRY: Final = BulkAction(control.retry, "retry", "requeued", control.RETRYABLE)


@command("retry")
@ids_and_filters()
@yes_option
def retry(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Retry failed, dead or cancelled jobs now.

    Jobs keep their position in the queue. The attempts of dead and cancelled jobs are reset to 0.

    Examples:
        # do not wait for the backoff
        queuectl retry 7f3a
        # all cancelled jobs enqueued in the last 24 hours; asks first
        queuectl retry --state cancelled --since 24h
    """
    return apply(app, _RETRY, ids, selection, yes=yes)


_HOLD: Final = BulkAction(control.hold, "hold", "held", WAITING, wants=lambda job: not job.held)
_RELEASE: Final = BulkAction(control.release, "release", "released", WAITING, wants=lambda job: job.held)
_RUN_NOW: Final = BulkAction(control.run_now, "run", "due now", control.CLAIMABLE)


@command("hold")
@ids_and_filters()
@yes_option
def hold(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Hold waiting jobs, so that workers do not start them until they are released.

    Held jobs keep their state and their position in the queue. A worker with --drain does not wait for them.

    Examples:
        queuectl hold 7f3a
        # all waiting jobs of a queue; asks first
        queuectl hold --queue mail
    """
    return apply(app, _HOLD, ids, selection, yes=yes)


@command("release")
@ids_and_filters()
@yes_option
def release(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Release held jobs. They run when they are due and a worker has a free slot.

    Examples:
        queuectl release 7f3a
        queuectl release --queue mail --yes
    """
    return apply(app, _RELEASE, ids, selection, yes=yes)


@command("run-now")
@ids_and_filters()
@yes_option
def run_now(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Make delayed jobs due now, and failed jobs that wait for a retry.

    Jobs keep their attempts and their position in the queue. Held jobs are released.

    Examples:
        queuectl run-now 7f3a
        # do not wait for the backoff
        queuectl run-now --state failed --queue mail
    """
    return apply(app, _RUN_NOW, ids, selection, yes=yes)


@command("priority", signed_arguments=True)
@click.argument("arguments", nargs=-1, metavar="N [ID...]", shell_complete=complete_jobs_after_a_number)
@filter_options()
@yes_option
def priority(app: App, arguments: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Change the priority of waiting jobs. Jobs with a higher priority run first.

    The priority comes first, so that any number of IDs can follow. With a single ID, it can also come last.

    Examples:
        queuectl priority 10 7f3a 91bc
        queuectl priority -5 --queue thumbnails
    """
    number, ids = _priority_and_ids(arguments)
    change = parse_edit({"priority": number})

    do = partial(control.edit, change=change)
    return apply(app, BulkAction(do, "change", f"priority {number}:", WAITING), ids, selection, yes=yes)


def _priority_and_ids(arguments: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    if len(arguments) == 2 and [type(integer(word)) for word in arguments] == [str, int]:
        arguments = arguments[::-1]
    number = integer(arguments[0]) if arguments else None
    if not isinstance(number, int):
        problem = "expected an integer, got " + (repr(arguments[0]) if arguments else "nothing")
        raise InvalidInput("N", problem, hint="for example, queuectl priority 10 7f3a")
    return number, arguments[1:]


# ── edit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command("edit", cls=ChangeCommand)
@ids_and_filters()
@editable_options
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME[=ENTRY]",
    shell_complete=complete_secrets,
    help="Set a variable to a secret; replaces all earlier secrets.",
)
@click.option("--no-secrets", is_flag=True, help="Remove all secrets.")
@click.option(
    "--move-to",
    metavar="NAME",
    shell_complete=complete_queues,
    help="Queue to move the jobs to; with IDs, also --queue.",
)
@yes_option
def edit(
    app: App,
    ids: tuple[str, ...],
    selection: Selection,
    yes: bool,
    move_to: str | None,
    no_secrets: bool,
    **fields: Any,
) -> Result:
    """Change waiting jobs with options, or a single job in your editor.

    Running and finished jobs are refused. If a job changed while you edited it, your edit is refused. The job moves to the
    position that a job with the new values would have had from the start.

    Examples:
        # in your editor ($VISUAL, $EDITOR)
        queuectl edit 7f3a
        queuectl edit 7f3a --command 'make all' --timeout 1h
        # to another queue
        queuectl edit 7f3a --queue slow
        # all that match; asks first
        queuectl edit --match ffmpeg --max-attempts 5 --move-to slow
    """
    if no_secrets and fields["secrets"]:
        raise UsageError("--secret and --no-secrets at once", hint=ONE_OF_THEM)
    fields["secrets"] = () if no_secrets else fields["secrets"] or None
    spelled = "--move-to"
    if ids and move_to is None and (move_to := selection.only_queue()) is not None:
        selection, spelled = Selection({}), "--queue"
    if move_to is not None:
        check_field("queue", move_to, spelled=spelled)
    change = parse_edit({**fields, "queue": move_to}, dashes="--")
    if change != JobEdit():
        return apply(
            app, BulkAction(partial(control.edit, change=change), "edit", "changed", WAITING), ids, selection, yes=yes
        )
    if len(ids) != 1 or selection or app.flags.json or not (app.stdin.isatty() and app.stdout_is_terminal):
        hint = "for example, add --priority 5; a single id on a terminal opens your editor"
        raise UsageError("nothing to change", hint=hint)
    return _edit_in_editor(app, ids[0])


def _edit_in_editor(app: App, ref: str) -> Result:
    reads = app.open_reads()
    job = reads.get(reads.resolve(ref))
    if job.state not in WAITING:
        raise WrongState(job.id, job.state, verb="edit", hint="only a job that waits can be changed")
    before = _to_toml(job)
    after = _edit_text(before)
    try:
        change = _parse_changes(before, after)
        if change is None:
            app.say(app.paint("nothing changed", "dim"))
            return Done([])

        do = partial(control.edit, change=change, as_of=to_ms(job.updated_at))
        done = apply_to_ids(app, BulkAction(do, "edit", "changed", WAITING), [job.id])
        for _, error in done.refused:
            raise error
    except QueuectlError as error:
        error.hint = f"{error.hint}; your text is kept in {_save_text(after)}"
        raise
    return done


class EditorFailed(Conflict):
    code = "editor-failed"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="set $EDITOR to one that runs here, or use options: --priority 5")


_HEAD: Final = """\
# Job {id}. Edit, save and quit. Fields that are unchanged or removed keep their value.
# The job is changed only if it still waits and was not changed in the meantime.
"""


def _to_toml(job: Job) -> str:
    """TOML has comments and strings of several lines."""
    if job.command is not None:
        what = f'# for the shell; argv = ["program", …] runs without one\ncommand = {_toml_text(job.command)}'
    else:
        arguments = ", ".join(map(_toml_text, job.argv or ()))
        what = f'# run without a shell; command = "…" is for one\nargv = [{arguments}]'
    timeout = "0" if job.timeout_ms is None else f'"{format_duration(job.timeout_ms)}"'
    return f"""{_HEAD.format(id=job.id)}
{what}

queue = {_toml_text(job.queue)}
# higher runs first
priority = {job.priority}
# earliest start; or delay = "10m" from now
run_at = "{iso(job.run_at)}"
# failed runs until the job is dead
max_retries = {job.max_retries}
# time limit of a run, for example "1h30m"; 0 for unlimited
timeout = {timeout}
# limits of a run: "2GiB", "30s" or a number; 0 for unlimited
{_limits(job)}
# variables and their secrets, for example "PGPASSWORD=db-password"
secrets = [{", ".join(map(_toml_text, job.secrets))}]
"""


def _limits(job: Job) -> str:
    given = job.limits or {}
    values = {name: limit.text(given[name]) if name in given else "0" for name, limit in LIMITS.items()}
    return "\n".join(
        f"{name} = {text if text.lstrip('-').isdigit() else _toml_text(text)}" for name, text in values.items()
    )


def _edit_text(text: str) -> str:
    """Open `text` in the editor of $VISUAL or $EDITOR, and return the saved text."""
    try:
        return click.edit(text, extension=".toml", require_save=False) or ""
    except click.ClickException as exc:
        raise EditorFailed(exc.format_message()) from exc


def _parse_changes(before: str, after: str) -> JobEdit | None:
    """The changed fields; None if there are none. Raises InvalidInput with the position of a syntax error."""
    import tomllib

    shown = tomllib.loads(before)
    try:
        given: dict[str, Any] = tomllib.loads(after)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInput("the page", str(exc), hint="it is TOML: name = value") from exc
    changes = {name: value for name, value in given.items() if name not in shown or shown[name] != value}
    return parse_edit(changes) if changes else None


def _save_text(text: str) -> str:
    """Save text that could not be applied to a file that only the user can read; return its path."""
    import tempfile

    fd, path = tempfile.mkstemp(prefix="queuectl-edit-", suffix=".toml")
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _toml_text(value: str) -> str:
    """A TOML string; newlines are kept. The escapes of JSON are valid in TOML, which also requires one for DEL."""
    import json

    lines = [json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f") for line in value.split("\n")]
    if len(lines) == 1:
        return f'"{lines[0]}"'
    body = "\n".join(lines)
    return f'"""\n{body}"""'


# ── the dead letter queue ───────────────────────────────────────────────────────────────────────────────────────────

_RETRY_DEAD: Final = BulkAction(control.retry_dead, "retry", "requeued", control.DEAD)
_PURGE_DEAD: Final = BulkAction(control.purge_dead, "remove", "purged", control.DEAD)
_LOSES: Final = " with history and logs"

_dead_jobs: Final = combine_options(
    ids_and_filters(hidden=["states"]),
    click.option("--all", "all_of_them", is_flag=True, help="Select all dead jobs."),
    yes_option,
)

dlq = group(
    "dlq",
    "List, retry and purge the dead letter queue: jobs that failed permanently.",
    examples="""
        queuectl dlq list
        queuectl dlq retry --all
    """,
)


@dlq.subcommand(
    "list", "List dead jobs, newest first.", prints_jobs=True, examples="queuectl dlq list --queue mail --sort finished"
)
@click.option("--state", "-s", "states", multiple=True, hidden=True)  # as of `list`; here a single state matches
@click.argument("words", nargs=-1, metavar="[QUERY...]")
@filter_options(but=["states"])
@page_options
def dlq_list(
    app: App,
    states: tuple[str, ...],
    words: tuple[str, ...],
    selection: Selection,
    limit: int | str | None,
    **options: Any,
) -> Result:
    """List dead jobs, newest first."""
    from queuectl.cli.commands.list import list_table

    where = selection.with_query(words).where(app)
    wanted = {*where.states, *(parse_state(state) for state in ",".join(states).split(",") if states)}
    if wanted and State.DEAD not in wanted:
        limit = 0
    return list_table(app, where._replace(states=control.DEAD), limit=limit, **options, what="dead jobs")


@dlq.subcommand(
    "show", "Show a dead job with its history and output.", prints_jobs=True, examples="queuectl dlq show 7f3a"
)
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
@show_env_option
def dlq_show(app: App, id: str, show_env: bool) -> Result:
    """Show a dead job with its history and output."""
    from queuectl.cli.commands.inspect import show_job

    return show_job(app, control.require_dead(app.open_reads(), id), show_env=show_env)


@dlq.subcommand("retry", "Retry dead jobs.")
@_dead_jobs
def dlq_retry(app: App, ids: tuple[str, ...], all_of_them: bool, selection: Selection, yes: bool) -> Result:
    """Retry dead jobs now. Their attempts are reset to 0.

    Examples:
        queuectl dlq retry 7f3a
        queuectl dlq retry --all
        # dead jobs of a queue enqueued today; asks first
        queuectl dlq retry --queue mail --since 24h
    """
    _check_dead(ids, selection, all_of_them=all_of_them)
    if ids:
        return apply_to_ids(app, _RETRY_DEAD, ids)
    # --all needs no confirmation.
    return _apply_to_dead(app, _RETRY_DEAD, selection, yes=yes or all_of_them)


@dlq.subcommand("purge", "Remove dead jobs, their history and logs.", alias="delete")
@_dead_jobs
def dlq_purge(app: App, ids: tuple[str, ...], all_of_them: bool, selection: Selection, yes: bool) -> Result:
    """Remove dead jobs with their history and logs.

    Examples:
        queuectl dlq purge 7f3a
        queuectl dlq purge --all --yes
        queuectl dlq purge --match ffmpeg
    """
    _check_dead(ids, selection, all_of_them=all_of_them)
    if not ids:
        return _apply_to_dead(app, _PURGE_DEAD, selection, yes=yes, loses=_LOSES)
    # Ask about jobs that would be removed only, and not at all if there is none.
    if not yes and (count := control.count_dead(app.open_reads(), ids)):
        confirm(app, f"Remove {plural(count, 'dead job')}{_LOSES}?", yes=yes)
    return apply_to_ids(app, _PURGE_DEAD, ids)


def _check_dead(ids: tuple[str, ...], selection: Selection, *, all_of_them: bool) -> None:
    if not all_of_them:
        require_ids_or_filters(ids, selection)
    elif ids or selection:
        raise UsageError("--all cannot be combined with ids or filters", hint="use one of them")


def _apply_to_dead(app: App, action: BulkAction, selection: Selection, *, yes: bool, loses: str = "") -> Result:
    where = selection.where_able(app, control.DEAD, done=action.done)
    return apply_to_matching(app, action, where, yes=yes, what="dead job", loses=loses)
