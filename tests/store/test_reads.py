"""Reads: finding, listing, counting and measuring, without writing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

import pytest

from queuectl import errors
from queuectl.jobs.model import Job
from queuectl.jobs.outcome import Ending, Exited, Outcome, Released, Signalled, TimedOut
from queuectl.jobs.states import State
from queuectl.jobs.stats import Span, Spread, Throughput, TimeBuckets
from queuectl.store.store import Store
from queuectl.store.types import Filter, Sort
from queuectl.text import WEBHOOK_QUEUE
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, OK, Hands


def names(jobs: Iterable[Job]) -> list[str]:
    return [job.id for job in jobs]


# ── get and resolve ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_get_takes_exactly_the_id(store: Store) -> None:
    store.enqueue([new_job("abc")])
    assert store.get("abc").id == "abc"
    for wrong in ("ab", "ABC", "abcd", "last", ""):
        with pytest.raises(errors.JobNotFound):
            store.get(wrong)


def test_a_unique_beginning_stands_for_the_whole_id(store: Store) -> None:
    store.enqueue([new_job("abc"), new_job("abd"), new_job("b:1"), new_job("z" * 128)])
    assert [store.resolve(ref) for ref in ("abc", "b", "b:", "z", "z" * 128)] == [
        "abc",
        "b:1",
        "b:1",
        "z" * 128,
        "z" * 128,
    ]


def test_an_exact_id_wins_over_longer_ones(store: Store) -> None:
    store.enqueue([new_job("build-2"), new_job("build"), new_job("build-1")])
    assert store.resolve("build") == "build"


def test_an_ambiguous_beginning_names_up_to_five_candidates(store: Store) -> None:
    store.enqueue([new_job(f"job-{letter}") for letter in "hgfedcba"])
    with pytest.raises(errors.AmbiguousId) as raised:
        store.resolve("job")
    assert raised.value.candidates == ("job-a", "job-b", "job-c", "job-d", "job-e")


def test_last_is_the_job_enqueued_last(store: Store) -> None:
    with pytest.raises(errors.JobNotFound):
        store.resolve("last")
    store.enqueue([new_job("z"), new_job("a")])
    assert store.resolve("last") == "a"


@pytest.mark.parametrize("ref", ["", "B", "abcd", "%", "_", "a%", "ä", "\udcff", "\x00", "a\x00"])
def test_what_is_no_beginning_of_an_id_finds_nothing(store: Store, ref: str) -> None:
    store.enqueue([new_job("abc"), new_job("b")])
    with pytest.raises(errors.JobNotFound):
        store.resolve(ref)


# ── jobs and count ──────────────────────────────────────────────────────────────────────────────────────────────────


def zoo(store: Store, worker: Hands, clock: FakeClock) -> None:
    """One job in each state that a verb leads to, a minute apart: done dead off again wait run later."""
    plan: list[tuple[str, Outcome, int]] = [
        ("done", OK, 5),
        ("dead", BAD, 3),
        ("off", Released(None), 1),
        ("again", BAD, 2),
    ]
    for job_id, outcome, duration in plan:
        retries = 5 if job_id == "again" else 1
        store.enqueue([new_job(job_id, max_retries=retries, backoff_base=1e6, tags=tuple(sorted(("t", job_id))))])
        worker.run(outcome, duration=duration)
        if job_id == "off":
            store.cancel(["off"])
        clock.advance(60)
    store.enqueue([new_job("run", priority=9, queue="q", tags=("t",))])
    worker.claim_one()
    store.enqueue([new_job("wait", priority=5, queue="q"), new_job("later", delay_ms=60_000, tags=("u",))])


def test_a_list_is_newest_first_unless_asked_otherwise(store: Store, worker: Hands, clock: FakeClock) -> None:
    zoo(store, worker, clock)
    order = ["later", "wait", "run", "again", "off", "dead", "done"]
    assert names(store.jobs()) == order
    assert names(store.jobs(descending=False)) == order[::-1]


@pytest.mark.parametrize(
    "where, found",
    [
        (Filter(), 7),
        (Filter(states=frozenset({State.PENDING})), {"wait", "later"}),
        (Filter(states=frozenset({State.DEAD, State.FAILED})), {"dead", "again"}),
        (Filter(states=frozenset({State.BLOCKED})), set()),
        (Filter(queues=frozenset({"q"})), {"run", "wait"}),
        (Filter(queues=frozenset({"q", "default"})), 7),
        (Filter(queues=frozenset({"Q"})), set()),
        (Filter(tags=frozenset({"t"})), {"done", "dead", "off", "again", "run"}),
        (Filter(tags=frozenset({"t", "dead"})), {"dead"}),
        (Filter(tags=frozenset({"t", "u"})), set()),
        (Filter(ids=("wait", "done", "missing")), {"wait", "done"}),
        (Filter(states=frozenset({State.PENDING}), queues=frozenset({"q"}), ids=("wait", "later")), {"wait"}),
        (Filter(states=frozenset({State.CANCELLED}), tags=frozenset({"off"})), {"off"}),
        (Filter(workers=frozenset({"w1"})), {"done", "dead", "again", "run", "off"}),
        (Filter(workers=frozenset({"W1", "w2"})), set()),
        (Filter(errors=frozenset({"EXIT code"})), {"dead", "again"}),
        (Filter(errors=frozenset({"timeout", "code"})), {"dead", "again"}),
        (Filter(errors=frozenset({"%"})), set()),
        (Filter(prefixes=("d",)), {"done", "dead"}),
        (Filter(prefixes=("D", "wai", "later")), {"wait", "later"}),
        (Filter(prefixes=("d", ""), states=frozenset({State.DEAD})), {"dead"}),
        (Filter(match=("echo", "HI")), set()),
        (Filter(unless=Filter(states=frozenset({State.PENDING, State.PROCESSING}))), {"again", "off", "dead", "done"}),
        (Filter(unless=Filter(errors=frozenset({"code"}), queues=frozenset({"q"}))), {"done", "off", "later"}),
        (Filter(unless=Filter(tags=frozenset({"dead", "off"}))), {"done", "again", "run", "wait", "later"}),
        (Filter(unless=Filter(workers=frozenset({"w1"}))), {"wait", "later"}),
        (Filter(unless=Filter(prefixes=("d", "w")), tags=frozenset({"t"})), {"off", "again", "run"}),
        (Filter(unless=Filter(since_ms=0)), set()),
        (Filter(queues=frozenset({"\udcff"})), set()),
        (Filter(workers=frozenset({"\udcff"})), set()),
        (Filter(prefixes=("\udcff",)), set()),
        (Filter(tags=frozenset({"\udcff"})), set()),
        (Filter(ids=("\udcff",)), set()),
    ],
)
def test_a_filter_lets_through_what_matches_and_is_counted_alike(
    store: Store, worker: Hands, clock: FakeClock, where: Filter, found: set[str] | int
) -> None:
    zoo(store, worker, clock)
    listed = names(store.jobs(where))
    assert (len(listed) if isinstance(found, int) else set(listed)) == found
    assert store.count(where) == len(listed)
    assert [job.id for job in store.choose(where)] == listed[::-1]
    assert all((job.state, job.held) == (store.get(job.id).state, False) for job in store.choose(where))


def test_an_error_is_found_in_the_last_line_of_output_as_well(store: Store, worker: Hands) -> None:
    for name, line in (("a", "Timeout expired"), ("b", "50% done"), ("c", None)):
        store.enqueue([new_job(name, max_retries=1)])
        worker.run(BAD, last_output=line)
    assert names(store.jobs(Filter(errors=frozenset({"timeout EXP"})))) == ["a"]
    assert names(store.jobs(Filter(errors=frozenset({"0%", "timeout"})))) == ["b", "a"]
    assert names(store.jobs(Filter(errors=frozenset({"exit code"}), unless=Filter(errors=frozenset({"done"}))))) == [
        "c",
        "a",
    ]


def test_tags_are_listed_once_each_up_to_a_limit(store: Store) -> None:
    assert store.tags(limit=5) == []
    store.enqueue([new_job(tags=("b",)), new_job(tags=("a", "b")), new_job(tags=("c",))])
    assert store.tags(limit=5) == ["a", "b", "c"]
    assert store.tags(limit=2) == ["a", "b"]


def test_a_filter_by_time_lets_through_what_was_enqueued_then_or_later(store: Store, clock: FakeClock) -> None:
    for name in ("a", "b", "c"):
        store.enqueue([new_job(name, delay_ms=60_000)])
        clock.advance(1)
    since = clock.now_ms() - 2000
    assert names(store.jobs(Filter(since_ms=since))) == ["c", "b"]
    assert names(store.jobs(Filter(since_ms=since + 1))) == ["c"]
    assert store.count(Filter(since_ms=since, states=frozenset({State.PENDING}))) == 2
    assert store.count(Filter(since_ms=since, queues=frozenset({"q"}))) == 0


COMMANDS: Final = {
    "plain": "make all",
    "percent": "echo 100% _done_",
    "accents": "tar cf Größe.tar 日本 \N{WAVING HAND SIGN}",
    "quotes": """printf '%s\\n' "a\tb" """,
    "upper": "MAKE ALL",
}
ARGVS: Final = {"words": ("make", "all"), "odd": ("printf", "%s\n", "Größe ", 'a"b', "")}


def fold(text: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in text)


@pytest.mark.parametrize(
    "text, found",
    [
        ("make all", {"plain", "words", "upper"}),
        ("e A", {"plain", "words", "upper"}),
        ("MAKE", {"plain", "words", "upper"}),
        ("%", {"percent", "quotes", "odd"}),
        ("100%", {"percent"}),
        ("_done_", {"percent"}),
        ("m_ke", set()),
        ("Größe", {"accents", "odd"}),
        ("gRößE", {"accents", "odd"}),
        ("GRÖSSE", set()),
        ("GRÖßE", set()),  # only the letters A to Z match in any case
        ("Gro\u0308\u00dfe", set()),  # composed otherwise: other characters
        ("日本 \N{WAVING HAND SIGN}", {"accents"}),
        ("\\u", set()),  # as JSON writes what is not ASCII
        ('"', {"quotes", "odd"}),
        ("\\n", {"quotes"}),
        ("\n", {"odd"}),
        ("\t", {"quotes"}),
        ("Größe  a", {"odd"}),
        ('"b ', {"odd"}),  # the last word is empty
        ('["make"', set()),
        (", ", set()),
        ("'", {"quotes"}),
    ],
)
def test_a_text_is_found_in_commands_and_between_words_in_any_case_of_ascii_letters(
    store: Store, text: str, found: set[str]
) -> None:
    store.enqueue([new_job(name, command=command) for name, command in COMMANDS.items()])
    store.enqueue([new_job(name, command=None, argv=argv) for name, argv in ARGVS.items()])
    everything = {**COMMANDS, **{name: " ".join(argv) for name, argv in ARGVS.items()}}
    assert {name for name, command in everything.items() if fold(text) in fold(command)} == found
    assert {job.id for job in store.choose(Filter(match=(text,)))} == found
    assert store.count(Filter(match=(text,), states=frozenset({State.PENDING}))) == len(found)
    assert store.count(Filter(match=(text,), states=frozenset({State.DEAD}))) == 0


def test_the_words_of_a_long_argv_stand_in_their_order(store: Store) -> None:
    words = tuple(f"w{number}" for number in range(2000))
    store.enqueue([new_job("a", command=None, argv=words)])
    assert store.count(Filter(match=(" ".join(words),))) == 1


@pytest.mark.parametrize(
    "sort, ascending",
    [
        (Sort.CREATED, ["done", "dead", "off", "again", "run", "wait", "later"]),
        (Sort.PRIORITY, ["later", "again", "off", "dead", "done", "wait", "run"]),
        (Sort.STATE, ["off", "done", "dead", "again", "later", "wait", "run"]),
        (Sort.QUEUE, ["later", "again", "off", "dead", "done", "wait", "run"]),
        (Sort.RUN_AT, ["done", "dead", "off", "wait", "run", "later", "again"]),
        (Sort.FINISHED, ["done", "dead", "off", "again", "later", "wait", "run"]),
        (Sort.DURATION, ["off", "again", "dead", "done", "later", "wait", "run"]),
    ],
)
def test_a_list_is_sorted_by_any_key_in_both_directions(
    store: Store, worker: Hands, clock: FakeClock, sort: Sort, ascending: list[str]
) -> None:
    zoo(store, worker, clock)
    assert names(store.jobs(sort=sort, descending=False)) == ascending

    def key(job: Job) -> object:
        column = {"created": "seq", "finished": "finished_at", "duration": "duration_ms"}.get(sort, sort.value)
        return getattr(job, column)

    jobs = list(store.jobs(sort=sort, descending=False))
    groups = [list(group) for _, group in itertools.groupby(jobs, key)]
    with_key = [group for group in groups if key(group[0]) is not None]
    without = [group for group in groups if key(group[0]) is None]
    # What has no key stays at the end, and ties stay newest first.
    expected = names(itertools.chain.from_iterable(with_key[::-1] + without))
    assert names(store.jobs(sort=sort, descending=True)) == expected


@pytest.mark.parametrize("limit, offset", [(0, 0), (1, 0), (3, 2), (100, 0), (None, 5), (2, 6), (5, 100), (None, 0)])
def test_pages_are_cut_out_of_the_same_order(store: Store, limit: int | None, offset: int) -> None:
    ids = store.enqueue([new_job() for _ in range(7)])[::-1]
    end = None if limit is None else offset + limit
    assert names(store.jobs(limit=limit, offset=offset)) == ids[offset:end]


def test_a_long_list_is_complete(store: Store) -> None:
    ids = store.enqueue([new_job() for _ in range(1203)])
    assert names(store.jobs(descending=False)) == ids
    assert names(store.jobs(limit=1100, offset=3, descending=False)) == ids[3:1103]


def test_a_long_list_has_the_jobs_and_the_order_of_one_moment_while_the_store_changes(
    store: Store, other: Store
) -> None:
    ids = store.enqueue([new_job(queue="q") for _ in range(1200)])
    listing = store.jobs(descending=False)
    first = next(listing)
    other.cancel([ids[-1]])
    assert store.get(ids[-1]).state is State.CANCELLED  # other reads see the present state
    store.cancel([ids[-2]])  # and may write
    store.enqueue([new_job()])
    assert names([first, *listing]) == ids


def test_an_unfinished_list_blocks_nothing(store: Store, other: Store) -> None:
    store.enqueue([new_job() for _ in range(1200)])
    listing = store.jobs()
    next(listing)
    store.changed()
    other.enqueue([new_job("new")])
    assert store.changed()
    assert store.get("new").id == "new"
    assert store.tally()["default"][State.PENDING] == 1201


# ── counts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_store_has_no_queues_to_count(store: Store) -> None:
    assert (store.tally(), store.totals(), store.count()) == ({}, {}, 0)


def test_the_tally_names_every_state_of_every_queue(store: Store, worker: Hands, clock: FakeClock) -> None:
    zoo(store, worker, clock)
    one = dict.fromkeys(State, 0)
    assert store.tally() == {
        "default": one | dict.fromkeys([State.COMPLETED, State.DEAD, State.CANCELLED, State.FAILED, State.PENDING], 1),
        "q": one | {State.PROCESSING: 1, State.PENDING: 1},
    }


def test_a_queue_that_ever_had_a_job_stays_in_the_tally(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", queue="mail", max_retries=1)])
    worker.run(BAD)
    store.purge(["a"])
    assert store.tally() == {"mail": dict.fromkeys(State, 0)}


def test_totals_count_what_ever_happened_and_survive_a_purge(store: Store, hire: Hire, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=2, queue="q")])
    worker = hire("w1")
    worker.run(BAD)  # failed
    clock.advance(60)
    worker.run(Signalled(9))  # claimed again by itself: retried; dead
    store.retry(["a"], states=frozenset(State))  # retried by a person
    worker.claim_one()
    store.claims.rescue("w1", max_crashes=3)
    worker = hire("w2")
    worker.run(Released(None))  # neither a failure nor a retry
    worker.run(Released(None))
    worker.run(TimedOut(5, Exited(1)))
    clock.advance(60)
    worker.run(OK)
    expected = {"enqueued": 1, "started": 7, "completed": 1, "failed": 3, "dead": 1, "retried": 3, "rescued": 1}
    assert store.totals() == {"q": expected}
    store.reset()
    assert store.totals() == {"q": expected}


def test_the_average_of_attempts_is_over_all_jobs(store: Store, worker: Hands) -> None:
    assert store.average_attempts() is None
    store.enqueue([new_job(), new_job(), new_job(), new_job()])
    worker.run(BAD)
    assert store.average_attempts() == 0.25


def test_calls_are_in_none_of_the_figures_about_jobs(store: Store, hire: Hire, clock: FakeClock) -> None:
    store.enqueue([new_job(), new_job(queue=WEBHOOK_QUEUE), new_job(queue=WEBHOOK_QUEUE)])
    worker = hire("w1", queues=("default", WEBHOOK_QUEUE))
    worker.run()
    calls = hire("w2", queues=(WEBHOOK_QUEUE,))
    calls.run()
    calls.run(BAD)
    ran, waited = store.durations()
    assert (ran.count, waited.count) == (1, 1)
    assert store.throughput() == Throughput(minute=1, hour=1, day=1)
    assert store.average_attempts() == 0
    clock.advance(61)
    store.samples.record()
    assert [point.counts.completed for point in store.samples.points(Span.MINUTE, since_ms=0)] == [1]
    assert [point.counts.completed for point in store.samples.points(Span.MINUTE, since_ms=0, queue=WEBHOOK_QUEUE)] == [
        1
    ]


# ── times ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_oldest_that_is_due_and_waits_is_known_for_each_queue(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    assert store.oldest_waiting_ms() == {}
    store.enqueue([new_job("gone", queue="b"), new_job("later", queue="z", delay_ms=3_600_000)])
    worker.run()
    clock.advance(1)
    store.enqueue([new_job(queue="b"), new_job(queue="a")])
    clock.advance(2)
    store.enqueue([new_job(queue="b", priority=100)])
    clock.advance(3)
    assert store.oldest_waiting_ms() == {"a": 5000, "b": 5000}


def test_who_has_come_due_waits_even_before_anybody_let_it_in(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=1000)])
    clock.advance(3)
    assert store.oldest_waiting_ms() == {"default": 2000}
    worker.exchange()
    assert store.oldest_waiting_ms() == {"default": 2000}


def test_a_waiting_time_is_never_negative(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job()])
    clock.jump(-60)
    assert store.oldest_waiting_ms() == {"default": 0}


def test_history_is_that_of_one_job_and_of_no_other(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    worker.run(BAD)
    worker.run(OK)
    assert [run.outcome for run in store.history("a")] == [Ending.FAILED]
    with pytest.raises(errors.JobNotFound):
        store.history("c")


def test_the_spread_of_nothing_is_nothing(store: Store) -> None:
    nothing = Spread(0, None, None, None, None, None, None)
    assert store.durations() == (nothing, nothing)
    assert store.samples.histograms() == {}


def completed(store: Store, worker: Hands, clock: FakeClock, seconds: list[float], *, queue: str = "default") -> None:
    """One completed job for each run time, each after having waited for two seconds."""
    for duration in seconds:
        store.enqueue([new_job(queue=queue)])
        clock.advance(2 + duration)
        worker.run(OK, duration=duration)


def test_durations_are_those_of_the_completed_jobs(store: Store, worker: Hands, clock: FakeClock) -> None:
    completed(store, worker, clock, [number / 1000 for number in range(1, 101)])
    store.enqueue([new_job(max_retries=1)])
    worker.run(BAD, duration=999)
    run, wait = store.durations()
    assert run == Spread(100, 50.5, 1, 100, 50, 95, 99)
    assert wait == Spread(100, 2000.0, 2000, 2000, 2000, 2000, 2000)


def test_one_duration_is_every_percentile(store: Store, worker: Hands, clock: FakeClock) -> None:
    completed(store, worker, clock, [0.007])
    assert store.durations()[0] == Spread(1, 7.0, 7, 7, 7, 7, 7)


def test_histograms_count_up_to_each_bound_by_queue(store: Store, worker: Hands, clock: FakeClock) -> None:
    completed(store, worker, clock, [0.5, 1.0, 1.001, 7], queue="a")
    completed(store, worker, clock, [0.25], queue="b")
    histograms = store.samples.histograms()

    def up_to(times: TimeBuckets) -> list[int]:
        return [dict(times.cumulative)[bound] for bound in (0.5, 1, 5, 86_400)]

    run, wait = histograms["a"]
    assert (up_to(run), run.total_ms, run.jobs) == ([1, 2, 3, 4], 9501, 4)
    assert (up_to(wait), wait.total_ms, wait.jobs) == ([0, 0, 4, 4], 8000, 4)
    assert up_to(histograms["b"][0]) == [1, 1, 1, 1]


def test_throughput_counts_the_completed_of_a_minute_an_hour_and_a_day(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    for pause in (86_400, 3600, 60, 59):
        store.enqueue([new_job()])
        worker.run()
        store.enqueue([new_job(max_retries=1)])
        worker.run(BAD)
        clock.advance(pause)
    assert store.throughput() == Throughput(minute=1, hour=2, day=3)


# ── drained ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_store_is_drained(store: Store) -> None:
    assert store.is_drained(None)
    assert store.is_drained(("q",))


def test_what_is_due_or_runs_or_waits_for_a_retry_holds_a_drain(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=2)])
    assert not store.is_drained(None)
    claim = worker.claim_one()
    assert not store.is_drained(None)
    worker.end(claim, BAD)
    assert not store.is_drained(None)
    clock.advance(60)
    worker.run(BAD)
    assert store.get("a").state is State.DEAD
    assert store.is_drained(None)


def test_a_first_run_to_come_does_not_hold_a_drain_until_it_is_due(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job(delay_ms=1000), new_job(delay_ms=9000)])
    assert store.is_drained(None)
    clock.advance(1)
    assert not store.is_drained(None)
    worker.exchange()
    assert not store.is_drained(None)
    worker.run()
    assert store.is_drained(None)


def test_what_is_held_or_blocked_does_not_hold_a_drain(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("held"), new_job("blocked")])
    backend.force("held", held=1, ready=0)
    backend.force("blocked", state=State.BLOCKED, ready=0)
    assert store.is_drained(None)


def test_a_drain_looks_at_the_named_queues_only(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job(queue="a"), new_job(queue="c", delay_ms=1000)])
    clock.advance(1)
    assert [store.is_drained(queues) for queues in (("a",), ("b",), ("c",), ("b", "a"), (), None)] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]


# ── changed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_write_of_another_is_noticed_once(store: Store, other: Store) -> None:
    store.changed()
    assert not store.changed()
    other.enqueue([new_job()])
    assert store.changed()
    assert not store.changed()


def test_looking_is_no_change(store: Store, other: Store) -> None:
    store.enqueue([new_job("a")])
    store.changed()
    other.get("a")
    list(other.jobs())
    other.tally()
    assert not store.changed()


def test_looking_at_a_store_writes_nothing(store: Store, other: Store, worker: Hands, clock: FakeClock) -> None:
    zoo(store, worker, clock)
    other.changed()
    store.get("run")
    store.resolve("w")
    list(store.jobs())
    store.count(Filter(tags=frozenset({"t"})))
    store.tally()
    store.totals()
    store.oldest_waiting_ms()
    store.history("run")
    store.durations()
    store.samples.histograms()
    store.throughput()
    store.samples.points(Span.MINUTE, since_ms=0)
    store.average_attempts()
    store.workers()
    store.is_drained(None)
    store.config()
    store.running("w1")
    store.claims.orders("w1")
    assert not other.changed()
