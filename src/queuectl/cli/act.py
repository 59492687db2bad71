"""Commands that are given several ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from queuectl.cli.app import App
from queuectl.cli.failure import report_refusals
from queuectl.cli.progress import Advance, progress
from queuectl.cli.result import Done
from queuectl.queue.pick import Answer, pick
from queuectl.store.protocol import Store


def act(app: App, refs: Sequence[str], do: Callable[[Store, Iterable[str]], Answer], *, verb: str) -> Done:
    """`do` it to the jobs that there are. If there are none, no home and no store is made for them."""
    found = pick(app.open_reads(), refs)
    return act_on_all(app, refs, do, verb=verb) if found.done else Done([], refused=found.refused, verb=verb)


def act_on_all(app: App, refs: Sequence[str], do: Callable[[Store, Iterable[str]], Answer], *, verb: str) -> Done:
    """`do` it to jobs of which at least one is known to be there."""
    with progress(app, verb, total=len(refs)) as advance:
        answer = do(app.open_store(), _counted(refs, advance))
    return Done(answer.done, refused=answer.refused, verb=verb)


def _counted(refs: Sequence[str], advance: Advance) -> Iterator[str]:
    for number, ref in enumerate(refs):
        advance(number, len(refs))
        yield ref


def tell_refused(app: App, answer: Answer) -> None:
    """One line of each id that names no job; with --json one error for all of them."""
    report_refusals(app, answer.refused, of=len(answer.done) + len(answer.refused))
