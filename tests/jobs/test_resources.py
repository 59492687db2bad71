from __future__ import annotations

import signal
from typing import Any

import pytest

from queuectl.errors import InvalidInput, QueuectlError, UnknownName
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.outcome import Exited, Limited, Signalled, settle
from queuectl.jobs.resources import (
    NO_REPORT,
    ResourceReport,
    Usage,
    UsageText,
    apply_ceilings,
    exceeded_ceiling,
    exceeded_limit,
    format_limits,
    format_usage,
    pack_limits,
    parse_ceiling,
    parse_limits,
    usage_text,
    usage_to_dict,
)
from queuectl.jobs.retry import RetryPolicy
from queuectl.jobs.spec import NO_URLS, Defaults, validate
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
        ("memory", 2**20 + 1, 2**20 + 1024),  # in whole KiB, as `ulimit`
        ("memory", "1024TiB", 2**50),
        ("cpu_time", "30s", 30),
        ("cpu_time", 30, 30),
        ("cpu_time", "1.2s", 2),  # in whole seconds, as the kernel
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
def test_a_limit_is_stored_in_the_units_of_the_kernel(field: str, value: object, kept: int) -> None:
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
        ("memory", "-2GiB", "expected a size"),
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
        ("file_size", "much", "expected a size"),
    ],
)
def test_an_invalid_limit_is_rejected_by_the_name_of_its_field(field: str, value: object, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        limits_of({field: value})
    assert caught.value.subject == field
    assert words in caught.value.message


def test_limits_of_a_queue_are_defaults_of_its_jobs() -> None:
    of_queue = {"memory": GIB, "nice": 5}
    assert limits_of({}, of_queue) == of_queue
    assert limits_of({"memory": "2GiB", "cpu_time": 3}, of_queue) == {"memory": 2 * GIB, "cpu_time": 3, "nice": 5}
    assert limits_of({"memory": 0}, of_queue) == {"nice": 5}
    assert limits_of({"nice": "none", "memory": 0}, of_queue) is None


def test_an_edit_has_only_the_changed_limits() -> None:
    change = parse_edit({"memory": "2GiB", "nice": 0, "cpu_time": None})
    assert change.limits == {"memory": 2 * GIB, "nice": None}
    with pytest.raises(InvalidInput, match=r"^--open-files: expected an integer"):
        parse_edit({"open_files": -1}, dashes="--")


def test_imported_limits_are_validated() -> None:
    assert parse_limits({"memory": GIB, "nice": None, "cpu_time": 0}, "limits") == {"memory": GIB}
    assert parse_limits({}, "limits") is None
    for bad in ([], "x", {"memory": "little"}, {"colour": 1}, {1: 2}):
        with pytest.raises(QueuectlError) as caught:
            parse_limits(bad, "limits")
        assert isinstance(caught.value, InvalidInput | UnknownName)


def test_limits_are_formatted_as_text() -> None:
    assert format_limits({"memory": 2 * GIB, "cpu_time": 90, "nice": -5}) == "memory 2GiB, cpu time 1m30s, nice -5"
    assert format_limits(None) == ""


def test_a_resource_without_a_limit_is_not_stored() -> None:
    assert pack_limits({"nice": 0, "memory": None, "processes": 3}) == {"processes": 3}
    assert pack_limits({}) is None


# ── what a host allows ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_without_a_limit_gets_that_of_the_host() -> None:
    most = {"memory": GIB, "nice": 5}
    assert apply_ceilings(None, most) == {"memory": GIB, "nice": 5}
    assert apply_ceilings({"memory": 5, "processes": 3}, most) == {"memory": 5, "processes": 3, "nice": 5}
    assert apply_ceilings({"memory": 2 * GIB, "nice": 7}, most) == {"memory": GIB, "nice": 7}
    assert apply_ceilings({"nice": 1}, {}) == {"nice": 1}
    assert apply_ceilings(None, {"nice": 0}) is None


def test_an_excess_names_the_rule_of_the_policy() -> None:
    most = {"memory": GIB, "nice": 5}
    assert exceeded_ceiling({"memory": GIB, "nice": 5}, most) is None
    assert exceeded_ceiling(None, most) is None
    assert exceeded_ceiling({"processes": 10**6}, most) is None
    assert exceeded_ceiling({"memory": 2 * GIB}, most) == ("max-memory", "memory 2GiB, at most 1GiB")
    assert exceeded_ceiling({"nice": 4}, most) == ("min-nice", "nice 4, at least 5")


def test_a_policy_cannot_set_a_ceiling_of_zero() -> None:
    assert parse_ceiling("max-memory", "1GiB", "x") == GIB
    assert parse_ceiling("min-nice", 0, "x") == 0
    with pytest.raises(InvalidInput, match="no job could run"):
        parse_ceiling("max-processes", 0, "x")


# ── how it ended ────────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = {"memory": GIB, "cpu_time": 30, "file_size": 2**20}


def used(seconds: float) -> ResourceReport:
    return ResourceReport(Usage(round(seconds * 600), round(seconds * 400), 0, 0, 0))


@pytest.mark.parametrize(
    "how, spent, words",
    [
        (Exited(0), NO_REPORT, None),
        (Exited(1), used(99), None),
        (Signalled(signal.SIGTERM), used(99), None),
        (Signalled(signal.SIGXCPU), NO_REPORT, "cpu time limit of 30s reached"),
        (Exited(128 + signal.SIGXCPU), NO_REPORT, "exit code 152 (cpu time limit of 30s reached)"),
        (Signalled(signal.SIGKILL), used(31), "cpu time limit of 30s reached"),
        (Signalled(signal.SIGKILL), used(29), None),  # killed for another reason
        (Signalled(signal.SIGKILL), NO_REPORT, None),
        (Signalled(signal.SIGXFSZ), NO_REPORT, "file size limit of 1MiB reached"),
        (Exited(128 + signal.SIGXFSZ), NO_REPORT, "exit code 153 (file size limit of 1MiB reached)"),
        (Signalled(signal.SIGKILL), ResourceReport(None, True), "memory limit of 1GiB reached"),
        (Exited(1), ResourceReport(None, True), "memory limit of 1GiB reached"),
        (Exited(0), ResourceReport(None, True), None),  # it continued without the killed process
    ],
)
def test_a_run_that_exceeded_a_limit_has_it_as_its_error(
    how: Exited | Signalled, spent: ResourceReport, words: str | None
) -> None:
    assert exceeded_limit(LIMITS, how, spent) == words


def test_a_run_without_limits_exceeds_none() -> None:
    for number in (signal.SIGXCPU, signal.SIGKILL, signal.SIGXFSZ):
        assert exceeded_limit(None, Signalled(number), ResourceReport(Usage(10**6, 0, 0, 0, 0), True)) is None


@pytest.mark.parametrize("how, ending", [(Exited(152), "failed"), (Signalled(24), "signalled")])
def test_a_run_that_exceeded_a_limit_has_failed(how: Exited | Signalled, ending: str) -> None:
    settlement = settle(
        unknown_claim("a"), Limited("cpu time limit of 30s reached", how), policy=RetryPolicy(1, 0), chance=0
    )
    assert (settlement.ending, settlement.error) == (ending, "cpu time limit of 30s reached")
    assert settlement.attempts == 1
    assert (settlement.exit_code, settlement.signal) == ((152, None) if ending == "failed" else (None, 24))


def test_unknown_usage_is_null() -> None:
    assert set(usage_to_dict(None).values()) == {None}
    assert usage_to_dict(Usage(1, 2, 3, 4, 5))["read_bytes"] == 4


def test_the_memory_of_a_run_is_the_peak_of_all_processes_if_known() -> None:
    alone, together = Usage(1, 2, 3, 4, 5), Usage(1, 2, 3, 4, 5, 6)
    assert (alone.known, together.known) == ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6))
    assert (alone.memory_bytes, together.memory_bytes) == (3, 6)
    assert alone.cpu_ms == 3


MIB = 2**20


@pytest.mark.parametrize(
    "usage, words",
    [
        (None, UsageText()),
        (Usage(0, 0, 12 * MIB, 0, 0), UsageText("0ms", "12MiB")),
        (Usage(1000, 250, 12 * MIB, 4096, 0), UsageText("1.25s", "12MiB", "4.0KiB", "", "4.0KiB")),
        (Usage(61_000, 0, 3 * MIB, 512, 2 * MIB), UsageText("1m 01s", "3.0MiB", "512B", "2.0MiB", "2.0MiB")),
    ],
)
def test_usage_is_formatted_with_few_digits_and_without_unknown_values(usage: Usage | None, words: UsageText) -> None:
    assert usage_text(usage) == words


def test_usage_is_formatted_on_one_line() -> None:
    assert format_usage(None) == ""
    assert format_usage(Usage(0, 0, 12 * MIB, 0, 0)) == "cpu time 0ms, memory 12MiB"
    said = "cpu time 1.25s, memory 12MiB, read 4.0KiB, written 1.0MiB"
    assert format_usage(Usage(1000, 250, 12 * MIB, 4096, MIB)) == said
