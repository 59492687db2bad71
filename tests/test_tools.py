"""Tests of the test helpers."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tests.clock import FakeClock
from tests.needs import require
from tests.program import STRANGELY, Leftovers, environment
from tests.wait import wait_until

SCRIPTS = Path(__file__).parent.parent / "scripts"
IN_VM = SCRIPTS / "in-vm"
# Each of these failed once with ignored signals, or without a locale.
SENSITIVE = (
    "tests/cli/test_enqueue.py::test_an_interrupted_stream_keeps_what_it_has_printed",
    "tests/cli/test_logs.py::test_ctrl_c_ends_following_and_not_the_job",
    "tests/cli/test_run.py::test_ctrl_c_leaves_the_job_running_and_prints_how_to_follow_it",
    "tests/cli/test_status.py::test_watching_on_a_terminal_redraws_in_place_until_ctrl_c",
    "tests/worker/test_policy.py::test_a_job_sees_of_its_workers_environment_what_is_listed",
    "tests/worker/test_stop.py::test_the_first_signal_lets_what_runs_finish_and_nothing_new_begin[1]",
)


def test_waiting_gives_back_what_it_waited_for() -> None:
    values = iter([None, 0, "done"])
    assert wait_until(lambda: next(values), every=0) == "done"


def test_a_timeout_of_a_wait_names_the_condition() -> None:
    with pytest.raises(AssertionError, match="the moon"):
        wait_until(lambda: False, timeout=0, what="the moon")


def test_a_fake_sleep_takes_no_time_but_lets_it_pass(clock: FakeClock) -> None:
    wall, monotonic = clock.now_ms(), clock.monotonic()
    clock.sleep(3600)
    assert (clock.now_ms() - wall, clock.monotonic() - monotonic) == (3_600_000, 3600)


def test_a_jump_of_the_wall_clock_is_no_time_passing(clock: FakeClock) -> None:
    wall, monotonic = clock.now_ms(), clock.monotonic()
    clock.jump(-60)
    assert (clock.now_ms() - wall, clock.monotonic() - monotonic) == (-60_000, 0)


@pytest.mark.parametrize("everything, raised", [("1", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_what_is_missing_skips_at_home_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, everything: str, raised: type[BaseException]
) -> None:
    monkeypatch.setenv("QUEUECTL_REQUIRE_ALL", everything)
    with pytest.raises(raised, match="needs a moon: to howl at"):
        require("a moon", None, "to howl at")


def test_a_process_that_outlives_its_worker_is_found_and_ended(home: Path) -> None:
    require("/proc", Path("/proc/self/environ").exists(), "leftovers are found by their environment")
    left = Leftovers(home)
    # In its own session and without its parent: only its environment identifies it.
    subprocess.run(
        ["sh", "-c", "sleep 1000 >/dev/null 2>&1 &"], env=environment(home), start_new_session=True, check=True
    )
    wait_until(lambda: list(left), what="the process to be found")
    assert len(left.end()) == 1
    left.wait_until_none()


@pytest.mark.timeout(180)
def test_tests_pass_with_signals_ignored_and_blocked_and_without_a_terminal_and_an_environment() -> None:
    words = (SCRIPTS / "test", "-q", "-x", "-p", "no:cacheprovider", "--numprocesses", "1", *SENSITIVE)
    done = subprocess.run(
        # Like cron or nohup, with stdin closed; the shell passes on only its own descriptors.
        [*STRANGELY, "/bin/sh", "-c", '"$@" <&-', "-", *words],
        env={"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stdout


def test_no_setting_of_the_caller_reaches_the_program(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUECTL_MAX_RETRIES", "7")
    ours = {name: value for name, value in environment(home).items() if name.startswith("QUEUECTL_")}
    assert ours == {"QUEUECTL_HOME": str(home)}


def test_a_virtual_machine_that_takes_too_long_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [IN_VM, "--limit", "1", "sleep", "1000"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    require("a virtual machine", done.returncode != 2, done.stderr)
    assert (done.returncode, list(tmp_path.iterdir())) == (124, [])


def test_a_virtual_machine_says_which_packages_it_misses(tmp_path: Path) -> None:
    done = subprocess.run(["/bin/sh", IN_VM, "true"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(r"in-vm: missing Debian packages: qemu-system-x86 busybox-static.*\n", done.stderr)


@pytest.mark.parametrize("path", sorted((SCRIPTS.parent / "bench").glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_a_benchmark_imports_what_there_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(path.parent))
    runpy.run_path(str(path), run_name="loaded")
