"""Commands that do something to several jobs, which are named by id or chosen by selectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from queuectl.cli.app import App
from queuectl.cli.confirm import confirm
from queuectl.cli.failure import report_refusals
from queuectl.cli.jobs import plural
from queuectl.cli.progress import Advance, progress
from queuectl.cli.result import Done
from queuectl.cli.selectors import Selection, either
from queuectl.job.lifecycle import State
from queuectl.queue.pick import AT_ONCE, Answer, pick
from queuectl.store.protocol import Chosen, Filter, Store

# Between two portions of a bulk change: whoever waits for the lock asks every 2 ms.
PAUSE: Final = 0.003


class Do(Protocol):
    def __call__(self, store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer: ...


class Verb(NamedTuple):
    """What a command does to jobs."""

    do: Do
    name: str  # "cancel": what is asked
    done: str  # "cancelled": what is said of each
    able: frozenset[State]  # it can be done to jobs in these states
    wants: Callable[[Chosen], bool] = lambda _: True  # whether it would change anything


def act_on(app: App, verb: Verb, ids: tuple[str, ...], selection: Selection, *, yes: bool) -> Done:
    """Do it to the jobs that are named, or to those that are chosen if that is wanted."""
    either(ids, selection)
    if ids:
        return act(app, verb, ids)
    return act_on_chosen(app, verb, selection.where_able(app, verb.able, done=verb.done), yes=yes)


def act(app: App, verb: Verb, refs: Sequence[str]) -> Done:
    """Do it to the jobs that there are. If there are none, no home and no store is made for them."""
    found = pick(app.open_reads(), refs)
    if not found.done:
        return Done([], refused=found.refused, verb=verb.done)
    return _act(app, verb, refs, exact=False)


def act_on_chosen(app: App, verb: Verb, where: Filter, *, yes: bool, what: str = "job", loses: str = "") -> Done:
    """Say what it will touch, ask, and do it. `loses`: what is gone for good with them, for the question."""
    chosen = [job for job in app.open_reads().choose(where) if verb.wants(job)]
    if not chosen:
        like_that = "" if where.names_states_only else " like that"
        app.say(app.paint(f"no {what}s{like_that} to {verb.name}", "dim"))
        return Done([], verb=verb.done)
    confirm(app, f"{verb.name.capitalize()} {_jobs(chosen, what)}{loses}?", yes=yes)
    return _act(app, verb, [job.id for job in chosen], exact=True)


def _act(app: App, verb: Verb, refs: Sequence[str], *, exact: bool) -> Done:
    with progress(app, verb.done, total=len(refs)) as advance:
        answer = verb.do(app.open_store(), _counted(app, refs, advance), exact=exact)
    return Done(answer.done, refused=answer.refused, verb=verb.done, is_bulk=exact)


def _counted(app: App, refs: Sequence[str], advance: Advance) -> Iterator[str]:
    for number, ref in enumerate(refs):
        if number and number % AT_ONCE == 0:
            app.clock.sleep(PAUSE)
        advance(number, len(refs))
        yield ref


def _jobs(chosen: Sequence[Chosen], what: str) -> str:
    """`12 jobs (10 pending, 2 processing)`."""
    counts = Counter(job.state for job in chosen)
    told = ", ".join(f"{counts[state]:,} {state}" for state in State if counts[state])
    return f"{plural(len(chosen), what)} ({told})" if what == "job" else plural(len(chosen), what)


def look_up(app: App, ids: tuple[str, ...], selection: Selection, *, unless_said: frozenset[State]) -> Answer:
    """The jobs that are named, or chosen: without a state, those in one of `unless_said`."""
    either(ids, selection)
    if ids:
        return pick(app.open_reads(), ids)
    where = selection.where(app)
    where = where if where.states else where._replace(states=unless_said)
    chosen = app.open_reads().choose(where)
    if not chosen:
        app.say(app.paint("no jobs like that", "dim"))
    return Answer([job.id for job in chosen], [])


def tell_refused(app: App, answer: Answer) -> None:
    """One line of each id that names no job; with --json one error for all of them."""
    report_refusals(app, answer.refused, of=len(answer.done) + len(answer.refused))
