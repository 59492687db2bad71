"""Filters, queries and sort orders of job lists: parse them and check that they are affordable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from queuectl.errors import InvalidInput, UnknownName
from queuectl.jobs.search import COMMAND, QUALIFIERS, Term, format_query, parse_query
from queuectl.jobs.states import FINAL, STATE_ALIASES, State
from queuectl.store.reads import Reads
from queuectl.store.types import Filter, Sort
from queuectl.text import closest_match, short_repr
from queuectl.units import from_ms, iso, parse_duration_ms, parse_time_ms

# Descending by default (newest, highest, longest first), except names and `run_at`.
_SMALLEST_FIRST: Final = frozenset({Sort.STATE, Sort.QUEUE, Sort.RUN_AT})


def parse_filter(
    *,
    now_ms: Callable[[], int],
    states: Iterable[str] = (),
    queues: Iterable[str] = (),
    tags: Iterable[str] = (),
    batches: Iterable[str] = (),
    fingerprints: Iterable[str] = (),
    errors: Iterable[str] = (),
    workers: Iterable[str] = (),
    since: object = None,
    match: object = None,
    query: object = None,
    query_name: str = "where",
    dashes: str = "",
) -> Filter:
    """Parse a filter: any of the states, queues, batches, fingerprints, errors and workers, and all of the tags. Raises InvalidInput or UnknownName.

    A state may be a list, `dead,failed`, in any case. `query` is in the language of jobs/search.py; its terms are added to the other
    conditions. Webhook deliveries match only if their queue is named. `now_ms`, the time of the store, is called only if `since` needs
    it, after everything else is validated. `query_name` names the query in messages; `dashes` is `--` if their names are options.
    """
    given: Given = {
        "state": [name for text in states for name in text.split(",")],
        "queue": list(queues),
        "tag": list(tags),
        "batch": list(batches),
        "fingerprint": list(fingerprints),
        "error": list(errors),
        "worker": list(workers),
        "since": [] if since is None else [since],
        COMMAND: [] if match is None else [match],
    }
    excluded: Given = {}
    if query is not None:
        subject = f"{dashes}{query_name}"
        # A blank query would match every job: more likely an unset variable than intended.
        if not isinstance(query, str) or not query.strip():
            hint = "for example queue:mail, or ffmpeg"
            raise InvalidInput(subject, f"expected a query, got {short_repr(query)}", hint=hint)
        for term in parse_query(query, subject=subject):
            (excluded if term.is_negated else given).setdefault(term.qualifier, []).extend(term.values)
    now = cache(now_ms)
    found, unless = _check(given, dashes=dashes), _check(excluded, dashes=dashes)
    where = _to_filter(found, now_ms=now, dashes=dashes)
    # Webhook deliveries are internal.
    where = where._replace(includes_webhooks=bool(where.queues or where.tags or where.prefixes))
    return where._replace(unless=_to_filter(unless, now_ms=now, dashes=dashes)) if excluded else where


Given = dict[str, list[Any]]  # by qualifier


def _check(given: Given, *, dashes: str) -> Given:
    for value in given.get(COMMAND, ()):
        _check_text(value, subject=f"{dashes}match", what="command")
    for value in given.get("error", ()):
        _check_text(value, subject=f"{dashes}error", what="error")
    if len(given.get("since", ())) > 1:
        raise InvalidInput(f"{dashes}since", "given more than once", hint="give it once")
    return {**given, "state": [parse_state(name) for name in given.get("state", ())]}


def _to_filter(given: Given, *, now_ms: Callable[[], int], dashes: str) -> Filter:
    since = given.get("since")
    return Filter(
        frozenset(given["state"]),
        frozenset(given.get("queue", ())),
        frozenset(given.get("tag", ())),
        batches=frozenset(given.get("batch", ())),
        fingerprints=frozenset(given.get("fingerprint", ())),
        match=tuple(given.get(COMMAND, ())),
        errors=frozenset(given.get("error", ())),
        workers=frozenset(given.get("worker", ())),
        prefixes=tuple(given.get("id", ())),
        since_ms=parse_since(since[0], subject=f"{dashes}since", now_ms=now_ms) if since else None,
    )


def query_of(where: Filter) -> str:
    """The text of a query for the same jobs."""
    terms = [*_terms(where), *(() if where.unless is None else _terms(where.unless, is_negated=True))]
    return format_query(terms)


def _terms(where: Filter, *, is_negated: bool = False) -> Iterator[Term]:
    conditions: dict[str, Sequence[str]] = {
        "state": [state.value for state in State if state in where.states],
        "queue": sorted(where.queues),
        "tag": sorted(where.tags),
        "batch": sorted(where.batches),
        "worker": sorted(where.workers),
        "fingerprint": sorted(where.fingerprints),
        "error": sorted(where.errors),
        "id": [*where.ids, *where.prefixes],
        "since": [] if where.since_ms is None else [str(iso(from_ms(where.since_ms)))],
        COMMAND: where.match,
    }
    for qualifier, values in conditions.items():
        if values:
            yield Term(qualifier, tuple(values), is_negated)


MAX_SUGGESTIONS: Final = 50  # of each qualifier


def query_suggestions(store: Reads) -> list[str]:
    """Terms to complete a query with: qualifiers, states, and the queues, tags, workers and batches of the store."""
    known = {
        "state": [state.value for state in State],
        "queue": sorted(store.tally()),
        "tag": store.tags(limit=MAX_SUGGESTIONS),
        "worker": sorted(worker.id for worker in store.workers(busy=False)),
        "batch": store.batches.names(),
    }
    terms = (Term(qualifier, (name,)) for qualifier, names in known.items() for name in names[:MAX_SUGGESTIONS])
    return [*(f"{name}:" for name in QUALIFIERS), *(format_query([term]) for term in terms)]


def restrict_states(where: Filter, able: frozenset[State], *, done: str, subject: str) -> Filter:
    """The filter restricted to the `able` states of an action. Raises InvalidInput if it names another state."""
    for state in sorted(where.states - able):
        hint = f"one of: {', '.join(state for state in State if state in able)}"
        raise InvalidInput(subject, f"{state} jobs cannot be {done}", hint=hint)
    return where if where.states else where._replace(states=able)


MAX_TEXT_BYTES: Final = 20_000  # SQLite accepts patterns of 50,000 bytes, and each character may need an escape


def _check_text(text: object, *, subject: str, what: str) -> None:
    # An empty text matches every job: more likely an unset variable than intended.
    if not isinstance(text, str) or not text:
        raise InvalidInput(subject, f"expected some text, got {short_repr(text)}", hint=f"a part of the {what}")
    encoded = text.encode(errors="replace")
    if "\0" in text or encoded.decode() != text:
        raise InvalidInput(subject, f"no {what} can contain {short_repr(text)}", hint="text in UTF-8, without NUL")
    if len(encoded) > MAX_TEXT_BYTES:
        raise InvalidInput(subject, f"longer than {MAX_TEXT_BYTES:,} bytes", hint="a shorter part is enough")


def parse_since(value: object, *, subject: str, now_ms: Callable[[], int]) -> int:
    if isinstance(value, datetime) or (isinstance(value, str) and "-" in value.strip()[1:]):
        return parse_time_ms(value, subject=subject, local=None)
    try:
        ago = parse_duration_ms(value, subject=subject)
    except InvalidInput as exc:
        hint = "for example, 90s, 1h30m or 2d ago, or the time 2026-11-15 20:30"
        raise InvalidInput(subject, f"expected a time or a duration, got {short_repr(value)}", hint=hint) from exc
    return max(0, now_ms() - ago)


def parse_state(name: str) -> State:
    name = name.strip()
    if alias := STATE_ALIASES.get(name.lower()):
        return alias
    try:
        return State(name.lower())
    except ValueError as exc:
        known = [state.value for state in State]
        raise UnknownName(
            "state", name, nearest=closest_match(name.lower(), [*known, *STATE_ALIASES]), known=known
        ) from exc


def parse_sort(text: str) -> tuple[Sort, bool]:
    """The key and whether it is descending. Each key has a default direction; a `-` before it reverses that."""
    name = text.removeprefix("-").strip().lower().replace("-", "_")
    try:
        sort = Sort(name)
    except ValueError as exc:
        known = [sort.value for sort in Sort]
        raise UnknownName("sort key", text, nearest=closest_match(name, known), known=known) from exc
    return sort, (sort not in _SMALLEST_FIRST) ^ text.startswith("-")


# The largest number of both databases.
MAX_COUNT: Final = 2**63 - 1


def parse_count(value: object, *, subject: str, low: int = 0) -> int | None:
    """A count; None for "not given". Raises InvalidInput for any other value."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        problem = f"expected an integer of at least {low}, got {short_repr(value)}"
        raise InvalidInput(subject, problem, hint=f"for example, {subject}=10")
    return min(value, MAX_COUNT)


MAX_SORTED_JOBS: Final = 50_000  # takes about 100 ms


def check_sortable(store: Reads, where: Filter, sort: Sort, *, most: int = MAX_SORTED_JOBS) -> None:
    """Raise InvalidInput for an order over HTTP that no index supports, of too many jobs.

    An index for every order would make every run slower, for lists that are rarely used. `queuectl list` sorts any number.
    """
    if is_sortable(store, where, sort, most=most):
        return
    problem = f"more than {most:,} jobs are too many to sort by {sort.value}"
    hint = "choose fewer, by state, tag or batch, or sort by created; queuectl list sorts any number"
    raise InvalidInput("sort", problem, hint=hint)


def is_sortable(store: Reads, where: Filter, sort: Sort, *, most: int = MAX_SORTED_JOBS) -> bool:
    if sort is Sort.CREATED or (sort is Sort.FINISHED and len(where.states) == 1 and where.states <= FINAL):
        return True
    # A filter by queue, worker, time or text scans all jobs of its states: they count as well.
    if store.count(Filter(where.states)) <= most:
        return True
    if not (where.ids or where.prefixes or where.tags or where.batches):
        return False
    named = Filter(where.states, tags=where.tags, ids=where.ids, prefixes=where.prefixes, batches=where.batches)
    return not any(store.jobs(named, limit=1, offset=most))
