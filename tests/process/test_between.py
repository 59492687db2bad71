"""What a process does to itself before it is the program, and that it is otherwise made as any other."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited
from queuectl.process.between import Between, clamped
from queuectl.process.protocol import CannotSpawn
from queuectl.process.spawn import SystemProcesses
from queuectl.process.watch import Child
from tests.needs import require
from tests.process.test_spawn import HEAD, begin, bury, end_of, open_processes, order

NOBODY = 65534
Printed = Callable[..., str]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[SystemProcesses]:
    with open_processes(tmp_path) as made:
        yield made


def forked(between: Between) -> Between:
    """What cannot be done by a list of system calls alone: it has to look where it is."""
    root = os.stat("/")
    return between._replace(inside=(root.st_dev, root.st_ino))


WAYS = pytest.mark.parametrize("way", [lambda between: between, forked], ids=["list", "fork"])
Way = Callable[[Between], Between]


@pytest.fixture
def printed(processes: SystemProcesses, tmp_path: Path) -> Printed:
    """What a command prints that does this before it begins."""

    def play(command: str, between: Between | None) -> str:
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        log.touch()
        wanted = order([b"/bin/sh", b"-c", command.encode()], str(log), path=b"/bin:/usr/bin")
        (child,) = begin(processes, wanted._replace(between=between))
        assert isinstance(child, Child), child
        assert isinstance(end_of(processes, child), Exited)
        bury(processes, child)
        return log.read_text()[len(HEAD) :].rpartition("--- END")[0].strip()

    return play


def failure(processes: SystemProcesses, log: Path, *argv: bytes, between: Between | None, cwd: str = "/") -> str:
    wanted = order(argv, str(log), cwd=cwd, path=b"/no/where:/etc/passwd:/bin")
    (child,) = begin(processes, wanted._replace(between=between))
    assert isinstance(child, CannotSpawn)
    return str(child)


@pytest.mark.parametrize(
    "kind, most, option",
    [
        (resource.RLIMIT_NOFILE, 33, "n"),
        (resource.RLIMIT_CPU, 7, "t"),
        (resource.RLIMIT_AS, 512 * 2**20, "v"),
        (resource.RLIMIT_FSIZE, 1024 * 512, "f"),
    ],
)
@WAYS
def test_a_limit_is_there_from_the_start_and_for_good(
    printed: Printed, way: Way, kind: int, most: int, option: str
) -> None:
    unit = {"v": 1024, "f": 512}.get(option, 1)
    said = printed(f"ulimit -S{option}; ulimit -H{option}", way(Between(limits=((kind, most),))))
    # That of the cpu time is told by a signal of its own, a second before the last.
    assert said.split() == [str(most // unit), str(most // unit + (option == "t"))]


def test_what_is_asked_beyond_our_own_limit_becomes_that() -> None:
    _, ours = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert clamped([(resource.RLIMIT_NOFILE, 2**40)]) == [(resource.RLIMIT_NOFILE, (ours, ours))]


def test_the_limit_of_memory_is_set_last() -> None:
    limits = [(resource.RLIMIT_AS, 2**30), (resource.RLIMIT_NOFILE, 9), (resource.RLIMIT_CPU, 9)]
    assert [kind for kind, _ in clamped(limits)][-1] == resource.RLIMIT_AS


def test_less_memory_than_any_program_needs_ends_the_program_and_not_the_keeper(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    wanted = order([b"/bin/true"], str(tmp_path / "log"))
    (child,) = begin(processes, wanted._replace(between=Between(limits=((resource.RLIMIT_AS, 4096),))))
    if isinstance(child, Child):  # the kernel ends it while it loads
        assert end_of(processes, child) != Exited(0)
        bury(processes, child)
    (child,) = begin(processes, order([b"/bin/true"], str(tmp_path / "log")))
    assert isinstance(child, Child)
    bury(processes, child)


@WAYS
def test_the_nice_value_is_there_from_the_start(printed: Printed, way: Way) -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert printed("cut -d' ' -f19 /proc/self/stat", way(Between(nice=3))) == str(min(19, ours + 3))
    assert printed("cut -d' ' -f19 /proc/self/stat", None) == str(ours), "and the next one has that of its keeper"


@WAYS
def test_the_mask_of_new_files_is_there_from_the_start(printed: Printed, way: Way) -> None:
    assert printed("umask", way(Between(umask=0o27))) == "0027"


@WAYS
def test_nothing_else_differs_from_a_process_that_does_nothing_to_itself(printed: Printed, way: Way) -> None:
    look = "grep -E '^(Sig(Blk|Ign|Cgt)|Umask|Uid|Gid|Groups|NSpgid|NSsid|NSpid|Threads)' /proc/self/status; ls -l /proc/$$/fd"
    same = "cat | grep -c . || true; env | sort; pwd; ulimit -a; cut -d' ' -f5,6 /proc/$$/stat; echo $$ $PPID"

    def without_numbers(said: str) -> list[str]:
        return [line for line in said.splitlines() if not line.startswith(("NS", "l", "total"))]

    plain, forked = printed(look, None), printed(look, way(Between()))
    assert without_numbers(plain) == without_numbers(forked)
    assert plain.count("->") == forked.count("->")
    *plain_lines, numbers, pids = printed(same, None).splitlines()
    *forked_lines, forked_numbers, forked_pids = printed(same, way(Between())).splitlines()
    assert plain_lines == forked_lines
    for pid, group in ((pids, numbers), (forked_pids, forked_numbers)):
        assert group.split() == [pid.split()[0]] * 2, "the leader of a group and a session of its own"
    assert pids.split()[1] == forked_pids.split()[1], "a child of the keeper"


@pytest.mark.parametrize("program", [b"nothing-like-it", b"/no/such", b"/etc/passwd", b"/", b"x" * 5000, b"a\0b"])
@WAYS
def test_what_cannot_be_begun_is_told_in_the_same_words(
    processes: SystemProcesses, tmp_path: Path, program: bytes, way: Way
) -> None:
    plain = failure(processes, tmp_path / "log", program, between=None)
    assert failure(processes, tmp_path / "log", program, between=way(Between())) == plain


@WAYS
def test_a_directory_that_is_not_there_is_told_in_the_same_words(
    processes: SystemProcesses, tmp_path: Path, way: Way
) -> None:
    plain = failure(processes, tmp_path / "log", b"/bin/true", between=None, cwd="/no/such")
    assert failure(processes, tmp_path / "log", b"/bin/true", between=way(Between()), cwd="/no/such") == plain


@WAYS
def test_whoever_cannot_begin_leaves_no_process_behind(
    processes: SystemProcesses, printed: Printed, tmp_path: Path, way: Way
) -> None:
    failure(processes, tmp_path / "log", b"/no/such", between=way(Between()))
    *children, itself = printed("ps -o pid= --ppid $PPID; echo $$", None).split()
    assert children == [itself]


def test_many_at_a_time_are_made_side_by_side_with_others(processes: SystemProcesses, tmp_path: Path) -> None:
    orders = [
        order([b"/bin/true"], str(tmp_path / f"log{number}"), slot=number)._replace(
            between=Between(nice=19) if number % 3 else None
        )
        for number in range(24)
    ]
    for child in begin(processes, *orders):
        assert isinstance(child, Child)
        assert end_of(processes, child) == Exited(0)
        bury(processes, child)


@pytest.fixture
def _as_root() -> None:
    require("root", os.geteuid() == 0, "nobody else may be another user")


@pytest.mark.usefixtures("_as_root")
def test_another_user_is_one_for_good_with_groups_and_mask(printed: Printed) -> None:
    between = Between(user=(NOBODY, NOBODY), groups=(NOBODY, 7), umask=0o27)
    said = printed("grep -E '^(Uid|Gid|Groups)' /proc/self/status; umask", between)
    assert said.split() == ["Uid:", *["65534"] * 4, "Gid:", *["65534"] * 4, "Groups:", "7", "65534", "0027"]


@pytest.mark.usefixtures("_as_root")
def test_a_directory_that_the_other_user_may_not_enter_is_told_as_such(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    between = Between(user=(NOBODY, NOBODY))
    said = failure(processes, tmp_path / "log", b"/bin/true", between=between, cwd=str(closed))
    assert said == f"the working directory {closed} cannot be entered: permission denied"
