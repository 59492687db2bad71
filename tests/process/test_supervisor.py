"""The supervisor: what it starts, collects and reports, and that it outlives its worker."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import queuectl.process.supervisor
from queuectl.clock import SystemClock
from queuectl.filelock import is_held
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process import tree
from queuectl.process.adopted import AdoptedRuns, UnknownExit
from queuectl.process.cgroups import CgroupPool
from queuectl.process.client import SupervisorClient
from queuectl.process.ipc import Channel
from queuectl.process.journal import (
    LOST,
    Journal,
    Record,
    Termination,
    append_closed,
    append_terminations,
    read_journal,
)
from queuectl.process.model import Child, ProcessInfo
from queuectl.process.spawn import CannotSpawn, StartExpired, StartWithdrawn
from queuectl.process.supervisor import MAX_STARTS_PER_TURN, Supervisor
from queuectl.process.system import IS_PORTABLE
from tests.e2e.processes import descriptors
from tests.process.supervised import (
    LIMIT,
    answers,
    exit_of,
    journal,
    open_client,
    printed,
    record,
    request,
    shell,
    start,
    start_all,
    supervisor,
    wait_until_gone,
)
from tests.wait import wait_until


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SupervisorClient]:
    with open_client(tmp_path) as made:
        yield made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "job.log"


def until(go: Path) -> str:
    return f"until [ -e '{go}' ]; do /bin/sleep 0.02; done"


def status(pid: int) -> dict[str, str]:
    lines = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: value.strip() for name, value in lines}


# ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_child_is_identified_by_its_pid_and_start_time(client: SupervisorClient, log: Path) -> None:
    for _ in range(30):  # some of them while the clock ticks
        child = start(client, shell("exec sleep 1000"), log)
        assert child.started == tree.started(child.pid)
        client.kill_group(child)
        record(client, child)


def test_requests_are_answered_in_their_order_also_if_some_cannot_be_started(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    folders = [tmp_path / f"{number}" for number in range(12)]
    requests = []
    for number, folder in enumerate(folders):
        folder.mkdir()
        argv = [b"/no/such"] if number % 5 == 2 else shell("pwd -P >> where; exec sleep 1000")
        requests.append(request(argv, f"{log}{number}", cwd=str(folder), place=number))
    found = start_all(client, *requests)
    entries = journal(tmp_path)
    for number, (child, folder) in enumerate(zip(found, folders, strict=True)):
        if number % 5 == 2:
            assert str(child) == "no such program: /no/such"
            assert f"token-{number}" not in entries.runs
        else:
            assert isinstance(child, Child)
            assert entries.runs[f"token-{number}"] == Record(*child)
            where = folder / "where"
            wait_until(lambda where=where: where.exists() and where.read_text(), what="the directory")  # type: ignore[misc]
            assert where.read_text().strip() == str(folder.resolve())
            client.kill_group(child)
            record(client, child)


def test_a_job_has_default_dispositions_no_other_descriptors_and_its_own_session(
    client: SupervisorClient, log: Path
) -> None:
    child = start(
        client,
        shell(
            "cat /proc/self/status; echo Input: $(cat | wc -c); printf 'Files: '; ls -x /proc/$$/fd; echo Done:; exec sleep 1000"
        ),
        log,
    )
    wait_until(lambda: log.exists() and b"Done:" in printed(log), what="the output")
    found = dict(line.split(":", 1) for line in printed(log).decode().splitlines())
    masks = [int(found[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt")]
    assert masks == [0, 0, 0]
    assert (found["Input"].strip(), found["Files"].split()) == ("0", ["0", "1", "2"])
    process = tree.find(child.pid)
    assert process is not None
    assert (process.group, process.session) == (child.pid, child.pid)
    client.kill_group(child)
    record(client, child)


def test_a_job_has_the_environment_of_its_request_and_nothing_else(client: SupervisorClient, log: Path) -> None:
    ours = {b"A": b"b", b"E": b"shared"}  # the first environment is that of most runs
    own = ({b"X": b"y=\xfe"}, {b"E": b"own", b"Y": b"1"}, {b"Y": b"1"}, {b"Y": b"2"})
    for place, (base, env) in enumerate([*((ours, env) for env in own), ({b"C": b"\xff"}, own[0]), (ours, {})]):
        child = start(client, [b"/usr/bin/env"], log, base=base, env=env, place=place)
        exit_of(client, child)
        expected = {b"%b=%b" % pair for pair in {**base, **env, b"QUEUECTL_SLOT": b"0"}.items()}
        assert set(printed(log).splitlines()) == expected
        log.unlink()
        record(client, child)


def test_a_job_has_the_umask_of_its_worker(tmp_path: Path, log: Path) -> None:
    before = os.umask(0o026)
    try:
        with open_client(tmp_path) as client:
            exit_of(client, start(client, shell("umask"), log))
    finally:
        os.umask(before)
    assert printed(log) == b"0026\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_starting_leaves_no_descriptor_in_the_worker(client: SupervisorClient, log: Path) -> None:
    record(client, start(client, [b"/bin/true"], log))
    before = descriptors(os.getpid())
    theirs = descriptors(supervisor(log.parent).pid)
    for argv, cwd in (([b"/no/such"], "/"), ([b"/bin/true"], "/no/such"), ([b"/bin/true\0"], "/"), ([b"x"], "/\0")):
        with pytest.raises(CannotSpawn):
            start(client, argv, log, cwd=cwd)
    record(client, start(client, [b"/bin/true"], log))
    assert descriptors(os.getpid()) == before
    wait_until(
        lambda: descriptors(supervisor(log.parent).pid) == theirs, what="the supervisor to close its descriptors"
    )


# ── output and exits ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command, how", [("exit 3", Exited(3)), ("kill -9 $$", Signalled(9)), (":", Exited(0))])
def test_the_exit_of_a_run_is_reported_until_it_is_recorded(
    client: SupervisorClient, log: Path, command: str, how: Exited | Signalled
) -> None:
    child = start(client, shell(command), log)
    found = exit_of(client, child)
    assert (found.how, found.reason, client.poll(child)) == (how, None, found)
    assert found.duration is not None
    record(client, child)
    assert client.poll(child) is None


def test_a_run_that_prints_nothing_has_no_log(client: SupervisorClient, log: Path) -> None:
    found = exit_of(client, start(client, [b"/bin/true"], log))
    assert (found.log_from, found.log_to) == (None, None)
    assert not log.exists()
    assert not client.output()


def test_all_output_is_in_the_log_when_the_exit_is_reported(client: SupervisorClient, log: Path) -> None:
    for number in range(30):
        child = start(client, shell(f"echo out {number}; echo err {number} >&2"), log)
        assert exit_of(client, child).how == Exited(0)
        assert printed(log).decode().endswith(f"out {number}\nerr {number}\n")
        record(client, child)


def test_the_markers_of_a_run_are_written_when_its_exit_is_reported(client: SupervisorClient, log: Path) -> None:
    for command, how in (("echo said", b"rc=0"), ("printf open; exit 3", b"rc=3"), ("echo; kill -9 $$", b"signal=9")):
        log.unlink(missing_ok=True)
        child = start(client, shell(command), log, run=1)
        found = exit_of(client, child)
        data = log.read_bytes()
        last = data.splitlines()[-1]
        assert data.startswith(b"--- START ")
        assert last.startswith(b"--- END ")
        assert how in last
        assert b" duration=" in last
        assert found.log_from is not None
        assert found.log_to is not None
        record(client, child)


def test_the_beginning_of_the_output_is_reported_while_the_run_continues(client: SupervisorClient, log: Path) -> None:
    child = start(client, shell("echo said; exec sleep 1000"), log)
    wait_until(lambda: client.started() or "token-0" in client._output, what="the output")
    log_from = client.output()["token-0"]
    client.terminating({child: "cancel"})
    client.kill_group(child)
    wait_until(lambda: client.started() or client.has_exited(child), what="the process to end")
    client.finish(child)
    assert exit_of(client, child).log_from == log_from


def test_a_job_that_prints_more_than_a_pipe_holds_continues_and_keeps_its_log_within_the_limit(
    client: SupervisorClient, log: Path
) -> None:
    child = start(client, shell("seq 300000; echo last"), log)
    assert exit_of(client, child).how == Exited(0)
    used = sum(path.stat().st_size for path in log.parent.glob("job.log*"))
    assert used <= LIMIT + LIMIT // 16
    assert printed(log).endswith(b"300000\nlast\n")


def test_a_job_without_stdout_ends_as_any_other(client: SupervisorClient, log: Path) -> None:
    assert exit_of(client, start(client, shell("exec >&- 2>&-; exit 3"), log)).how == Exited(3)


@pytest.mark.parametrize("replacement", ["missing", "directory", "fifo"])
def test_a_log_that_cannot_be_written_costs_only_its_output(
    client: SupervisorClient, log: Path, tmp_path: Path, replacement: str
) -> None:
    go = tmp_path / "go"
    child = start(client, shell(f"echo before; {until(go)}; echo said; exit 4"), log)
    wait_until(lambda: log.exists() and printed(log), what="the log")
    log.unlink()
    if replacement == "directory":
        log.mkdir()
    elif replacement == "fifo":  # opening it would block
        os.mkfifo(log)
    go.touch()
    assert exit_of(client, child).how == Exited(4)
    assert exit_of(client, start(client, [b"/bin/true"], tmp_path / "other.log", place=1)).how == Exited(0)


def test_a_child_left_behind_holds_up_neither_the_exit_nor_the_worker(tmp_path: Path, log: Path) -> None:
    go = tmp_path / "go"
    with open_client(tmp_path) as client:
        record(client, start(client, shell(f"({until(go)}; echo late) & echo first"), log))
        its = supervisor(tmp_path)
    assert tree.is_running(its), "it collects what is still printed"
    go.touch()
    wait_until_gone(its)
    assert printed(log) == b"first\nlate\n"


def test_secrets_are_redacted_also_when_they_are_printed_in_two_parts(client: SupervisorClient, log: Path) -> None:
    child = start(client, shell("printf 'pw=hun'; sleep 0.1; echo 'ter2-x.'"), log, secrets=[("db", b"hunter2-x")])
    exit_of(client, child)
    assert printed(log) == b"pw=***.\n"


def test_more_jobs_run_at_a_time_than_the_soft_limit_of_descriptors_allows(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 40  # this process needs some itself
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        with open_client(tmp_path) as client:
            go = tmp_path / "go"
            requests = [
                request(shell(f"{until(go)}; echo $0"), tmp_path / f"{place}.log", place=place) for place in range(few)
            ]
            children = start_all(client, *requests)
            go.touch()
            for child in children:
                assert isinstance(child, Child)
                assert exit_of(client, child).how == Exited(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(printed(tmp_path / f"{place}.log") == b"/bin/sh\n" for place in range(few))


def test_without_a_free_descriptor_the_job_cannot_be_started_and_the_supervisor_continues(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    exit_of(client, start(client, [b"/bin/true"], log))
    pid = supervisor(tmp_path).pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(descriptors(pid)), before[1]))
    with pytest.raises(CannotSpawn, match="the system has no room for another process: too many open files"):
        start(client, [b"/bin/true"], log, place=1)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert exit_of(client, start(client, [b"/bin/true"], log, place=2)).how == Exited(0)


# ── terminating ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_pid_of_a_run_that_is_terminated_is_kept_until_finish(client: SupervisorClient, log: Path) -> None:
    child = start(client, shell("echo said; exec sleep 1000"), log)
    wait_until(lambda: log.exists() and printed(log), what="the output")
    client.terminating({child: "timeout"})
    client.kill_group(child)
    wait_until(lambda: client.started() or client.has_exited(child), what="the process to end")
    assert client.poll(child) is None
    found = tree.find(child.pid)
    assert found is not None
    assert (found.started, found.is_zombie) == (child.started, True)
    client.finish(child)
    assert (exit_of(client, child).how, exit_of(client, child).reason) == (Signalled(9), "timeout")
    assert tree.find(child.pid) is None
    assert b"--- END " in log.read_bytes()
    assert b" timeout " in log.read_bytes().splitlines()[-1]


def test_a_run_that_has_just_ended_by_itself_when_it_is_to_be_terminated_keeps_its_own_exit(
    client: SupervisorClient, log: Path
) -> None:
    child = start(client, shell("exit 5"), log)
    exit_of(client, child)
    client.terminating({child: "cancel"})
    client.finish(child)
    found = exit_of(client, child)
    assert (found.how, found.reason) == (Exited(5), None)


def test_the_reason_is_known_before_the_exit_is_seen(client: SupervisorClient, log: Path, tmp_path: Path) -> None:
    child = start(client, shell("exec sleep 1000"), log)
    pid = supervisor(tmp_path).pid
    os.kill(pid, signal.SIGSTOP)  # so that both have come when it looks
    client.terminating({child: "cancel"})
    os.kill(child.pid, signal.SIGTERM)
    wait_until_gone(child)
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: client.started() or client.has_exited(child), what="the process to end")
    client.finish(child)
    assert (exit_of(client, child).how, exit_of(client, child).reason) == (Signalled(15), "cancel")


def test_finish_before_the_first_process_has_ended_reports_its_exit_later(client: SupervisorClient, log: Path) -> None:
    child = start(client, shell("exec sleep 1000"), log)
    client.terminating({child: "release"})
    client.finish(child)
    client.kill_group(child)
    assert exit_of(client, child).how == Signalled(9)


# ── signals and faults ──────────────────────────────────────────────────────────────────────────────────────────────


def test_signals_to_the_whole_service_do_not_end_the_supervisor(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    exit_of(client, start(client, [b"/bin/true"], log))
    pid = supervisor(tmp_path).pid
    deadly = {
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGFPE,
        signal.SIGABRT,
        signal.SIGTRAP,
    }
    for number in signal.valid_signals() - deadly:
        os.kill(pid, number)
    assert exit_of(client, start(client, [b"/bin/true"], log, place=1)).how == Exited(0)


def test_a_supervisor_that_is_stopped_never_blocks_its_worker(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    exit_of(client, start(client, [b"/bin/true"], log))
    pid = supervisor(tmp_path).pid
    os.kill(pid, signal.SIGSTOP)
    # More than a socket holds.
    client.start(
        [request([b"/bin/true"], log, place=place, env={b"A": b"%d" % place * 50_000}) for place in range(1, 41)]
    )
    client.ping()
    assert client.poll_again_in() is not None, "the rest is sent later"
    assert not client.started()
    wait_until(lambda: client.silent_for() > 0.2, what="the silence to be noticed")
    os.kill(pid, signal.SIGCONT)
    found = []
    wait_until(lambda: found.extend(client.started()) or len(found) == 40, what="all answers")
    wait_until(lambda: client.started() or client.silent_for() == 0.0, what="the answer to the ping")


def test_a_run_is_not_started_once_its_claim_may_belong_to_another_worker(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    now = SystemClock().monotonic()
    late, fine = start_all(
        client,
        request(shell("echo ran"), log, start_by=now),
        request([b"/bin/true"], log, place=1, start_by=now + 1000),
    )
    assert isinstance(late, StartExpired)
    assert isinstance(fine, Child)
    assert exit_of(client, fine).how == Exited(0)
    assert "token-0" not in journal(tmp_path).runs
    assert not log.exists()


def test_a_dead_supervisor_is_noticed_and_replaced(client: SupervisorClient, log: Path, tmp_path: Path) -> None:
    child = start(client, shell("exec sleep 1000"), log)
    os.kill(supervisor(tmp_path).pid, signal.SIGKILL)
    wait_until(lambda: client.started() or not client.has_supervisor, what="its death to be noticed")
    assert client.silent_for() == 0.0
    wait_until(client.reopen, what="the next supervisor")
    assert not client.has_exited(child)
    client.kill_group(child)
    wait_until(lambda: client.has_exited(child), what="the run to end")
    client.recorded(child)
    assert exit_of(client, start(client, shell("seq 300000"), log, place=1)).how == Exited(0)
    assert sum(path.stat().st_size for path in tmp_path.glob("job.log*")) <= LIMIT + LIMIT // 16, (
        "the limit is sent again"
    )


def test_a_run_keeps_its_reason_if_the_supervisor_may_not_have_known_it(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    child = start(client, shell("exec sleep 1000"), log)
    pid = supervisor(tmp_path).pid
    os.kill(pid, signal.SIGSTOP)
    client.start(
        [request([b"/bin/true"], log, place=1, env={b"LARGE": b"x" * 100_000})] * 20
    )  # more than a socket holds
    client.terminating({child: "timeout"})
    client.kill_group(child)
    wait_until_gone(child)
    os.kill(pid, signal.SIGCONT)

    def ended() -> bool:
        client.started()
        client.finish(child)
        return client.poll(child) is not None

    wait_until(ended, what="the run to end")
    assert exit_of(client, child).reason == "timeout"


def test_a_silent_supervisor_is_killed_and_replaced(client: SupervisorClient, log: Path, tmp_path: Path) -> None:
    exit_of(client, start(client, [b"/bin/true"], log))
    first = supervisor(tmp_path)
    os.kill(first.pid, signal.SIGSTOP)
    client.start([request([b"/bin/true"], log, place=1)])
    client.kill_supervisor()
    assert not client.has_supervisor
    wait_until(client.reopen, what="the next supervisor")
    assert exit_of(client, start(client, [b"/bin/true"], log, place=2)).how == Exited(0)
    assert supervisor(tmp_path) != first


def test_exits_that_were_reported_before_the_supervisor_died_are_kept(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    child = start(client, shell("exit 5"), log)
    wait_until(lambda: journal(tmp_path).runs["token-0"].exit, what="the exit to be in the journal")
    os.kill(supervisor(tmp_path).pid, signal.SIGKILL)
    wait_until(lambda: client.started() or not client.has_supervisor, what="its death to be noticed")
    assert exit_of(client, child).how == Exited(5)


def test_the_intent_to_start_is_in_the_journal_before_the_process_exists(
    client: SupervisorClient, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "other-runs", []
    writer = Journal(str(path))

    def look(*_: object, **__: object) -> int:
        seen.append(read_journal(str(path)).runs)
        raise CannotSpawn("not now")

    monkeypatch.setattr(queuectl.process.supervisor, "spawn", look)
    ours, its = socket.socketpair()
    wakeups, wakeup = os.pipe()
    made = Supervisor(Channel(its), writer, CgroupPool(tree.identity_of(os.getpid())), wakeups)
    client._base = {}  # another one
    made._start(client._encoded(request([b"/bin/true"], log)), 0)
    assert seen == [{"token-0": Record(0, 0)}]
    assert read_journal(str(path)).runs == {}, "it was not started"
    os.close(wakeup)
    made._channel.close()
    ours.close()
    writer.close()


# ── after the end of the worker ─────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def adopting() -> Iterator[AdoptedRuns]:
    runs = AdoptedRuns()
    yield runs
    runs.close()


@pytest.mark.parametrize("command, how", [("exit 3", Exited(3)), ("kill -9 $$", Signalled(9))])
def test_a_supervisor_outlives_its_worker_and_writes_how_its_runs_end(
    tmp_path: Path, log: Path, command: str, how: Exited | Signalled
) -> None:
    go = tmp_path / "go"
    with open_client(tmp_path) as client:
        child = start(client, shell(f"{until(go)}; {command}"), log)
        assert is_held(str(tmp_path / "lock"))
    # Nothing waits for the end of the job to see that the worker is gone.
    wait_until(lambda: not is_held(str(tmp_path / "lock")), what="the lock to be released")
    with adopting() as runs:
        assert runs.adopt(child, "token-0", str(tmp_path / "runs")) >= 0
        assert runs.poll(child) is None
        assert runs.needs_polling is IS_PORTABLE
        go.touch()
        if not IS_PORTABLE:
            wait_until(lambda: select.select([runs], [], [], 0)[0], what="the descriptor to be readable")
        assert wait_until(lambda: runs.poll(child), what="the end to be written") == how
        assert runs.duration(child) is not None
    wait_until_gone(supervisor(tmp_path))


def test_a_supervisor_without_its_worker_uses_no_processor_time_while_runs_continue(tmp_path: Path, log: Path) -> None:
    with open_client(tmp_path) as client:
        start(client, [b"/bin/true"], log)
        child = start(client, shell("exec sleep 1000"), log, place=1)
    its = supervisor(tmp_path)
    wait_until(lambda: journal(tmp_path).runs["token-0"].exit, what="the end of the first")
    wait_until(lambda: status(its.pid)["State"].startswith("S"), what="it to sleep")
    before = status(its.pid)["voluntary_ctxt_switches"], status(its.pid)["nonvoluntary_ctxt_switches"]
    with pytest.raises(AssertionError):  # it does not wake up
        wait_until(
            lambda: (
                (status(its.pid)["voluntary_ctxt_switches"], status(its.pid)["nonvoluntary_ctxt_switches"]) != before
            ),
            timeout=0.5,
        )
    tree.kill_groups({"": child})
    wait_until_gone(its)


def test_the_end_of_a_run_is_in_log_and_journal_if_its_worker_dies_before_it_is_recorded(
    tmp_path: Path, log: Path
) -> None:
    with open_client(tmp_path) as client:
        exit_of(client, start(client, shell("echo said; exit 5"), log))
    ended = wait_until(lambda: journal(tmp_path).runs["token-0"].exit, what="the end to be in the journal")
    assert ended.how == Exited(5)
    assert ended.log_from is not None
    assert ended.log_to is not None
    assert log.read_bytes().count(b"--- END") == 1


def test_an_exit_that_is_not_recorded_for_a_while_is_in_the_journal(
    client: SupervisorClient, log: Path, tmp_path: Path
) -> None:
    exit_of(client, start(client, shell("exit 5"), log))  # the worker may be stopped from here on
    ended = wait_until(lambda: journal(tmp_path).runs["token-0"].exit, what="the end to be in the journal")
    assert ended.how == Exited(5)


def test_of_a_run_whose_supervisor_is_dead_the_exit_is_unknown(tmp_path: Path, log: Path) -> None:
    with open_client(tmp_path) as client:
        child = start(client, shell("exec sleep 1000"), log)
        os.kill(supervisor(tmp_path).pid, signal.SIGKILL)
        wait_until_gone(supervisor(tmp_path))
    with adopting() as runs:
        runs.adopt(child, "token-0", str(tmp_path / "runs"))
        assert runs.poll(child) is None
        os.kill(child.pid, signal.SIGKILL)
        assert isinstance(wait_until(lambda: runs.poll(child), what="the process to end"), UnknownExit)


def test_a_supervisor_without_runs_exits_with_its_worker(tmp_path: Path, log: Path) -> None:
    with open_client(tmp_path) as client:
        record(client, start(client, [b"/bin/true"], log))
        its = supervisor(tmp_path)
    assert not tree.is_running(its)
    assert not client.left


def test_runs_that_another_worker_terminates_end_with_its_reason_and_without_a_second_end_marker(
    tmp_path: Path, log: Path
) -> None:
    path = str(tmp_path / "runs")
    with open_client(tmp_path) as client:
        child = start(client, shell("echo said; exec sleep 1000"), log)
        wait_until(lambda: log.exists() and printed(log), what="the output")
        append_terminations(path, ["token-0"], Termination(LOST, 1), create=False)
        append_closed(path, ["token-0"])
        os.kill(child.pid, signal.SIGKILL)
        assert exit_of(client, child).reason == LOST
    assert b"--- END" not in log.read_bytes()


# ── runs that wait for a slot ───────────────────────────────────────────────────────────────────────────────────────


def waiting(client: SupervisorClient, folder: Path, count: int) -> list[Path]:
    """Request this many runs that end when their file appears. Returns the files."""
    files = [folder / f"go-{place}" for place in range(count)]
    commands = [f"echo $QUEUECTL_SLOT; while [ ! -e {file} ]; do sleep 0.01; done" for file in files]
    client.start([request(shell(it), folder / f"{place}.log", place=place) for place, it in enumerate(commands)])
    return files


def test_a_run_starts_as_soon_as_another_ends_and_in_the_order_of_the_requests(
    client: SupervisorClient, tmp_path: Path
) -> None:
    client.limit_runs(2)
    files = waiting(client, tmp_path, 4)
    assert [answer.token for answer in answers(client, 2)] == ["token-0", "token-1"]
    assert not client.started()
    files[1].touch()
    assert [answer.token for answer in answers(client, 1)] == ["token-2"]
    for file in files:
        file.touch()
    (last,) = answers(client, 1)
    assert last.token == "token-3"
    assert isinstance(last.child, Child)
    exit_of(client, last.child)
    slots = [printed(tmp_path / f"{place}.log").strip() for place in range(4)]
    assert slots[:3] == [b"0", b"1", b"1"], "the lowest that is free"
    assert slots[3] in (b"0", b"1")


def test_a_greater_capacity_starts_runs_that_wait(client: SupervisorClient, tmp_path: Path) -> None:
    client.limit_runs(0)
    files = waiting(client, tmp_path, 2)
    client.ping()
    wait_until(lambda: client.started() or not client.silent_for(), what="an answer")
    client.limit_runs(2)
    found = answers(client, 2)
    for file, answer in zip(files, found, strict=True):
        file.touch()
        assert isinstance(answer.child, Child)
        exit_of(client, answer.child)


def test_output_is_collected_before_the_end_of_a_run_while_others_wait(
    client: SupervisorClient, tmp_path: Path
) -> None:
    client.limit_runs(1)
    log, go = tmp_path / "0.log", tmp_path / "go"
    talking = request(shell(f"echo hello; {until(go)}"), log, place=0, token="token-0")
    client.start([talking, request([b"/bin/true"], tmp_path / "1.log", place=1, token="token-1")])
    (first,) = answers(client, 1)
    wait_until(lambda: log.exists() and printed(log) == b"hello\n", what="its output")
    go.touch()
    (second,) = answers(client, 1)
    for answer in (first, second):
        assert isinstance(answer.child, Child)
        exit_of(client, answer.child)


def test_a_run_with_a_fixed_slot_does_not_wait(client: SupervisorClient, tmp_path: Path) -> None:
    client.limit_runs(0)
    log = tmp_path / "log"
    exit_of(client, start(client, shell("echo $QUEUECTL_SLOT"), log, slot=1 << 20))
    assert printed(log) == b"1048576\n"


def test_what_is_withdrawn_does_not_start(client: SupervisorClient, tmp_path: Path) -> None:
    client.limit_runs(1)
    files = waiting(client, tmp_path, 3)
    (first,) = answers(client, 1)
    client.withdraw(["token-0", "token-1", "unknown"])
    (second,) = answers(client, 1)
    assert second.token == "token-1"
    assert isinstance(second.child, StartWithdrawn)
    for file in files:
        file.touch()
    (third,) = answers(client, 1)
    assert third.token == "token-2", "the one that ran continued"
    for answer in (first, third):
        assert isinstance(answer.child, Child)
        exit_of(client, answer.child)
    assert not (tmp_path / "1.log").exists()


def test_a_run_that_cannot_be_started_leaves_its_slot_to_the_next(client: SupervisorClient, tmp_path: Path) -> None:
    client.limit_runs(1)
    argv = [[b"/no/such"], [b"/bin/true"], [b"/no/such"], [b"/bin/true"]]
    client.start([request(words, tmp_path / "log", place=place) for place, words in enumerate(argv)])
    kinds = [type(answer.child) for answer in answers(client, 4)]
    assert kinds == [CannotSpawn, Child, CannotSpawn, Child]


def test_a_supervisor_without_its_worker_starts_nothing_that_waits(tmp_path: Path) -> None:
    with open_client(tmp_path) as client:
        client.limit_runs(1)
        files = waiting(client, tmp_path, 3)
        answers(client, 1)
    orphaned = supervisor(tmp_path)
    for file in files:
        file.touch()
    wait_until_gone(orphaned)
    assert set(journal(tmp_path).runs) == {"token-0"}


def test_a_supervisor_without_its_worker_sleeps(tmp_path: Path) -> None:
    with open_client(tmp_path) as client:
        client.limit_runs(2)
        files = waiting(client, tmp_path, 4)
        answers(client, 2)
    orphaned = supervisor(tmp_path)
    files[0].touch()
    wait_until(lambda: journal(tmp_path).runs["token-0"].exit, what="its end to be in the journal")
    # In ten looks, a process that never sleeps is always runnable.
    states = [process.state for _ in range(10) if (process := sleep_and_find(orphaned.pid)) is not None]
    assert "S" in states
    files[1].touch()
    wait_until_gone(orphaned)


def sleep_and_find(pid: int) -> ProcessInfo | None:
    select.select((), (), (), 0.01)
    return tree.find(pid)


def test_of_many_requests_some_start_before_others_are_read(client: SupervisorClient, tmp_path: Path) -> None:
    """A supervisor that only starts would not notice a request to terminate one of them."""
    count = 3 * MAX_STARTS_PER_TURN
    client.start([request([b"/bin/true"], tmp_path / f"{place}.log", place=place) for place in range(count)])
    assert len({answer.token for answer in answers(client, count)}) == count
