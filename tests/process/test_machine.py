"""The few instructions of our own: they are what stands beside them, and leave nothing of us changed."""

from __future__ import annotations

import ctypes
import errno
import inspect
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from queuectl.process import machine as module
from queuectl.process.machine import Entry, Failed, Machine, Numbers, Script, address, numbers
from queuectl.process.steps import machine
from tests.e2e.processes import children
from tests.needs import require

ASSEMBLERS = {"x86_64": ("", ["-msyntax=intel", "-mnaked-reg"]), "aarch64": ("aarch64-linux-gnu-", [])}
LINE = re.compile(r'^\s+"([0-9a-f]+)"  # (.+)$', re.MULTILINE)
NO_NEW_CODE = 65, 1  # PR_SET_MDWE: memory that was written is never executed


@pytest.fixture
def known() -> Numbers:
    found = numbers()
    require("a list of system calls", found and machine(), "this machine has no such way")
    assert found is not None
    return found


@pytest.fixture
def made(known: Numbers) -> Machine:
    found = machine()
    assert found is not None
    return found


def exits(known: Numbers, code: int) -> Entry:
    return Entry(known.exit, (code,))


@pytest.mark.parametrize("kind", ASSEMBLERS)
def test_the_instructions_are_what_stands_beside_them(kind: str, tmp_path: Path) -> None:
    tools, options = ASSEMBLERS[kind]
    require(f"{tools}as", shutil.which(f"{tools}as"), "it says what the instructions are")
    source = inspect.getsource(module)
    listing = LINE.findall(source[source.index(f'"{kind}": (') :].partition("    ),")[0])
    (tmp_path / "list.s").write_text("".join(f"{words}\n" for _, words in listing))
    subprocess.run([f"{tools}as", *options, "list.s", "-o", "list.o"], cwd=tmp_path, check=True)
    subprocess.run([f"{tools}objcopy", "-O", "binary", "list.o", "list.bin"], cwd=tmp_path, check=True)
    assert (tmp_path / "list.bin").read_bytes().hex() == "".join(code for code, _ in listing)


def test_a_new_process_goes_through_its_list(made: Machine, known: Numbers, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    word = ctypes.create_string_buffer(b"/bin/pwd")
    words = (ctypes.c_char_p * 2)(word.value, None)
    entries = [
        Entry(known.chdir, (os.fsencode(tmp_path),)),
        Entry(known.dup3, (writer, 1, 0)),
        Entry(known.execve, (b"/bin/pwd", ctypes.addressof(words), 0)),
    ]
    pid = made.make(Script(known, entries))
    os.close(writer)
    assert os.waitpid(pid, 0) == (pid, 0)
    assert os.read(reader, 4096).decode().strip() == str(tmp_path.resolve())
    os.close(reader)


def test_what_fails_ends_it_and_is_told_with_its_place(made: Machine, known: Numbers) -> None:
    before = children(os.getpid())
    with pytest.raises(Failed) as failed:
        made.make(Script(known, [Entry(known.setsid, ()), Entry(known.chdir, (b"/no/such",)), exits(known, 0)]))
    assert (failed.value.at, failed.value.errno) == (1, errno.ENOENT)
    assert children(os.getpid()) == before


def test_one_list_serves_many_processes_that_differ_in_some_words(made: Machine, known: Numbers) -> None:
    script = Script(known, [Entry(known.chdir, (None,)), Entry(known.exit, (None,))])
    pids = [made.make(script, [address(b"/"), code]) for code in (3, 4, 5)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [3, 4, 5]
    with pytest.raises(Failed):
        made.make(script, [address(b"/no/such"), 6])
    pid = made.make(script, [address(b"/tmp"), 7])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7, "what one has noted is not in the way of the next"


def test_what_may_fail_does_not_end_it(made: Machine, known: Numbers) -> None:
    pid = made.make(Script(known, [Entry(known.chdir, (b"/no/such",), is_vital=False), exits(known, 7)]))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_nothing_of_us_is_changed(made: Machine, known: Numbers) -> None:
    def ours() -> object:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        limits = resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0)
        return blocked, limits, os.getcwd(), os.getsid(0), os.listdir("/proc/self/fd"), signal.getsignal(signal.SIGUSR2)

    before, limit = ours(), (33).to_bytes(8, "little") * 2
    entries = [
        Entry(known.setsid, ()),
        Entry(known.umask, (0o777,)),
        Entry(known.chdir, (b"/",)),
        Entry(known.setpriority, (os.PRIO_PROCESS, 0, 19)),
        Entry(known.sigaction, (signal.SIGUSR2, bytes(32), 0, 8)),
        Entry(known.sigprocmask, (signal.SIG_SETMASK, bytes(8), 0, 8)),
        Entry(known.prlimit, (0, resource.RLIMIT_NOFILE, limit, 0)),
        exits(known, 0),
    ]
    os.waitpid(made.make(Script(known, entries)), 0)
    assert ours() == before


def test_several_threads_make_processes_at_a_time(made: Machine, known: Numbers) -> None:
    codes: list[int] = []

    def work(code: int) -> None:
        pids = [made.make(Script(known, [exits(known, code)])) for _ in range(50)]
        codes.extend(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) - code for pid in pids)

    threads = [threading.Thread(target=work, args=(code,)) for code in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 150


def test_where_no_code_may_be_made_there_is_none(known: Numbers) -> None:
    libc = ctypes.CDLL(None)
    require("PR_GET_MDWE", libc.prctl(66, 0, 0, 0, 0) >= 0, "a kernel of 6.3 or newer can forbid new code")
    script = (
        "import ctypes, sys\n"
        f"assert not ctypes.CDLL(None).prctl{(*NO_NEW_CODE, 0, 0, 0)}\n"
        "from queuectl.process.steps import machine\n"
        "sys.exit(0 if machine() is None else 1)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
