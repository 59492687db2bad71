"""Actions on jobs: the preview of a bulk action, the action itself, and its undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName, UsageError
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.model import BulkResult, Job
from queuectl.jobs.search import Term, format_query, parse_query
from queuectl.jobs.states import State
from queuectl.operations.bulk import find_jobs
from queuectl.store.reads import Reads
from queuectl.store.types import Chosen, Filter
from queuectl.store_threads import WebSession
from queuectl.text import closest_match, plural
from queuectl.web.api.bulk import ACTIONS, ANY, Action, edit_action
from queuectl.web.api.operation import SELECTORS, to_filter
from queuectl.web.pages.render import (
    MAX_NOTICE_LINES,
    Fields,
    Notice,
    PageRequest,
    Pairs,
    Redirect,
    View,
    back_to,
    phrase,
    refused,
    sentence,
    with_query,
)


class Chip(NamedTuple):
    """A filter of a list of jobs. `url`: the list without it."""

    name: str
    value: str
    url: str


class Selection(Fields):
    """The selectors of a list of jobs, not validated; `where` parses them."""

    def __init__(self, fields: Fields) -> None:
        super().__init__([(param.name, value) for param in SELECTORS for value in fields.all(param.name)])

    def where(self, reads: Reads) -> Filter:
        """Raises UsageError."""
        values = {param.name: self.all(param.name) if param.many else self.one(param.name) for param in SELECTORS}
        return to_filter(values, reads)

    def narrowed(self, name: str, value: str, more: Pairs = ()) -> str:
        """The URL of the list with one more selector."""
        kept = self.pairs if (name, value) in self.pairs else (*self.pairs, (name, value))
        return with_query("/jobs", [*kept, *more])

    def with_states(self, states: Sequence[str], more: Pairs = ()) -> str:
        """The URL of the list with other states."""
        query = [term for term in self._terms() if term.qualifier != "state" or term.is_negated]
        return self._url([("state", state) for state in states], query, more, without="state")

    def chips(self, more: Pairs = ()) -> list[Chip]:
        """The selectors besides the state, each with the URL of the list without it."""
        found = []
        for pair in self.pairs:
            if pair[0] not in {"state", "q"}:
                left = [one for one in self.pairs if one != pair]
                found.append(Chip(*pair, with_query("/jobs", [*left, *more])))
        terms = self._terms()
        for index, term in enumerate(terms):
            name, value = f"{'not ' * term.is_negated}{term.qualifier}", ", ".join(term.values)
            found.append(Chip(name, value, self._url([], [*terms[:index], *terms[index + 1 :]], more)))
        return found

    def _terms(self) -> list[Term]:
        """The terms of the query; none if it is invalid."""
        try:
            return parse_query(self.one("q") or "", subject="q")
        except InvalidInput:
            return []

    def _url(self, first: Pairs, terms: Sequence[Term], more: Pairs, *, without: str = "q") -> str:
        """The URL of the list with these terms as the query."""
        kept = [pair for pair in self.pairs if pair[0] not in {"q", without}]
        query = [("q", format_query(terms))] if terms else []
        return with_query("/jobs", [*first, *kept, *query, *more])


MAX_UNDO_IDS: Final = 100_000  # remembered for an undo


class Verb(NamedTuple):
    name: str  # as in the API
    label: str
    done: str  # past participle
    about: str
    # The verb that restores the jobs exactly. Verbs without one ask first. Retry has none: it resets the error and the
    # attempt count, and a worker may claim the job at once.
    undo: str | None = None
    is_grave: bool = False  # kills or removes something
    change: JobEdit | None = None  # of an edit

    def label_for(self, jobs: str) -> str:
        return phrase(self.label, jobs)

    @property
    def action(self) -> Action:
        return ACTIONS[self.name] if self.change is None else edit_action(self.change)

    @property
    def is_selective(self) -> bool:
        """Whether the action has no effect on some jobs in these states, for example on those already held."""
        return self.action.wants is not ANY

    def fits(self, job: Job) -> bool:
        """Whether to offer this action for a job."""
        return job.state in self.action.able and self.action.wants(job)


_REMOVES: Final = "Also removes the history and logs. This cannot be undone."
VERBS: Final[Mapping[str, Verb]] = {
    verb.name: verb
    for verb in (
        Verb("run-now", "Run now", "made due", "Skips the rest of the delay or backoff."),
        Verb("retry", "Retry", "retried", "Resets the error and the attempt count."),
        Verb("hold", "Hold", "held", "Workers do not claim held jobs until they are released.", "release"),
        Verb("release", "Release", "released", "Workers may claim held jobs again.", "hold"),
        Verb(
            "cancel",
            "Cancel",
            "cancelled",
            "Running jobs are killed. A retry starts from the beginning.",
            is_grave=True,
        ),
        Verb("prune", "Remove", "removed", _REMOVES, is_grave=True),
    )
}
EDIT: Final = Verb("edit", "Edit", "edited", "Empty fields stay as they are.", change=JobEdit())
LIST_VERBS: Final = (*VERBS.values(), EDIT)  # of a list of jobs
PURGE: Final = Verb("purge", "Purge", "purged", _REMOVES, is_grave=True)  # from the dead letter queue


def find_verb(name: str | None) -> Verb:
    if name == EDIT.name:
        return EDIT
    if name is None or name not in VERBS:
        raise UnknownName("action", name or "", nearest=closest_match(name or "", VERBS), known=list(VERBS))
    return VERBS[name]


def perform_on_named(session: WebSession, verb: Verb, ids: Sequence[str], *, exact: bool = False) -> Notice:
    """Skip jobs that would not change: an undo would revert an earlier action."""
    known = find_jobs(session.reads, ids)
    wanted = [one for one in ids if one not in known or verb.action.wants(known[one])]
    return perform(session, verb, wanted, exact=exact)


def perform(session: WebSession, verb: Verb, ids: Sequence[str], *, exact: bool = False) -> Notice:
    answer = verb.action.do(session, session.open_store(), ids, exact) if ids else BulkResult([], [])
    return _to_notice(verb, answer)


def _to_notice(verb: Verb, answer: BulkResult) -> Notice:
    text = f"Job {answer.done[0]} {verb.done}" if len(answer.done) == 1 else f"{len(answer.done):,} jobs {verb.done}"
    lines = tuple(sentence(error.message) for _, error in answer.refused[:MAX_NOTICE_LINES])
    if len(answer.refused) > len(lines):
        lines += (f"and {len(answer.refused) - len(lines):,} more",)
    if not answer.done:
        return Notice("refused", f"Nothing was {verb.done}" if lines else "Nothing to change", lines)
    if lines:
        text += f", {plural(len(answer.refused), 'job was skipped', 'jobs were skipped')}"
    undo = None
    if verb.undo is not None and len(answer.done) <= MAX_UNDO_IDS:
        undo = partial(_undo, VERBS[verb.undo], tuple(answer.done))
    return Notice("part" if lines else "done", text, lines, undo)


def _undo(verb: Verb, ids: tuple[str, ...], session: WebSession) -> Notice:
    return perform(session, verb, ids, exact=True)._replace(undo=None)


EDITABLE_FIELDS: Final = ("priority", "queue", "timeout")
PREVIEW_SIZE: Final = 5  # jobs that the preview lists


class Preview(NamedTuple):
    """The jobs that an action would change: counts by state, and the first ones. `others`: jobs that would not change."""

    able: dict[State, int]
    others: int
    first: list[Job]


def preview(session: WebSession, ask: PageRequest) -> View | Redirect:
    """Preview an action. An invalid request becomes a notice on the page that it came from."""
    try:
        return _preview(session, ask)
    except UsageError as error:
        return Redirect(back_to(ask.query, "/jobs"), refused(sentence(error.message), error.hint))


def _preview(session: WebSession, ask: PageRequest) -> View:
    verb, chosen = find_verb(ask.query.one("action")), Selection(ask.query)
    is_all = ask.query.has("all")
    ids = () if is_all else _ids(ask.query)
    affected = _all(session.reads, chosen.where(session.reads), verb) if is_all else _named(session.reads, ids, verb)
    values: dict[str, Any] = {
        "verb": verb,
        "is_all": is_all,
        "ids": ids,
        "chosen": chosen,
        "able": {state.value: count for state, count in affected.able.items() if count},
        "count": sum(affected.able.values()),
        "first": affected.first,
        "others": affected.others,
        "back": back_to(ask.query, "/jobs"),
        "editable": EDITABLE_FIELDS if verb is EDIT else (),
    }
    return View("act.html", verb.label_for("jobs"), values)


def do(session: WebSession, ask: PageRequest) -> Redirect:
    verb, form = find_verb(ask.form.one("action")), ask.form
    to = back_to(form, "/jobs")
    if verb is EDIT:
        verb = verb._replace(change=_parse_change(form))
    if not form.has("all"):
        return Redirect(to, perform_on_named(session, verb, _ids(form)))
    where = _able(Selection(form).where(session.reads), verb)
    chosen = [] if where is None else session.reads.choose(where)
    ids = [job.id for job in chosen if verb.action.wants(job)]
    return Redirect(to, perform(session, verb, ids, exact=True))


def _parse_change(form: Fields) -> JobEdit:
    given: dict[str, object] = {name: text for name in EDITABLE_FIELDS if (text := form.one(f"new_{name}")) is not None}
    if not given:
        raise UsageError("no field has a new value", hint="fill in at least one field")
    with suppress(ValueError):
        given["priority"] = int(str(given["priority"])) if "priority" in given else None
    return parse_edit(given)


def _ids(fields: Fields) -> tuple[str, ...]:
    ids = fields.all("id")
    if not ids:
        raise UsageError("no job is selected", hint="select jobs in the list, or check Select all matching")
    return ids


def _able(where: Filter, verb: Verb) -> Filter | None:
    """Restrict a filter to the states that the action applies to; None if none is left."""
    states = verb.action.able & (where.states or verb.action.able)
    return where._replace(states=states) if states else None


def _all(reads: Reads, where: Filter, verb: Verb) -> Preview:
    able = _able(where, verb)
    if able is None:
        return Preview({}, reads.count(where), [])
    if where.is_scan:  # one scan instead of one per state
        return _choose(reads, reads.choose(where), verb)
    wanted = where.states or frozenset(State)
    counts = {state: reads.count(where._replace(states=frozenset({state}))) for state in State if state in wanted}
    if verb.is_selective:  # the counters do not have their number
        return _choose(reads, reads.choose(able), verb, of=sum(counts.values()))
    can = {state: count for state, count in counts.items() if state in verb.action.able}
    # State by state: the latest jobs of several states at once would have to be sorted.
    latest = [job for state in can for job in reads.jobs(where._replace(states=frozenset({state})), limit=PREVIEW_SIZE)]
    first = sorted(latest, key=lambda job: job.seq, reverse=True)[:PREVIEW_SIZE]
    return Preview(can, sum(counts.values()) - sum(can.values()), first)


def _choose(reads: Reads, jobs: Sequence[Chosen], verb: Verb, *, of: int | None = None) -> Preview:
    chosen = [job for job in jobs if job.state in verb.action.able and verb.action.wants(job)]
    first = list(find_jobs(reads, [job.id for job in chosen[: -PREVIEW_SIZE - 1 : -1]]).values())
    return _count_preview(chosen, first, len(jobs) if of is None else of)


def _named(reads: Reads, ids: tuple[str, ...], verb: Verb) -> Preview:
    found = list(find_jobs(reads, ids).values())
    fit = [job for job in found if verb.fits(job)]
    return _count_preview(fit, fit[:PREVIEW_SIZE], len(found))


def _count_preview(jobs: Sequence[Job | Chosen], first: list[Job], of: int) -> Preview:
    return Preview({state: sum(job.state is state for job in jobs) for state in State}, of - len(jobs), first)
