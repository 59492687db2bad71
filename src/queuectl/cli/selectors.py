"""Which jobs? The options by which a command line chooses them, the same for every command that takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.complete import complete_batches, complete_queues, complete_states
from queuectl.errors import UsageError
from queuectl.job.lifecycle import State
from queuectl.queue.filters import able_only, parse_filter
from queuectl.store.protocol import Filter

Function = Callable[..., Any]

# What parse_filter calls it -> the option. A new one needs its line here and nothing else in cli/.
_OPTIONS: Final[Mapping[str, Callable[[Function], Function]]] = {
    "states": click.option(
        "--state",
        "-s",
        "states",
        multiple=True,
        metavar="S[,S]",
        shell_complete=complete_states,
        help="Only in one of these states.",
    ),
    "queues": click.option(
        "--queue",
        "-q",
        "queues",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_queues,
        help="Only of this queue; repeatable: either.",
    ),
    "tags": click.option(
        "--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag; repeatable: all of them."
    ),
    "batches": click.option(
        "--batch",
        "batches",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_batches,
        help="Only of this batch; repeatable: either.",
    ),
    "since": click.option(
        "--since", metavar="WHEN", help="Only those enqueued since: 90m or 2d ago, or 2026-11-15 20:30."
    ),
    "match": click.option("--match", metavar="TEXT", help="Only with this text in the command, letter by letter."),
}
HINT: Final = "name jobs by id, or choose them by --state, --queue, --tag, --batch, --since or --match"


class Selection:
    """What the selectors of a command line say. True if they say anything."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def __bool__(self) -> bool:
        return any(value not in (None, ()) for value in self._given.values())

    def only_queue(self) -> str | None:
        """The queue, if one queue is all that they say."""
        said = {name: value for name, value in self._given.items() if value not in (None, ())}
        queues = said.get("queues", ())
        return queues[0] if len(said) == 1 == len(queues) else None

    def where(self, app: App) -> Filter:
        return parse_filter(**self._given, dashes="--", now_ms=lambda: app.open_reads().now_ms())

    def where_able(self, app: App, able: frozenset[State], *, done: str) -> Filter:
        """The same, but only those that it can be done to."""
        return able_only(self.where(app), able, done=done, subject="--state")


def selectors(*, but: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Give a command the selectors; its function gets them as one `selection`."""
    names = [name for name in _OPTIONS if name not in but]

    def wrap(function: Function) -> Function:
        @wraps(function)
        def called(app: App, **options: Any) -> Any:
            selection = Selection({name: options.pop(name) for name in names})
            return function(app, selection=selection, **options)

        decorated: Function = called
        for name in reversed(names):
            decorated = _OPTIONS[name](decorated)
        return decorated

    return wrap


def either(ids: tuple[str, ...], selection: Selection) -> None:
    """Jobs are named or chosen, and never both: who does has one of the two in mind, and we cannot know which."""
    if ids and selection:
        raise UsageError("ids and selectors at once", hint=HINT)
    if not ids and not selection:
        raise UsageError("which jobs?", hint=HINT)
