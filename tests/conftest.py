from __future__ import annotations

import gc
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

from queuectl.process.spawn import start_programs_with_default_signals
from tests.clock import FakeClock
from tests.groups import has_controllers
from tests.needs import FULL
from tests.program import Leftovers, Program, WorkerProcess
from tests.swift import SWIFT
from tests.warm import warm

# These need controllers that this host may lack: CI runs them in a virtual machine, see .ci/run.
collect_ignore = [] if has_controllers() else ["controllers"]
collect_ignore += [] if FULL else ["test_virtual_machine.py"]

# No deadline per example: the host may be busy, and the time of a whole test is limited anyway.
settings.register_profile("queuectl", deadline=None)
settings.load_profile("queuectl")

HERE = Path(__file__).resolve().parent

# The parent of `tmp_path`: pytest reads this when it creates the first one.
if SWIFT is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", SWIFT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each of several processes start with other files. pytest stores a rewritten copy of each test file, and rewriting
    takes longer than the rest of loading. So each file is rewritten by one process and not by all."""
    number, count = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if number and [Path(word).resolve() for word in session.config.args] == [HERE]:
        for file in sorted(HERE.rglob("test_*.py"))[int(number.removeprefix("gw")) :: int(count)]:
            with suppress(Exception):  # reported when the file is collected
                importlib.import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix CPU-bound and waiting files if several processes share the tests, so that no slow folder is left for the end.
    The order depends only on a checksum of the name, so it is the same in each process."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: zlib.crc32(item.nodeid.partition("::")[0].encode()))


def pytest_collection_finish() -> None:
    """The ten thousand collected tests stay until the end: do not let every garbage collection go through them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def programs_have_default_signals() -> None:
    """Reset signal dispositions that the suite inherited from nohup, cron or a script. This does not run in the xdist controller,
    whose processes must survive a hangup under nohup."""
    start_programs_with_default_signals()


@pytest.fixture(scope="session", autouse=True)
def no_warm_program_is_left() -> Iterator[None]:
    yield
    warm.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The path of the data directory of this test. It does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def no_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulate a host without a time zone database and without the tzdata package."""
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
    """Fail the test if a process that it started outlives it. Use `leftovers.end()` if that is intended."""
    left = Leftovers(home)
    yield left
    if killed := left.end_the_late():
        pytest.fail("still running after the test:\n" + "\n".join(killed), pytrace=False)


@pytest.fixture
def queuectl(home: Path, leftovers: Leftovers) -> Program:
    """The real program with the data directory of this test."""
    return Program(home)


@pytest.fixture
def start_worker(queuectl: Program, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """`start_worker("--count", "4")`: start a real worker for the data directory of this test."""
    workers: list[WorkerProcess] = []

    def start(*args: str | Path, ready: bool = True, env: dict[str, str | None] | None = None) -> WorkerProcess:
        worker = WorkerProcess(queuectl, tmp_path / f"worker-{len(workers)}.log", *args, env=env)
        workers.append(worker)
        return worker.wait_until_ready() if ready else worker

    yield start
    for worker in workers:
        worker.end()
