"""Pages of a list, each from where the one before ended, whatever comes and goes between them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from functools import partial

import pytest

from queuectl.errors import InvalidInput
from queuectl.jobs.model import Job
from queuectl.jobs.outcome import Released
from queuectl.jobs.states import State
from queuectl.operations import pages
from queuectl.operations.pages import Cursor, format_cursor, page
from queuectl.store.store import Store
from queuectl.store.types import After, Filter, Sort
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, OK, Hands

ORDERS = [(sort, descending) for sort in Sort for descending in (True, False)]


def crowd(store: Store, worker: Hands, clock: FakeClock, *, seed: int = 7, jobs: int = 40) -> None:
    """Of every state, with many ties in all that is sorted by."""
    chance = random.Random(seed)
    for number in range(jobs):
        store.enqueue(
            [
                new_job(
                    f"j{number:03}",
                    queue=chance.choice("abc"),
                    priority=chance.randint(0, 2),
                    max_retries=chance.choice([0, 0, 5]),
                    delay_ms=chance.choice([0, 0, 0, 60_000]),
                )
            ]
        )
        if chance.random() < 0.8 and (claims := worker.claim(1)):
            clock.advance(chance.choice([0, 1]))
            outcome = chance.choice([OK, OK, OK, BAD, BAD, Released(None)])
            took = chance.choice([0, 0.5])
            worker.end(claims[0], outcome, age=took, duration=took)
    store.cancel(chance.sample([f"j{number:03}" for number in range(jobs)], jobs // 8))
    worker.claim(3)


def all_pages(
    store: Store,
    where: Filter,
    sort: Sort,
    *,
    descending: bool,
    limit: int,
    between: Callable[[], object] = lambda: None,
) -> list[Job]:
    found: list[Job] = []
    cursor = None
    while True:
        seen = page(store, where, sort=sort, descending=descending, limit=limit, cursor=cursor)
        assert len(seen.jobs) <= limit
        found += seen.jobs
        cursor = seen.next_cursor
        if cursor is None:
            return found
        assert len(seen.jobs) == limit
        between()


FILTERS = [
    Filter(),
    Filter(states=frozenset({State.COMPLETED})),
    Filter(states=frozenset({State.DEAD})),
    Filter(states=frozenset({State.DEAD, State.CANCELLED})),
    Filter(states=frozenset({State.PROCESSING, State.PENDING}), queues=frozenset({"a", "b"})),
    Filter(states=frozenset({State.COMPLETED}), queues=frozenset({"a"}), match=("TRUE",), since_ms=0),
    Filter(states=frozenset({State.COMPLETED}), tags=frozenset({"none"})),
]


def test_pages_of_any_size_put_together_are_the_plain_list(store: Store, worker: Hands, clock: FakeClock) -> None:
    crowd(store, worker, clock)
    for where in FILTERS:
        for sort, descending in ORDERS:
            plain = [job.id for job in store.jobs(where, sort=sort, descending=descending)]
            for limit in (1, 3, 7, len(plain) or 1, 100):
                paged = all_pages(store, where, sort, descending=descending, limit=limit)
                assert [job.id for job in paged] == plain, (where, sort, descending, limit)


@pytest.mark.parametrize("sort, descending", ORDERS)
def test_a_job_that_exists_all_the_time_is_listed_exactly_once(
    store: Store, worker: Hands, clock: FakeClock, sort: Sort, descending: bool
) -> None:
    crowd(store, worker, clock)
    chance = random.Random(5)
    # Some that have ended are removed; no sort key changes otherwise.
    passing = [job.id for job in store.choose(Filter(states=frozenset({State.DEAD, State.COMPLETED})))]
    staying = [job.id for job in store.jobs(sort=sort, descending=descending) if job.id not in passing]

    def between() -> None:
        if passing:
            gone = passing.pop(chance.randrange(len(passing)))
            assert store.prune([gone], before_ms=clock.now_ms())
        store.enqueue([new_job(f"new{len(passing)}", queue=chance.choice("abc"), priority=chance.randint(0, 2))])

    paged = [job.id for job in all_pages(store, Filter(), sort, descending=descending, limit=3, between=between)]
    assert len(set(paged)) == len(paged)
    assert [job_id for job_id in paged if job_id in staying] == staying


def test_a_page_that_is_the_last_has_no_cursor(store: Store) -> None:
    def ask(limit: int) -> str | None:
        return page(store, Filter(), sort=Sort.CREATED, descending=True, limit=limit).next_cursor

    assert ask(5) is None
    store.enqueue([new_job(), new_job()])
    assert ask(2) is None
    assert ask(1) is not None


def test_previous_pages_are_those_that_led_to_the_last_one(store: Store, worker: Hands, clock: FakeClock) -> None:
    crowd(store, worker, clock)
    for where in FILTERS:
        for sort, descending in ORDERS:
            listing = partial(page, store, where, sort=sort, descending=descending, limit=4, counts=True)
            pages = [listing()]
            while (cursor := pages[-1].next_cursor) is not None:
                pages.append(listing(cursor=cursor))
            seen = pages[-1]
            for expected in pages[-2::-1]:
                assert seen.previous_cursor is not None
                seen = listing(cursor=seen.previous_cursor)
                assert (seen.jobs, seen.before, seen.total) == (expected.jobs, expected.before, expected.total)
                assert seen.next_cursor == expected.next_cursor
            assert seen.previous_cursor is None or seen is not pages[0]
            assert [one.before for one in pages] == [4 * number for number in range(len(pages))]
            assert {(one.total, one.total_is_exact) for one in pages} == {(store.count(where), True)}


def test_a_page_before_new_jobs_is_the_first_page(store: Store) -> None:
    store.enqueue([new_job(f"j{number}") for number in range(4)])
    listing = partial(page, store, Filter(), sort=Sort.CREATED, descending=True, limit=2)
    second = listing(cursor=listing().next_cursor)
    store.enqueue([new_job("new")])
    back = listing(cursor=second.previous_cursor)
    assert ([job.id for job in back.jobs], back.before) == (["j3", "j2"], 1)
    first = listing(cursor=back.previous_cursor)
    assert ([job.id for job in first.jobs], first.before, first.previous_cursor) == (["new", "j3"], 0, None)


def test_a_filtered_list_counts_its_matches_up_to_a_thousand(store: Store) -> None:
    store.enqueue([new_job(f"j{number}", command="echo IMG") for number in range(1000)])
    store.enqueue([new_job("other")])
    listing = partial(page, store, Filter(match=("img",)), sort=Sort.CREATED, descending=True, counts=True)
    assert listing(limit=5)[-3:] == (1000, True, False)
    store.enqueue([new_job("more", command="echo img")])
    assert listing(limit=5)[-3:] == (1000, False, False)
    assert listing(limit=1001)[-3:] == (1001, True, False)
    assert page(store, Filter(match=("img",)), sort=Sort.CREATED, descending=True, limit=5).total is None


@pytest.mark.parametrize("sort, descending", [(Sort.CREATED, True), (Sort.CREATED, False), (Sort.FINISHED, True)])
def test_a_search_stops_at_its_time_limit_and_its_cursor_continues_it(
    store: Store, worker: Hands, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, sort: Sort, descending: bool
) -> None:
    monkeypatch.setattr(pages, "FIRST_WINDOW", 5)
    crowd(store, worker, clock, jobs=60)
    where = Filter(frozenset({State.COMPLETED}), match=("TRUE",), unless=Filter(queues=frozenset({"a"})))
    plain = [job.id for job in store.jobs(where, sort=sort, descending=descending)]
    found, cursor, partials, totals = [], None, 0, []
    while True:
        seen = page(store, where, sort=sort, descending=descending, limit=3, cursor=cursor, counts=True, seconds=-1)
        found += seen.jobs
        partials += seen.is_partial
        totals.append((seen.total, seen.total_is_exact))
        assert seen.before + len(seen.jobs) == len(found)
        cursor = seen.next_cursor
        if cursor is None:
            break
    assert [job.id for job in found] == plain
    assert partials >= 1
    assert totals[-1] == (len(plain), True)
    assert totals[0][1] is False


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "ä",
        "%%%",
        "a b",
        "A" * 100_000,
        encoded("created"),
        encoded([]),
        encoded(["created", True, 5, 5]),
        encoded(["created", 1, 5, 5, 0, False]),
        encoded(["created", True, 5, "5", 0, False]),
        encoded(["created", True, 5, True, 0, False]),
        encoded(["created", True, 5.5, 5, 0, False]),
        encoded(["created", True, None, 5, 0, False]),
        encoded(["created", True, 2**63, 5, 0, False]),
        encoded(["created", True, 5, 2**63, 0, False]),
        encoded(["created", True, 5, 5, -1, False]),
        encoded(["created", True, 5, 5, 2**63, False]),
        encoded(["created", True, 5, 5, True, False]),
        encoded(["created", True, 5, 5, 0, 0]),
        encoded(["size", True, 5, 5, 0, False]),
        encoded(["queue", True, "\udcff", 5, 0, False]),
        encoded(["queue", True, "a\0", 5, 0, False]),
        encoded(["queue", True, 5, 5, 0, False]),
        encoded(["state", True, "asleep", 5, 0, False]),
        encoded(["finished", True, "5", 5, 0, False]),
        encoded([["created"], True, 5, 5, 0, False]),
        encoded({"created": True}),
        encoded(["created", True, 5, 5, 0, False]) + "=",
        encoded(["created", True, 5, 5, 0, False]) + "\n",
        base64.urlsafe_b64encode(b"[" * 300).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_a_cursor_that_is_not_ours_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor: it is not a valid cursor"):
        page(store, Filter(), sort=Sort.CREATED, descending=True, limit=5, cursor=cursor)


@pytest.mark.parametrize("sort, descending", [(Sort.CREATED, False), (Sort.QUEUE, True)])
def test_a_cursor_of_another_order_is_refused(store: Store, sort: Sort, descending: bool) -> None:
    cursor = format_cursor(Cursor(After(5, 5)), Sort.CREATED, descending=True)
    with pytest.raises(InvalidInput, match="another order"):
        page(store, Filter(), sort=sort, descending=descending, limit=5, cursor=cursor)


@pytest.mark.parametrize("sort", [Sort.PRIORITY, Sort.STATE, Sort.QUEUE, Sort.RUN_AT, Sort.FINISHED, Sort.DURATION])
def test_an_order_without_an_index_is_refused_beyond_a_number_of_jobs(store: Store, sort: Sort) -> None:
    store.enqueue([new_job(f"j{number}", queue="many") for number in range(4)])
    store.enqueue([new_job("alone", queue="few", tags=["rare"])])
    look = partial(page, store, sort=sort, descending=True, limit=2, most_sorted=3)
    for where in (Filter(), Filter(queues=frozenset({"few"})), Filter(match="true"), Filter(since_ms=2**40)):
        with pytest.raises(InvalidInput, match="more than 3 jobs are too many to sort by"):
            look(where)
    for where in (Filter(tags=frozenset({"rare"})), Filter(ids=("alone",))):
        assert [job.id for job in look(where).jobs] == ["alone"]
    assert look(Filter(states=frozenset({State.DEAD}))).jobs == []


@pytest.mark.parametrize("state", [State.COMPLETED, State.DEAD, State.CANCELLED])
def test_an_order_that_an_index_has_is_given_of_any_number(
    store: Store, worker: Hands, clock: FakeClock, state: State
) -> None:
    crowd(store, worker, clock)
    look = partial(page, store, descending=True, limit=2, most_sorted=1)
    assert look(Filter(), sort=Sort.CREATED).jobs
    assert look(Filter(states=frozenset({state})), sort=Sort.FINISHED).jobs
    with pytest.raises(InvalidInput, match="more than 1 jobs"):
        look(Filter(states=frozenset({state, State.PENDING})), sort=Sort.FINISHED)
