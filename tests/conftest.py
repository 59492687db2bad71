from __future__ import annotations

import importlib
import os
import sys
import zlib
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from queuectl.process.dispositions import start_programs_with_default_signals
from tests.clock import FakeClock
from tests.groups import has_controllers
from tests.needs import FULL
from tests.program import Leftovers, Program, WorkerProcess
from tests.swift import SWIFT
from tests.warm import warm

# What only another machine has: CI plays these in a virtual one, see .ci/run.
collect_ignore = [] if has_controllers() else ["controllers"]
collect_ignore += [] if FULL else ["test_virtual_machine.py"]

# No deadline a case: the machine that runs the tests may be busy, and the time a whole test may take is limited anyway.
settings.register_profile("queuectl", deadline=None)
settings.load_profile("queuectl")

HERE = Path(__file__).resolve().parent

# Where `tmp_path` is: read by pytest when it makes the first one.
if SWIFT is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", SWIFT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Where several processes load all tests, each begins with other files. What pytest makes of a file is kept beside it for
    whoever loads it next, and takes longer than all the rest of loading: so each file is read by one and not by all."""
    number, count = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if number and [Path(word).resolve() for word in session.config.args] == [HERE]:
        for file in sorted(HERE.rglob("test_*.py"))[int(number.removeprefix("gw")) :: int(count)]:
            with suppress(Exception):  # told by whoever collects it
                importlib.import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the tests, files that compute come between files that wait, and no folder of either kind
    is left for the end. As good as any mix, and the same one in each process: by a sum of the name."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: zlib.crc32(item.nodeid.partition("::")[0].encode()))


@pytest.fixture(scope="session", autouse=True)
def programs_have_default_signals() -> None:
    """Whatever the suite itself was started with, by nohup, cron or a script. Not where xdist only hands out tests: its processes
    have to survive a hangup under nohup."""
    start_programs_with_default_signals()


@pytest.fixture(scope="session", autouse=True)
def no_warm_program_is_left() -> Iterator[None]:
    yield
    warm.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the home of this test will be. It does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def no_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine without a time zone database, and without the package that has one."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tzdata"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def leftovers(home: Path) -> Iterator[Leftovers]:
    """Fails the test if a process that it made outlives it; `leftovers.end()` for those meant to."""
    left = Leftovers(home)
    yield left
    if killed := left.end_the_late():
        pytest.fail("still running after the test:\n" + "\n".join(killed), pytrace=False)


@pytest.fixture
def queuectl(home: Path, leftovers: Leftovers) -> Program:
    """The real program on this test's home."""
    return Program(home)


@pytest.fixture
def start_worker(queuectl: Program, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """`start_worker("--count", "4")`: a real worker that serves this test's home until the test ends."""
    workers: list[WorkerProcess] = []

    def start(*args: str | Path, ready: bool = True, env: dict[str, str | None] | None = None) -> WorkerProcess:
        worker = WorkerProcess(queuectl, tmp_path / f"worker-{len(workers)}.log", *args, env=env)
        workers.append(worker)
        return worker.wait_until_ready() if ready else worker

    yield start
    for worker in workers:
        worker.end()
