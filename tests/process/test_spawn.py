"""What a new process is like, and why one cannot be started."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl.process import spawn as module
from queuectl.process.spawn import NO_SETUP, CannotSpawn, ChildSetup, Command, spawn, with_limits
from queuectl.process.system import system
from tests.e2e.processes import children, descriptors
from tests.needs import require
from tests.users import IS_ROOT, UNPRIVILEGED
from tests.wait import wait_until

PATH = b"/usr/bin:/bin"
NO_NEW_CODE = 65, 1  # PR_SET_MDWE: memory that was written is never executed
Run = Callable[..., str]


def inside_root() -> tuple[int, int]:
    root = os.stat("/")
    return root.st_dev, root.st_ino


def plain(_: pytest.MonkeyPatch) -> ChildSetup:
    return NO_SETUP


def limited(_: pytest.MonkeyPatch) -> ChildSetup:
    return ChildSetup({"file_size": 2**40})


def checked(_: pytest.MonkeyPatch) -> ChildSetup:
    return ChildSetup(inside=inside_root())


def forked(monkeypatch: pytest.MonkeyPatch) -> ChildSetup:
    """As for another user."""
    monkeypatch.setattr(
        module, "_popen", lambda command, **given: module._fork(command, tuple(given.values())[:3], is_remote=False)
    )
    return NO_SETUP


WAYS = pytest.mark.parametrize("way", [plain, limited, checked, forked])
Way = Callable[[pytest.MonkeyPatch], ChildSetup]


@pytest.fixture(autouse=True)
def _as_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")


def command(*argv: bytes, cwd: str = "/", path: bytes = PATH, **fields: Any) -> Command:
    return Command(argv, {b"PATH": path, b"A": b"b"}, os.fsencode(cwd), **fields)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a command to its end. Returns what it has printed, and its exit code if that is not 0."""

    def play(*argv: bytes, shell: str | None = None, is_shell: bool = True, **fields: Any) -> str:
        if shell is not None:
            argv = (b"/bin/sh", b"-c", shell.encode())
            fields["shell"] = argv[2] if is_shell else None
        with open("/dev/null", "rb") as null, open(tmp_path / "out", "w+b") as out:
            pid = spawn(command(*argv, **fields), stdin=null.fileno(), stdout=out.fileno(), stderr=out.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            out.seek(0)
            return out.read().decode("utf-8", "replace").strip() + (f"\nexit {code}" if code else "")

    before = {child.pid for child in children(os.getpid())}
    yield play
    assert {child.pid for child in children(os.getpid())} <= before


def problem(*argv: bytes, **fields: Any) -> str:
    system.remote_mount(lambda: [b"/"])  # which opens the list of mounts once
    before = children(os.getpid()), descriptors(os.getpid()), os.getcwd()
    with pytest.raises(CannotSpawn) as failed:
        spawn(command(*argv, **fields), stdin=0, stdout=1, stderr=2)
    assert (children(os.getpid()), descriptors(os.getpid()), os.getcwd()) == before
    return str(failed.value)


# ── the same for all ────────────────────────────────────────────────────────────────────────────────────────────────

LOOK = """grep -E '^(Sig(Blk|Ign)|ShdPnd|Umask|Uid|Gid|Groups|Threads)' /proc/self/status
cat | grep -c .; env | sort; pwd; ulimit -Sn -Hn; cut -d' ' -f5,6 /proc/$$/stat; echo $$ $PPID"""


@WAYS
def test_the_process_does_not_depend_on_how_it_is_started(
    run: Run, way: Way, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    *expected, numbers, pids = run(shell=LOOK).splitlines()
    *found, its_numbers, its_pids = run(shell=LOOK, setup=way(monkeypatch)).splitlines()
    assert found == expected
    for group, pid in ((numbers, pids), (its_numbers, its_pids)):
        assert group.split() == [pid.split()[0]] * 2, "the leader of its own group and session"
    assert its_pids.split()[1] == str(os.getpid())


@WAYS
@pytest.mark.parametrize("program", [b"nothing-like-it", b"/no/such", b"/etc/passwd", b"/", b"x" * 5000, b"a\0b"])
def test_the_reason_does_not_depend_on_how_it_was_to_be_started(
    way: Way, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = b"/no/where:/etc/passwd:/bin"
    expected = problem(program, path=path)
    assert problem(program, path=path, setup=way(monkeypatch)) == expected


@WAYS
@pytest.mark.parametrize("cwd, why", [("/no/such", "no such file"), ("/bin/sh", "not a dir"), ("/\0", "null ")])
def test_a_directory_that_cannot_be_entered_is_distinguished_from_a_missing_program(
    way: Way, cwd: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = problem(b"/bin/true", cwd=cwd, setup=way(monkeypatch))
    assert found.startswith("the working directory ")
    assert " cannot be entered: " in found
    assert why in found


@WAYS
def test_a_program_is_looked_up_on_the_path_of_the_job(
    run: Run, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, mode in ((first, 0o644), (second, 0o755)):
        folder.mkdir()
        (folder / "tool").write_text("#!/bin/sh\nexit 7\n")
        (folder / "tool").chmod(mode)
    setup = way(monkeypatch)
    path = os.fsencode(f"/no/such:{first}/tool:{first}:{second}")
    assert run(b"tool", path=path, setup=setup).strip() == "exit 7", "the first one that may be executed"
    assert problem(b"tool", path=os.fsencode(first), setup=setup) == "not executable: tool"
    assert problem(b"tool", path=b"/no/such", setup=setup) == "no such program: tool"


@WAYS
def test_a_relative_program_is_looked_up_in_the_working_directory(
    run: Run, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho $0\n")
    (tmp_path / "tool").chmod(0o755)
    setup = way(monkeypatch)
    if setup.inside is not None:
        found = tmp_path.stat()
        setup = setup._replace(inside=(found.st_dev, found.st_ino))
    assert run(b"./tool", cwd=str(tmp_path), setup=setup) == "./tool"


def test_a_program_can_have_another_name_than_its_file(run: Run) -> None:
    assert run(b"another name", b"-c", b"echo $0", program=b"/bin/sh") == "another name"


def test_a_directory_that_was_replaced_is_not_entered(tmp_path: Path) -> None:
    found = problem(b"/bin/true", cwd=str(tmp_path), setup=ChildSetup(inside=inside_root()))
    assert found == f"the working directory {tmp_path} was replaced while it was checked"


def test_a_missing_interpreter_is_distinguished_from_a_missing_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert problem(os.fsencode(script)) == f"{script}: its interpreter is missing (see its first line)"


def test_arguments_that_are_too_long_for_the_system_are_a_reason(run: Run) -> None:
    assert problem(b"/bin/true", b"x" * (1 << 17)) == "the command and its environment are too long for this system"


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_a_system_without_room_for_a_process_is_a_reason(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(subprocess, "Popen", fail)
    assert problem(b"/bin/true") == f"the system has no room for another process: {os.strerror(code).lower()}"


# ── limits, nice value, umask ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_shell", [True, False], ids=["in its shell", "in another shell"])
@pytest.mark.parametrize("is_forked", [False, True], ids=["subprocess", "fork"])
@pytest.mark.parametrize(
    "name, limit, option",
    [
        ("open_files", 33, "n"),
        ("cpu_time", 7, "t"),
        ("memory", 512 * 2**20, "v"),
        ("file_size", 1024 * 512, "f"),
        ("processes", 4000, "p"),
    ],
)
def test_a_limit_is_set_from_the_start_and_cannot_be_raised(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, option: str, is_shell: bool, is_forked: bool
) -> None:
    if is_forked:
        forked(monkeypatch)
    unit = {"v": 1024, "f": 512}.get(option, 1)
    found = run(shell=f"ulimit -S{option}; ulimit -H{option}", is_shell=is_shell, setup=ChildSetup({name: limit}))
    # The soft limit of the CPU time is reported by its own signal, a second before the hard one.
    assert found.split() == [str(limit // unit), str(limit // unit + (option == "t"))]


def test_a_limit_above_our_own_becomes_ours(run: Run) -> None:
    _, ours = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert run(shell="ulimit -Hn", setup=ChildSetup({"open_files": 2**40})) == str(ours)


def test_a_limit_of_memory_does_not_prevent_the_others(run: Run) -> None:
    limits = {"memory": 2**30, "open_files": 33, "cpu_time": 9, "file_size": 2**20}
    setup = with_limits(NO_SETUP, limits)
    assert list(setup.limits)[-1] == "memory"
    assert run(shell="ulimit -Hn; ulimit -Ht; ulimit -Hf; ulimit -Hv", setup=setup).split() == [
        "33",
        "10",
        "2048",
        "1048576",
    ]


def test_less_memory_than_any_program_needs_ends_only_the_program(run: Run) -> None:
    assert "exit" in run(b"/bin/true", setup=ChildSetup({"memory": 4096}))
    assert run(b"/bin/true") == ""


def test_a_command_as_long_as_allowed_runs_with_limits(run: Run) -> None:
    assert run(shell="ulimit -n #" + "x" * (131_071 - 11), setup=ChildSetup({"open_files": 33})) == "33"


@pytest.mark.parametrize("text", ["# comment", "exit 3", "echo a; echo b)"])
def test_the_shell_reads_a_command_with_limits_as_without(run: Run, text: str) -> None:
    assert run(shell=text, setup=ChildSetup({"open_files": 33})) == run(shell=text)


@pytest.mark.parametrize("is_shell", [True, False])
@pytest.mark.parametrize("is_forked", [False, True])
def test_a_nice_value_is_added_to_ours(
    run: Run, monkeypatch: pytest.MonkeyPatch, is_shell: bool, is_forked: bool
) -> None:
    if is_forked:
        forked(monkeypatch)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    found = run(shell="cut -d' ' -f19 /proc/self/stat", is_shell=is_shell, setup=with_limits(NO_SETUP, {"nice": 3}))
    assert found == str(min(19, ours + 3))
    assert run(shell="cut -d' ' -f19 /proc/self/stat") == str(ours)


@pytest.mark.parametrize("is_forked", [False, True])
def test_a_umask_is_set_from_the_start(run: Run, monkeypatch: pytest.MonkeyPatch, is_forked: bool) -> None:
    if is_forked:
        forked(monkeypatch)
    assert run(shell="umask", setup=ChildSetup(umask=0o27)) == "0027"


# ── another user ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def _as_root() -> None:
    require("root", IS_ROOT, "only root can change its user")


OTHER_USER = ChildSetup(user=(UNPRIVILEGED, UNPRIVILEGED), groups=(UNPRIVILEGED, 7), umask=0o27)


@pytest.mark.usefixtures("_as_root")
def test_another_user_has_its_groups_and_no_capabilities(run: Run) -> None:
    found = run(shell="grep -E '^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb))' /proc/self/status; umask", setup=OTHER_USER)
    ids = [str(UNPRIVILEGED)] * 4
    assert found.split()[:10] == ["Uid:", *ids, "Gid:", *ids]
    assert found.split()[10:13] == ["Groups:", "7", str(UNPRIVILEGED)]
    assert set(found.split()[14:-1:2]) == {"0" * 16}
    assert found.split()[-1] == "0027"


@pytest.mark.usefixtures("_as_root")
def test_a_directory_that_the_other_user_may_not_enter_is_a_reason(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    found = problem(b"/bin/true", cwd=str(closed), setup=ChildSetup(user=(UNPRIVILEGED, UNPRIVILEGED)))
    assert found == f"the working directory {closed} cannot be entered: permission denied"


@pytest.mark.usefixtures("_as_root")
def test_another_user_has_its_own_session_keyring() -> None:
    require("x86_64", os.uname().machine == "x86_64", "the number of keyctl")

    def keyring() -> int:
        return int(ctypes.CDLL(None).syscall(250, 0, -3, 0))

    ours = keyring()
    require("keyrings", ours > 0, "this kernel or container has none")
    answer, report = os.pipe()
    if not (pid := os.fork()):
        module._take_rights((UNPRIVILEGED, UNPRIVILEGED), ())
        os.write(report, str(keyring()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert int(os.read(answer, 100)) not in (ours, -1)
    os.close(answer)
    os.close(report)


MDWE = f"""
import ctypes, os, sys
if ctypes.CDLL(None).prctl({NO_NEW_CODE[0]}, {NO_NEW_CODE[1]}, 0, 0, 0):
    sys.exit(77)
from queuectl.process.spawn import ChildSetup, Command, spawn
for setup in (ChildSetup(), ChildSetup({{"open_files": 33}}), ChildSetup(user=(os.getuid() or {UNPRIVILEGED}, os.getgid()))):
    if setup.user and os.getuid():
        continue
    pid = spawn(Command([b"/bin/true"], {{}}, b"/", setup=setup), stdin=0, stdout=1, stderr=2)
    assert os.waitpid(pid, 0)[1] == 0, setup
"""


def test_no_way_to_start_needs_memory_that_is_written_and_executed() -> None:
    done = subprocess.run([sys.executable, "-c", MDWE], capture_output=True, text=True)
    require("PR_SET_MDWE", done.returncode != 77, "Linux 6.3 has it")
    assert (done.returncode, done.stderr) == (0, "")


# ── signals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

IGNORING = """
import os, signal
from queuectl.process.spawn import Command, spawn, start_programs_with_default_signals
start_programs_with_default_signals()
pid = spawn(Command([b"/bin/cat", b"/proc/self/status"], {}, b"/"), stdin=0, stdout=1, stderr=2)
os.waitpid(pid, 0)
os.kill(os.getpid(), signal.SIGHUP)
"""


def test_signals_that_were_ignored_from_the_start_are_not_ignored_by_jobs() -> None:
    ignore = f"trap '' HUP INT QUIT USR1; exec {sys.executable} -c \"$0\""
    done = subprocess.run(["/bin/sh", "-c", ignore, IGNORING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = dict(line.split(":", 1) for line in done.stdout.splitlines())
    assert [int(found[name], 16) for name in ("SigBlk", "SigIgn")] == [0, 0]


def test_a_process_that_its_user_stops_before_it_is_the_program_is_continued(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    become = module._become

    def stop_first(*given: Any) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        become(*given)

    forked(monkeypatch)
    monkeypatch.setattr(module, "_become", stop_first)
    assert run(shell="echo here") == "here"


def test_a_process_that_does_not_become_its_program_for_long_counts_as_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wait(*_: Any) -> None:
        signal.pause()

    forked(monkeypatch)
    monkeypatch.setattr(module, "_become", wait)
    monkeypatch.setattr(module, "_MAX_CONTINUES", 1)
    pid = spawn(command(b"/bin/true"), stdin=0, stdout=1, stderr=2)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0], what="it to end")
