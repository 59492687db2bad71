"""The options that filter jobs, the same for every command that takes jobs by id or by filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import combine_options, integer, show_env_option
from queuectl.cli.completion import complete_batches, complete_jobs, complete_queues, complete_states
from queuectl.cli.errors import report_refusals
from queuectl.errors import UsageError
from queuectl.jobs.model import BulkResult
from queuectl.jobs.search import starts_with_qualifier
from queuectl.jobs.states import State
from queuectl.operations.bulk import resolve_ids
from queuectl.operations.query import parse_filter, restrict_states
from queuectl.store.types import Filter

Function = Callable[..., Any]


# Parameter of parse_filter -> names and settings of its option. A new filter needs only a line here.
_OPTIONS: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]]] = {
    "states": (
        ("--state", "-s", "states"),
        {"metavar": "STATE[,STATE]", "help": "Filter by state; repeatable (any).", "shell_complete": complete_states},
    ),
    "queues": (
        ("--queue", "-q", "queues"),
        {"metavar": "NAME", "help": "Filter by queue; repeatable (any).", "shell_complete": complete_queues},
    ),
    "tags": (("--tag", "tags"), {"metavar": "TAG", "help": "Filter by tag; repeatable (all)."}),
    "batches": (
        ("--batch", "batches"),
        {"metavar": "NAME", "help": "Filter by batch; repeatable (any).", "shell_complete": complete_batches},
    ),
    "workers": (
        ("--worker", "workers"),
        {"metavar": "NAME", "help": "Filter by worker of the latest run; repeatable (any)."},
    ),
    "errors": (
        ("--error", "errors"),
        {"metavar": "TEXT", "help": "Filter by text in the error; repeatable (any)."},
    ),
    "since": (
        ("--since",),
        {"multiple": False, "metavar": "WHEN", "help": "Filter by time of enqueue: 90m, 2d, 2026-11-15 20:30."},
    ),
    "match": (
        ("--match",),
        {"multiple": False, "metavar": "TEXT", "help": "Filter by text in the command."},
    ),
    "query": (
        ("--where", "query"),
        {"multiple": False, "metavar": "QUERY", "help": "Filter by query: 'queue:mail error:timeout'."},
    ),
}
HINT: Final = "name jobs by id, or choose them by --state, --queue, --tag, --error, --where or another filter"


DEFAULT_LIMIT: Final = 50  # rows of a table

# For `list` and `dlq list`.
page_options: Final = combine_options(
    click.option(
        "--limit", type=integer, metavar="N", help=f"Maximum number of jobs (default: {DEFAULT_LIMIT} in a table)."
    ),
    click.option("--offset", type=integer, metavar="N", help="Number of jobs to skip (default: 0)."),
    click.option(
        "--sort",
        default="created",
        metavar="KEY",
        help="Sort key; a leading - reverses it (default: created).",
    ),
    show_env_option,
)


class Selection:
    """The filters of a command line. False if there are none."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def __bool__(self) -> bool:
        return any(value not in (None, ()) for value in self._given.values())

    def with_query(self, words: Sequence[str]) -> Selection:
        """With these words of a query in addition."""
        given = self._given.get("query")
        return Selection({**self._given, "query": " ".join([*([] if given is None else [given]), *words]) or given})

    def only_queue(self) -> str | None:
        """The queue, if a single queue is the only filter."""
        given = {name: value for name, value in self._given.items() if value not in (None, ())}
        queues = given.get("queues", ())
        return queues[0] if len(given) == 1 == len(queues) else None

    def where(self, app: App) -> Filter:
        return parse_filter(**self._given, dashes="--", now_ms=lambda: app.open_reads().now_ms())

    def where_able(self, app: App, able: frozenset[State], *, done: str) -> Filter:
        """The filter, restricted to jobs in a state of `able`. Raises if --state names another state."""
        return restrict_states(self.where(app), able, done=done, subject="--state")


def filter_options(*, but: Iterable[str] = (), hidden: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Add the filters to a command, whose function gets them as one parameter `selection`."""
    names = [name for name in _OPTIONS if name not in but]

    def wrap(function: Function) -> Function:
        @wraps(function)
        def called(app: App, **options: Any) -> Any:
            selection = Selection({name: options.pop(name) for name in names})
            return function(app, selection=selection, **options)

        decorated: Function = called
        for name in reversed(names):
            spelled, settings = _OPTIONS[name]
            settings = {"multiple": True, **settings, "hidden": name in hidden}
            decorated = click.option(*spelled, **settings)(decorated)
        return decorated

    return wrap


def ids_and_filters(*, but: Iterable[str] = (), hidden: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Add ids and filters to a command: parameters `ids` and `selection`."""

    def wrap(function: Function) -> Function:
        ids = click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
        return ids(filter_options(but=but, hidden=hidden)(function))

    return wrap


def separate_query(app: App, words: tuple[str, ...], selection: Selection) -> tuple[tuple[str, ...], Selection]:
    """Words such as `queue:mail` are a query, unless there are jobs with these IDs. Only for commands that change nothing."""
    if not any(map(starts_with_qualifier, words)) or app.open_reads().count(Filter(ids=words)) == len(set(words)):
        return words, selection
    return (), selection.with_query(words)


def require_ids_or_filters(ids: tuple[str, ...], selection: Selection) -> None:
    """Raise unless there is exactly one of ids and filters: with both, the intention is ambiguous."""
    if ids and selection:
        raise UsageError("ids and filters cannot be combined", hint=HINT)
    if not ids and not selection:
        raise UsageError("no jobs are selected", hint=HINT)


def find_jobs(app: App, ids: tuple[str, ...], selection: Selection, *, default: frozenset[State]) -> BulkResult:
    """Find the jobs by id or by filter; filters without --state find those in a state of `default`."""
    require_ids_or_filters(ids, selection)
    if ids:
        return resolve_ids(app.open_reads(), ids)
    where = selection.where(app)
    where = where if where.states else where._replace(states=default)
    chosen = app.open_reads().choose(where)
    if not chosen:
        app.say(app.paint("no matching jobs", "dim"))
    return BulkResult([job.id for job in chosen], [])


def report_not_found(app: App, answer: BulkResult) -> None:
    """Print one line for each id that names no job; with --json one error for all of them."""
    report_refusals(app, answer.refused, of=len(answer.done) + len(answer.refused))
