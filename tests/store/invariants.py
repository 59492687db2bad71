"""What holds for every store at every moment, whatever a test did to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending
from queuectl.jobs.priority import Standing, parse_ageing, rank
from queuectl.jobs.states import FINAL, State
from queuectl.store.store import Store
from queuectl.store.types import Filter
from tests.store.backends import Backend, Row

MAY_BE_CLAIMED = {State.PENDING, State.FAILED}
MANY = 100  # histories are read one by one: of a crowd, the first hundred will do
UNTOUCHED = 2  # the number of jobs without a run in any table


class Rows(NamedTuple):
    """What really is in the tables, each read once."""

    jobs: list[Row]
    tags: dict[int, list[str]]  # by job, as the rest
    runs: dict[int, list[Row]]
    output: list[Row]
    edges: list[Row]
    undecided: list[Row]


class _Shown(NamedTuple):
    """What the store showed of a job when these were its rows."""

    rows: object
    history: list[Run]
    tags: tuple[str, ...]


# A model asks after each of its steps, of which most change one job: of the same rows the store shows the same again.
_shown: WeakKeyDictionary[Backend, dict[str, _Shown]] = WeakKeyDictionary()


def read(backend: Backend) -> Rows:
    tags: dict[int, list[str]] = {}
    for row in backend.rows("job_tags"):
        tags.setdefault(row["job"], []).append(row["tag"])
    runs: dict[int, list[Row]] = {}
    for row in backend.rows("runs"):
        runs.setdefault(row["job"], []).append(row)
    others = (backend.rows(table) for table in ("output", "edges", "undecided"))
    return Rows(backend.rows(), tags, runs, *others)


def histories(store: Store, backend: Backend) -> dict[str, list[Run]]:
    """The history of each job, as the store shows it."""
    return {job["id"]: shown.history for job, shown in _show(store, backend, read(backend))}


def _show(store: Store, backend: Backend, rows: Rows, *, most: int | None = None) -> Iterator[tuple[Row, _Shown]]:
    known = _shown.setdefault(backend, {})
    facts = {job["id"]: (job, rows.runs.get(job["seq"]), rows.tags.get(job["seq"])) for job in rows.jobs[:most]}
    new = [job_id for job_id, fact in facts.items() if job_id not in known or known[job_id].rows != fact]
    # A question takes a server a millisecond: of the tags one for all of them, and none for a history that can only be empty.
    tags = {job.id: job.tags for job in store.jobs(Filter(ids=frozenset(new)))} if new else {}
    untouched = [job_id for job_id in new if not facts[job_id][0]["runs"] and not facts[job_id][1]]
    empty = set(untouched[UNTOUCHED:])
    for job_id in new:
        history = [] if job_id in empty else store.history(job_id)
        known[job_id] = _Shown(facts[job_id], history, tags[job_id])
    for job_id, (job, *_) in facts.items():
        yield job, known[job_id]


def check_invariants(store: Store, backend: Backend) -> None:
    rows = read(backend)
    _check_counts(store, rows)
    _check_rows(store, rows)
    _check_keys(store, rows)
    _check_history(store, backend, rows)
    _check_edges(rows)


def _check_counts(store: Store, rows: Rows) -> None:
    real = Counter((row["queue"], State(row["state"])) for row in rows.jobs)
    tallied = store.tally()
    tally = {(queue, state): jobs for queue, states in tallied.items() for state, jobs in states.items()}
    assert {key: jobs for key, jobs in tally.items() if jobs} == real
    assert store.count() == real.total()
    for queue in tallied:
        of_queue = sum(jobs for (name, _), jobs in real.items() if name == queue)
        assert store.count(Filter(queues=frozenset({queue}))) == of_queue


def _check_rows(store: Store, rows: Rows) -> None:
    open_keys = Counter(row["unique_key"] for row in rows.jobs if row["state"] not in FINAL and row["unique_key"])
    assert all(jobs == 1 for jobs in open_keys.values()), open_keys
    kept = Counter(row["batch"] for row in rows.jobs if row["batch"])
    batches = {batch.name: batch for batch in store.batches.all()}
    assert all(batches[name].added >= jobs == sum(batches[name].states.values()) for name, jobs in kept.items()), kept
    ageing = parse_ageing(store.config().get("ageing", "off"), subject="ageing")
    for row in rows.jobs:
        state = State(row["state"])
        assert (row["token"] is not None) == (state is State.PROCESSING), row
        assert not row["ready"] or (state in MAY_BE_CLAIMED and not row["held"]), row
        assert not row["cancel_requested"] or state is State.PROCESSING, row
        assert row["finished_at"] is not None or state not in FINAL, row
        assert row["created_at"] <= row["updated_at"], row
        assert row["runs"] >= row["attempts"], row
        assert (row["started_at"] is None) == (row["runs"] == 0), row
        if row["started_at"] is not None:
            assert row["created_at"] <= row["started_at"], row
            assert row["finished_at"] is None or row["started_at"] <= row["finished_at"], row
        if state not in FINAL:
            standing = Standing(row["priority"], row["seq"], row["eligible_at"], row["missed"])
            assert row["rank"] == rank(ageing, standing), row


def _check_keys(store: Store, rows: Rows) -> None:
    """A job is blocked on its key only by others of its key that run or go first."""
    limits = {queue: rules.per_key for queue, rules in store.queues.rules().items()}
    keyed = [row for row in rows.jobs if row["key"] is not None]
    for row in keyed:
        if row["key_blocked"]:
            per_key = row["places"] or limits.get(row["queue"])
            assert per_key is not None, row
            others = [other for other in keyed if (other["queue"], other["key"]) == (row["queue"], row["key"])]
            running = sum(other["state"] == State.PROCESSING for other in others)
            place = (row["rank"], row["seq"])
            before = sum(
                bool(other["ready"] and not other["key_blocked"]) and (other["rank"], other["seq"]) < place
                for other in others
            )
            assert running + before >= per_key, row


def _check_history(store: Store, backend: Backend, rows: Rows) -> None:
    known = {row["seq"] for row in rows.jobs}
    assert {*rows.tags, *rows.runs, *(row["job"] for row in rows.output)} <= known
    for row, shown in _show(store, backend, rows, most=MANY):
        history = shown.history
        assert [run.number for run in history] == list(range(1, row["runs"] + 1)), row
        live = [run for run in history if run.outcome is Ending.RUNNING]
        assert live == (history[-1:] if row["state"] == State.PROCESSING else []), row
        assert tuple(sorted(rows.tags.get(row["seq"], []))) == shown.tags


def _check_edges(rows: Rows) -> None:
    """Unless there is more to tell: a job is blocked exactly while it waits for a parent that has not ended."""
    states = {row["seq"]: State(row["state"]) for row in rows.jobs}
    undecided = {row["parent"] for row in rows.undecided}
    waiting = set()
    for row in rows.edges:
        parent, child = states[row["parent"]], states[row["child"]]
        assert (row["state"] == "waiting") <= (child is State.BLOCKED), row
        assert (row["state"] == "broke") <= (child is State.CANCELLED), row
        if row["state"] == "waiting":
            waiting.add(row["child"])
            assert parent not in FINAL or row["parent"] in undecided, row
        if row["state"] == "broke":
            assert parent in FINAL or row["parent"] in undecided, row
    has_edges = {row["child"] for row in rows.edges}
    assert {seq for seq in has_edges if states[seq] is State.BLOCKED} == waiting
