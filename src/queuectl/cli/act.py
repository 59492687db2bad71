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
    answer = pick(app.open_reads(), refs)
    if answer.done:
        with progress(app, verb, total=len(refs)) as advance:
            answer = do(app.open_store(), _counted(refs, advance))
    return Done(answer.done, refused=answer.refused, verb=verb)


def _counted(refs: Sequence[str], advance: Advance) -> Iterator[str]:
    for number, ref in enumerate(refs):
        advance(number, len(refs))
        yield ref


def pick_all(app: App, refs: Sequence[str]) -> tuple[list[str], bool]:
    """The ids of the jobs that there are, and whether that is all of them; one line has been said of each other one."""
    found = pick(app.open_reads(), refs)
    report_refusals(app, found.refused, of=len(found.done) + len(found.refused))
    return found.done, not found.refused
