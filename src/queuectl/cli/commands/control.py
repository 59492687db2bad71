"""Commands that change jobs: cancel, retry, hold, release, run-now, priority, edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, integer
from queuectl.cli.completion import complete_jobs_after_a_number
from queuectl.cli.errors import confirm, yes_option
from queuectl.cli.filters import Selection, filter_options, ids_and_filters, require_ids_or_filters
from queuectl.cli.render import Done, Result
from queuectl.cli.watch import Advance, progress
from queuectl.cli.worker_status import rescuer
from queuectl.errors import InvalidInput
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.model import BulkResult
from queuectl.jobs.states import WAITING, State
from queuectl.operations import control
from queuectl.operations.bulk import BULK_BATCH_SIZE, resolve_ids
from queuectl.store.protocol import Store
from queuectl.store.types import Chosen, Filter
from queuectl.text import escape_control, plural

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

    Waiting jobs are cancelled immediately. For a running job, all processes get TERM, and KILL after kill-grace. The
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
        return control.cancel(store, app.clock, refs, rescue=rescuer(app, spare=True), on_wait=on_wait, exact=exact)

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
