"""The worker's side of its supervisor: start runs, terminate them, and learn how they end, without ever waiting for it."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import socket
import subprocess  # noqa: TID251 - starts the supervisor
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from queuectl import errors
from queuectl.clock import SystemClock
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import NO_REPORT, ResourceReport, Usage
from queuectl.process import tree
from queuectl.process.adopted import AdoptedRuns, UnknownExit
from queuectl.process.ipc import Channel, Disconnected, Message
from queuectl.process.model import Child, ProcessInfo
from queuectl.process.spawn import NO_SETUP, CannotSpawn, ChildSetup, StartExpired, StartUnrecorded, StartWithdrawn
from queuectl.process.system import IS_PORTABLE, PORTABLE_VARIABLE

POLL_EVERY: Final = 0.02
CLOSE_TIMEOUT: Final = 5.0
_PROGRAM: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), tree.SUPERVISOR_PROGRAM)
# All that Python may need to start. The rest of our environment is for the jobs.
_NEEDED_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", PORTABLE_VARIABLE)

_PROBLEMS: Final = {
    None: CannotSpawn,
    "expired": StartExpired,
    "unrecorded": StartUnrecorded,
    "withdrawn": StartWithdrawn,
}

Environment = Mapping[bytes, bytes]


class StartRequest(NamedTuple):
    """A run to start. Its environment is `base`, an object that many runs share, and `env`. Its output goes to the end of `log`."""

    argv: Sequence[bytes]
    cwd: str
    base: Environment
    env: Environment
    log: str
    worker: str
    run: int  # its number. 1: a log of that name belongs to a removed job
    place: int  # in the journal
    token: str
    slot: int | None = None  # None: it waits for one within the capacity of the supervisor
    program: bytes | None = None
    shell: bytes | None = None
    secrets: Sequence[tuple[str, bytes]] = ()  # by name: redacted in its output
    start_by: float = math.inf  # by the monotonic clock: later its claim may belong to another worker
    setup: ChildSetup = NO_SETUP


class Started(NamedTuple):
    """The answer to a request, and when it was started, by the monotonic clock."""

    token: str
    child: Child | CannotSpawn
    at: float


class RunExit(NamedTuple):
    """How a run ended. `reason`: why it was terminated, None: it ended by itself. `log_from`, `log_to`: its output in the log, None if it
    has printed nothing; `log_to` also if the END marker could not be written. `duration` None: unknown. `log_problem`: why some of its output
    or the END marker could not be written. `last_line`: that it printed, None if it is not known, as for an adopted run, or blank."""

    how: Exited | Signalled
    duration: float | None
    log_from: int | None = None
    log_to: int | None = None
    report: ResourceReport = NO_REPORT
    reason: str | None = None
    log_problem: str = ""
    last_line: str | None = None


class Processes(Protocol):
    """What the worker's loop asks of the operating system about processes. The simulator has its own. Nothing here waits."""

    def open(self, journal: str, *, lock: int, environment: Mapping[str, str]) -> None:
        """Start the supervisor. It writes into the journal, and holds the lock as long as it may start runs. Raises SupervisorGone."""
        ...

    def close(self) -> None:
        """Runs continue, and their ends are written into the journal."""
        ...

    def limit_logs(self, limit: int) -> None:
        """Limit the size of each log, in bytes, from now on."""
        ...

    def limit_runs(self, capacity: int) -> None:
        """How many runs without a fixed slot may exist at once. Others wait until one of them ends."""
        ...

    def start(self, requests: Sequence[StartRequest]) -> None:
        """Start these, in this order; `started` has the answers."""
        ...

    def withdraw(self, tokens: Sequence[str]) -> None:
        """Do not start these any more. For those that have not been started, `started` has StartWithdrawn."""
        ...

    def started(self) -> Sequence[Started]:
        """The answers since the last call."""
        ...

    def output(self) -> Mapping[str, int]:
        """Where the output of runs begins that have printed something since the last call, by token."""
        ...

    def fileno(self) -> int:
        """Becomes readable when a run has started or ended."""
        ...

    def poll_again_in(self) -> float | None:
        """In how many seconds to look again although `fileno` is not readable; None: no need."""
        ...

    def poll(self, child: Child) -> RunExit | UnknownExit | None:
        """How the run ended, None if it has not. A run that is being terminated has ended after `finish`."""
        ...

    def has_exited(self, child: Child) -> bool:
        """Whether the first process of the run has ended; others may live."""
        ...

    def terminating(self, runs: Mapping[Child, str]) -> None:
        """We are about to send signals to these, and why: their PIDs stay reserved until `finish`."""
        ...

    def finish(self, child: Child) -> None:
        """No process of a run that we terminate is left."""
        ...

    def recorded(self, child: Child) -> None:
        """The store has its end."""
        ...

    def flush(self) -> None:
        """Send what was kept back to send it with other messages."""
        ...

    def adopt(self, child: Child, token: str, journal: str) -> float:
        """Watch a run of a dead worker, whose supervisor writes its end into that journal. Returns how many seconds ago it was started, also
        if it has ended since. Raises OSError if that cannot be seen now."""
        ...

    def members(self, runs: Mapping[str, Child]) -> dict[str, list[ProcessInfo]]:
        """By token, the living processes of these runs."""
        ...

    def send(self, number: int, to: Sequence[ProcessInfo]) -> None: ...

    def kill_group(self, child: Child) -> None:
        """SIGKILL to the whole process group and control group of a run in one step: forks in progress cannot escape."""
        ...

    def ping(self) -> None:
        """Ask the supervisor for an answer."""
        ...

    def silent_for(self) -> float:
        """For how many seconds the supervisor has not answered; 0 if nothing was asked."""
        ...

    def kill_supervisor(self) -> None: ...

    @property
    def has_supervisor(self) -> bool:
        """False once the supervisor is dead."""
        ...

    def reopen(self) -> bool:
        """Start another supervisor in place of a dead one. False if the old one may still be about to start something."""
        ...

    def reap_orphans(self) -> None:
        """Reap children that we did not start: as PID 1, or those we had before a restart in place."""
        ...


class StartedSupervisor(NamedTuple):
    """A supervisor that waits for the lock of its worker. It exits when its channel is closed."""

    process: subprocess.Popen[bytes]
    channel: Channel


def start_supervisor(journal: str, environment: Mapping[str, str]) -> StartedSupervisor:
    """Raises SupervisorGone, or OSError if there are no descriptors."""
    ours, its = socket.socketpair()
    # Isolated: as little as possible can go wrong. psutil, which the portable mode needs, is in site-packages.
    options = ["-I"] if IS_PORTABLE else ["-I", "-S"]
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, *options, _PROGRAM, str(its.fileno()), journal],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: environment[name] for name in _NEEDED_VARIABLES if name in environment},
            cwd="/",
            start_new_session=True,
            pass_fds=(its.fileno(),),
        )
    except OSError as exc:
        ours.close()
        if exc.errno in (errno.EMFILE, errno.ENFILE):
            raise
        raise errors.SupervisorGone(f"it cannot be started: {(exc.strerror or str(exc)).lower()}") from exc
    finally:
        its.close()
    return StartedSupervisor(process, Channel(ours))


class SupervisorClient:
    def __init__(self, left: Iterable[int] = (), *, started: StartedSupervisor | None = None) -> None:
        """`left`: supervisors that this process had before it restarted in place. `started`: one that was started early."""
        self._left = set(left)
        self._supervisor = started
        self._clock = SystemClock()
        self._opened: tuple[str, int, Mapping[str, str]] | None = None
        self._is_connected = False
        self._base: Environment | None = None  # as the supervisor knows it
        self._tokens: dict[Child, str] = {}
        self._children: dict[str, Child] = {}
        self._started: list[Started] = []
        self._output: dict[str, int] = {}
        self._leaders: set[Child] = set()  # have exited while their runs are terminated
        self._exits: dict[Child, RunExit] = {}
        self._unseen: set[Child] = set()  # whose end came in since the last `poll`
        self._undelivered: dict[str, str] = {}  # why we terminate runs of which the supervisor may not know it yet
        self._recorded: list[str] = []
        self._asked_at: float | None = None
        self._log_limit = 0
        self._capacity = -1
        self._unstarted: list[
            ProcessInfo
        ] = []  # dead or killed supervisors, and children of theirs that were not their programs yet
        self._adopted = AdoptedRuns()
        self._is_init = os.getpid() == 1
        # Children that another part of this process has started: reaps those that have ended, returns the others.
        self.reap_commands: Callable[[], Collection[int]] = tuple

    # ── the supervisor ──────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, journal: str, *, lock: int, environment: Mapping[str, str]) -> None:
        self._opened = journal, lock, environment
        self._supervisor = self._supervisor or start_supervisor(journal, environment)
        try:
            self._supervisor.channel.send_descriptor(lock)
        except Disconnected as exc:
            raise errors.SupervisorGone from exc
        self._is_connected = True
        self._adopted.add_source(self._supervisor.channel.fileno())

    def close(self) -> None:
        if self._supervisor is not None:
            process, channel = self._supervisor
            deadline = self._clock.monotonic() + CLOSE_TIMEOUT
            # Without runs it exits at once, and nothing is left behind.
            if self._tokens or self._stays(channel, deadline):
                self._left.add(process.pid)
            else:
                try:
                    process.wait(max(0.0, deadline - self._clock.monotonic()))
                except subprocess.TimeoutExpired:
                    self._left.add(process.pid)
            process.returncode = 0  # reaped, or left to `reap_orphans` of the next program in this process
            channel.close()
            self._supervisor = None
            self._is_connected = False
        self._adopted.close()

    @property
    def left(self) -> Collection[int]:
        """Supervisors of ours that continue, after `close` also the last one."""
        return self._left

    @property
    def has_supervisor(self) -> bool:
        return self._is_connected

    def kill_supervisor(self) -> None:
        if self._supervisor is not None and self._is_connected:
            self._supervisor.process.send_signal(signal.SIGSTOP)  # it forks no more
            self._disconnect()

    def reopen(self) -> bool:
        assert self._opened is not None
        if self._supervisor is not None:
            self._supervisor.process.kill()  # it may only have closed the channel
            if self._supervisor.process.poll() is None:
                return False
            self._supervisor.channel.close()
            self._supervisor = None
        journal, lock, environment = self._opened
        self._base, limit, self._log_limit = None, self._log_limit, 0
        capacity, self._capacity = self._capacity, -1
        self._asked_at = None
        self.open(journal, lock=lock, environment=environment)
        self.limit_logs(limit)
        self.limit_runs(capacity)
        return True

    def ping(self) -> None:
        self._ask({"op": "ping"})

    def silent_for(self) -> float:
        return 0.0 if self._asked_at is None else self._clock.monotonic() - self._asked_at

    def _stays(self, channel: Channel, deadline: float) -> bool:
        """Whether the supervisor continues when we disconnect: a process that a job has left behind may print."""
        channel.close_writing()
        with contextlib.suppress(Disconnected):
            while (left := deadline - self._clock.monotonic()) > 0:
                channel.wait(left)
                if any("stays" in message for message in channel.receive()):
                    return True
            return True  # it does not answer
        return False

    def _disconnect(self) -> None:
        if self._is_connected:
            assert self._supervisor is not None
            with contextlib.suppress(Disconnected):  # what it has reported before
                while messages := self._supervisor.channel.receive():
                    self._note(messages)
            self._adopted.remove_source(self._supervisor.channel.fileno())
            self._is_connected = False
            assert self._opened is not None
            with contextlib.suppress(OSError):  # no descriptor to look with: then a start in this moment may be missed
                since = tree.started(self._supervisor.process.pid) or 0
                self._unstarted = tree.supervisor_processes(self._opened[0], since=since)
                tree.send(signal.SIGKILL, self._unstarted)
            self._supervisor.process.kill()
            self._asked_at = None
            self._recorded.clear()
            # The next supervisor does not know them. Ends that were reported count.
            self._tokens.clear()
            self._children.clear()
            self._leaders.clear()

    def _ask(self, message: Message) -> None:
        """Send a message that is answered."""
        if self._asked_at is None and self._is_connected:
            self._asked_at = self._clock.monotonic()
        self._send(message)

    def _send(self, message: Message) -> None:
        if not self._is_connected:
            return
        assert self._supervisor is not None
        try:
            if self._recorded:
                recorded, self._recorded = self._recorded, []
                self._supervisor.channel.send({"op": "recorded", "runs": recorded})
            self._supervisor.channel.send(message)
        except Disconnected:
            self._disconnect()

    def _receive(self) -> None:
        if not self._is_connected:
            return
        assert self._supervisor is not None
        try:
            self._supervisor.channel.flush()
            self._note(self._supervisor.channel.receive())
        except Disconnected:
            self._disconnect()

    def _note(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._asked_at = None
            for answer in message.get("started", ()):
                self._note_started(answer)
            self._output.update(message.get("output", ()))
            self._leaders.update(self._children[token] for token in message.get("leaders", ()))
            for ended in message.get("exited", ()):
                self._note_exit(ended)

    def _note_started(self, answer: Mapping[str, Any]) -> None:
        token = answer["token"]
        if "error" in answer:
            problem = _PROBLEMS[answer.get("why")](answer["error"])
            self._started.append(Started(token, problem, answer["at"]))
            return
        child = Child(answer["pid"], answer["started"])
        self._tokens[child], self._children[token] = token, child
        self._started.append(Started(token, child, answer["at"]))

    def _note_exit(self, ended: Mapping[str, Any]) -> None:
        child = self._children[ended["token"]]
        how = Exited(ended["code"]) if ended["signal"] is None else Signalled(ended["signal"])
        report = ResourceReport(Usage(*ended["usage"]), ended["out_of_memory"]) if "usage" in ended else NO_REPORT
        undelivered = self._undelivered.pop(ended["token"], None)
        reason = ended["reason"] or undelivered
        log_from, log_to, problem = ended.get("log_from"), ended.get("log_to"), ended.get("log_problem", "")
        last_line = ended.get("last_line")
        self._exits[child] = RunExit(how, ended["duration"], log_from, log_to, report, reason, problem, last_line)
        self._unseen.add(child)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def fileno(self) -> int:
        return self._adopted.fileno()

    def poll_again_in(self) -> float | None:
        if self._unseen or self._started:
            return 0.0
        is_sending = self._is_connected and self._supervisor is not None and self._supervisor.channel.has_outgoing
        return POLL_EVERY if self._adopted.needs_polling or is_sending else None

    def limit_logs(self, limit: int) -> None:
        if limit != self._log_limit:
            self._log_limit = limit
            self._send({"op": "log_limit", "bytes": limit})

    def limit_runs(self, capacity: int) -> None:
        if capacity != self._capacity:
            self._capacity = capacity
            if capacity >= 0:
                self._send({"op": "capacity", "runs": capacity})

    def withdraw(self, tokens: Sequence[str]) -> None:
        if tokens:
            self._send({"op": "withdraw", "runs": list(tokens)})

    def start(self, requests: Sequence[StartRequest]) -> None:
        if not (requests and self._is_connected):
            return
        self._ask({"op": "start", "runs": [self._encoded(request) for request in requests]})

    def _encoded(self, request: StartRequest) -> Message:
        if self._base is None:  # the first environment is that of most runs
            self._base = request.base
            self._send({"op": "environment", "variables": dict(request.base)})
        setup = request.setup
        return {
            "token": request.token,
            "place": request.place,
            "argv": [*request.argv],
            "program": request.program,
            "shell": request.shell,
            "cwd": request.cwd.encode("utf-8", "surrogateescape"),
            "base": None if request.base is self._base else dict(request.base),
            "env": dict(request.env),
            "log": request.log,
            "worker": request.worker,
            "run": request.run,
            "slot": request.slot,
            "start_by": request.start_by,
            "secrets": [*request.secrets],
            "setup": None if setup == NO_SETUP else {**setup._asdict(), "limits": dict(setup.limits)},
        }

    def started(self) -> Sequence[Started]:
        self._receive()
        found, self._started = self._started, []
        return found

    def output(self) -> Mapping[str, int]:
        found, self._output = self._output, {}
        return found

    def poll(self, child: Child) -> RunExit | UnknownExit | None:
        if child in self._adopted:
            return self._poll_adopted(child)
        self._unseen.discard(child)
        return self._exits.get(child)

    def _poll_adopted(self, child: Child) -> RunExit | UnknownExit | None:
        how = self._adopted.poll(child)
        if how is None or isinstance(how, UnknownExit):
            return how
        ended = self._adopted.exit(child)
        assert ended is not None
        duration = self._adopted.duration(child)
        return RunExit(how, duration, ended.log_from, ended.log_to, ended.report, ended.reason)

    def has_exited(self, child: Child) -> bool:
        if child not in self._tokens:
            return child in self._exits or not tree.is_running(child)
        return child in self._leaders or child in self._exits

    def terminating(self, runs: Mapping[Child, str]) -> None:
        if ours := {self._tokens[child]: reason for child, reason in runs.items() if child in self._tokens}:
            self._send({"op": "terminating", "runs": ours})
            if self._is_connected and self._supervisor is not None and self._supervisor.channel.has_outgoing:
                self._undelivered |= ours

    def finish(self, child: Child) -> None:
        if child in self._tokens and child not in self._exits:
            self._ask({"op": "finish", "runs": [self._tokens[child]]})

    def recorded(self, child: Child) -> None:
        if child in self._adopted:
            self._adopted.forget(child)
            return
        self._exits.pop(child, None)
        self._leaders.discard(child)
        self._unseen.discard(child)
        if (token := self._tokens.pop(child, None)) is not None:
            del self._children[token]
            # Sent with the next message, or when there is nothing else to do: nothing waits for it.
            self._recorded.append(token)

    def flush(self) -> None:
        if self._recorded and self._is_connected:
            assert self._supervisor is not None
            recorded, self._recorded = self._recorded, []
            with contextlib.suppress(Disconnected):  # noticed by the next `started`
                self._supervisor.channel.send({"op": "recorded", "runs": recorded})

    def adopt(self, child: Child, token: str, journal: str) -> float:
        return self._adopted.adopt(child, token, journal)

    def members(self, runs: Mapping[str, Child]) -> dict[str, list[ProcessInfo]]:
        members = tree.members(runs)
        self._unstarted = [process for process in self._unstarted if tree.is_running(process)]
        for token, child in runs.items():
            if not child.pid:  # any of them may be about to become its program
                members[token] += self._unstarted
        return members

    def send(self, number: int, to: Sequence[ProcessInfo]) -> None:
        tree.send(number, to)

    def kill_group(self, child: Child) -> None:
        tree.kill_groups({"": child})

    def reap_orphans(self) -> None:
        theirs = self.reap_commands()
        for pid in [*self._left]:
            try:
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            except ChildProcessError:  # not our child
                pass
            self._left.discard(pid)
        ours = None if self._supervisor is None else self._supervisor.process.pid
        while self._is_init:
            try:
                status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if status is None or status.si_pid == ours or status.si_pid in theirs:
                return
            os.waitpid(status.si_pid, 0)


# ── restarting a worker ─────────────────────────────────────────────────────────────────────────────────────────────

LEAVE_SIGNAL: Final = signal.SIGUSR2


def tell_to_leave(pid: int) -> bool:
    """Tell a worker to exit while its runs continue: the next worker of its data directory adopts them. False if there is no such process.
    The caller knows that it is a worker: any other program would be killed."""
    found = tree.find(pid)
    if found is None or found.is_zombie:
        return False
    tree.send(LEAVE_SIGNAL, [found])
    return True
