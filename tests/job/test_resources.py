"""What a run may use, and what it has used."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from queuectl.errors import InvalidInput, QueuectlError, UnknownName
from queuectl.job.change import read_change
from queuectl.job.newjob import NO_URLS
from queuectl.job.outcome import Exited, Limited, Signalled
from queuectl.job.resources import (
    NOT_KNOWN,
    Spent,
    Usage,
    beyond,
    capped,
    pack,
    parse_ceiling,
    parse_limits,
    reached,
    told,
    usage_to_dict,
)
from queuectl.job.retry import RetryPolicy
from queuectl.job.settle import settle
from queuectl.job.spec import Defaults, validate
from tests.factories import unknown_claim

GIB = 2**30
DEFAULTS = Defaults(0, 3, False, 2.0, None, "/")


def limits_of(fields: dict[str, Any], of_queue: dict[str, int] | None = None) -> Any:
    by_queue = {} if of_queue is None else {"default": (None, None, None, NO_URLS, of_queue)}
    return validate({"command": "true", **fields}, DEFAULTS._replace(by_queue=by_queue)).limits


# ── what is accepted ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "field, value, kept",
    [
        ("memory", "2GiB", 2 * GIB),
        ("memory", 2 * GIB, 2 * GIB),
        ("memory", 2**20 + 1, 2**20 + 1024),  # as shells count: in whole KiB
        ("memory", "1024TiB", 2**50),
        ("cpu_time", "30s", 30),
        ("cpu_time", 30, 30),
        ("cpu_time", "1.2s", 2),  # as the kernel counts: in whole seconds
        ("cpu_time", "500ms", 1),
        ("nice", 5, 5),
        ("nice", -20, -20),
        ("nice", 5.0, 5),
        ("open_files", 256, 256),
        ("processes", 64, 64),
        ("file_size", "1GiB", GIB),
        ("file_size", 1, 1024),
    ],
)
def test_a_limit_is_kept_in_the_units_of_the_system(field: str, value: object, kept: int) -> None:
    assert limits_of({field: value}) == {field: kept}


@pytest.mark.parametrize("field", ["memory", "cpu_time", "nice", "open_files", "processes", "file_size"])
@pytest.mark.parametrize("value", [0, "none", " None ", None])
def test_zero_and_none_are_no_limit(field: str, value: object) -> None:
    assert limits_of({field: value}) is None


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("memory", 512, "no program runs with 512"),
        ("memory", "999KiB", "no program runs with '999KiB'"),
        ("memory", -1, "a size from 0"),
        ("memory", "-2GiB", "not a size"),
        ("memory", "2000TiB", "a size from 0 to 1024TiB"),
        ("memory", True, "expected a size"),
        ("memory", [], "expected a size"),
        ("memory", float("nan"), "a size from 0"),
        ("memory", float("inf"), "a size from 0"),
        ("memory", 10**400, "a size from 0"),
        ("cpu_time", "-1s", "negative"),
        ("cpu_time", "101000w", "over 100 years"),
        ("cpu_time", {}, "expected a duration"),
        ("nice", 20, "an integer from -20 to 19"),
        ("nice", -21, "an integer from -20 to 19"),
        ("nice", "5", "an integer"),
        ("nice", True, "an integer"),
        ("open_files", -1, "an integer from 0"),
        ("open_files", 1.5, "an integer"),
        ("open_files", 2**21, "an integer from 0 to 1048576"),
        ("processes", 10**30, "an integer from 0 to 4194304"),
        ("file_size", "much", "not a size"),
    ],
)
def test_what_is_no_limit_is_refused_by_the_name_of_its_field(field: str, value: object, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        limits_of({field: value})
    assert caught.value.subject == field
    assert words in caught.value.message


def test_what_a_queue_says_holds_for_jobs_that_do_not_say_otherwise() -> None:
    of_queue = {"memory": GIB, "nice": 5}
    assert limits_of({}, of_queue) == of_queue
    assert limits_of({"memory": "2GiB", "cpu_time": 3}, of_queue) == {"memory": 2 * GIB, "cpu_time": 3, "nice": 5}
    assert limits_of({"memory": 0}, of_queue) == {"nice": 5}
    assert limits_of({"nice": "none", "memory": 0}, of_queue) is None


def test_a_change_names_what_becomes_different() -> None:
    change = read_change({"memory": "2GiB", "nice": 0, "cpu_time": None})
    assert change.limits == {"memory": 2 * GIB, "nice": None}
    with pytest.raises(InvalidInput, match=r"^--open-files: expected an integer"):
        read_change({"open_files": -1}, dashes="--")


def test_limits_from_other_hands_are_read_with_the_same_care() -> None:
    assert parse_limits({"memory": GIB, "nice": None, "cpu_time": 0}, "limits") == {"memory": GIB}
    assert parse_limits({}, "limits") is None
    for bad in ([], "x", {"memory": "little"}, {"colour": 1}, {1: 2}):
        with pytest.raises(QueuectlError) as caught:
            parse_limits(bad, "limits")
        assert isinstance(caught.value, InvalidInput | UnknownName)


def test_limits_are_told_in_words() -> None:
    assert told({"memory": 2 * GIB, "cpu_time": 90, "nice": -5}) == "memory 2GiB, cpu time 1m30s, nice -5"
    assert told(None) == ""


def test_what_is_not_limited_is_not_kept() -> None:
    assert pack({"nice": 0, "memory": None, "processes": 3}) == {"processes": 3}
    assert pack({}) is None


# ── what a host allows ──────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_asks_for_no_limit_gets_that_of_the_host() -> None:
    most = {"memory": GIB, "nice": 5}
    assert capped(None, most) == {"memory": GIB, "nice": 5}
    assert capped({"memory": 5, "processes": 3}, most) == {"memory": 5, "processes": 3, "nice": 5}
    assert capped({"memory": 2 * GIB, "nice": 7}, most) == {"memory": GIB, "nice": 7}
    assert capped({"nice": 1}, {}) == {"nice": 1}
    assert capped(None, {"nice": 0}) is None


def test_whoever_asks_for_more_is_told_which_rule_is_against_it() -> None:
    most = {"memory": GIB, "nice": 5}
    assert beyond({"memory": GIB, "nice": 5}, most) is None
    assert beyond(None, most) is None
    assert beyond({"processes": 10**6}, most) is None
    assert beyond({"memory": 2 * GIB}, most) == ("max-memory", "memory 2GiB, at most 1GiB")
    assert beyond({"nice": 4}, most) == ("min-nice", "nice 4, at least 5")


def test_a_host_cannot_allow_nothing_at_all() -> None:
    assert parse_ceiling("max-memory", "1GiB", "x") == GIB
    assert parse_ceiling("min-nice", 0, "x") == 0
    with pytest.raises(InvalidInput, match="no job could run"):
        parse_ceiling("max-processes", 0, "x")


# ── how it ended ────────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = {"memory": GIB, "cpu_time": 30, "file_size": 2**20}


def used(seconds: float) -> Spent:
    return Spent(Usage(round(seconds * 600), round(seconds * 400), 0, 0, 0))


@pytest.mark.parametrize(
    "how, spent, words",
    [
        (Exited(0), NOT_KNOWN, None),
        (Exited(1), used(99), None),
        (Signalled(signal.SIGTERM), used(99), None),
        (Signalled(signal.SIGXCPU), NOT_KNOWN, "cpu time limit of 30s reached"),
        (Exited(128 + signal.SIGXCPU), NOT_KNOWN, "exit code 152 (cpu time limit of 30s reached)"),
        (Signalled(signal.SIGKILL), used(31), "cpu time limit of 30s reached"),
        (Signalled(signal.SIGKILL), used(29), None),  # somebody else has killed it
        (Signalled(signal.SIGKILL), NOT_KNOWN, None),
        (Signalled(signal.SIGXFSZ), NOT_KNOWN, "file size limit of 1MiB reached"),
        (Exited(128 + signal.SIGXFSZ), NOT_KNOWN, "exit code 153 (file size limit of 1MiB reached)"),
        (Signalled(signal.SIGKILL), Spent(None, True), "memory limit of 1GiB reached"),
        (Exited(1), Spent(None, True), "memory limit of 1GiB reached"),
        (Exited(0), Spent(None, True), None),  # it did without whom that has ended
    ],
)
def test_a_run_that_its_limit_has_ended_says_so(how: Exited | Signalled, spent: Spent, words: str | None) -> None:
    assert reached(LIMITS, how, spent) == words


def test_without_a_limit_nothing_is_said_of_one() -> None:
    for number in (signal.SIGXCPU, signal.SIGKILL, signal.SIGXFSZ):
        assert reached(None, Signalled(number), Spent(Usage(10**6, 0, 0, 0, 0), True)) is None


@pytest.mark.parametrize("how, ending", [(Exited(152), "failed"), (Signalled(24), "signalled")])
def test_the_end_by_a_limit_is_a_failure_like_any_other(how: Exited | Signalled, ending: str) -> None:
    settlement = settle(
        unknown_claim("a"), Limited("cpu time limit of 30s reached", how), policy=RetryPolicy(1, 0), chance=0
    )
    assert (settlement.ending, settlement.error) == (ending, "cpu time limit of 30s reached")
    assert settlement.attempts == 1
    assert (settlement.exit_code, settlement.signal) == ((152, None) if ending == "failed" else (None, 24))


def test_what_is_not_known_of_a_run_is_null() -> None:
    assert set(usage_to_dict(None).values()) == {None}
    assert usage_to_dict(Usage(1, 2, 3, 4, 5))["read_bytes"] == 4


def test_what_is_known_of_a_run_is_kept_and_its_memory_is_that_of_all_of_it_if_that_is_known() -> None:
    alone, together = Usage(1, 2, 3, 4, 5), Usage(1, 2, 3, 4, 5, 6)
    assert (alone.known, together.known) == ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6))
    assert (alone.memory_bytes, together.memory_bytes) == (3, 6)
    assert alone.cpu_ms == 3
