"""The process of a simulated worker, and its `Processes`: its own runs through its supervisor, those that it has adopted as in reality."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from queuectl.process import tree
from queuectl.process.adopted import AdoptedRuns, UnknownExit
from queuectl.process.client import RunExit, Started, StartRequest
from queuectl.process.model import Child, ProcessInfo
from tests.sim.host import Host, Process, Signals
from tests.sim.stage import AFTER_AN_ORDER, Stage
from tests.sim.supervisor import Supervisor

POLL_EVERY: Final = 0.02
MAX_SILENCE: Final = 9.0  # of a supervisor that is stopped: two leases


class Worker:
    def __init__(
        self,
        stage: Stage,
        host: Host,
        spawned: Callable[[Host, Process, Supervisor], None],
        adopted: Callable[..., None],
    ) -> None:
        self.is_gone = False
        self.signals = Signals()
        self.host = host
        self.process = host.fork()
        self.participant = stage.me()
        self.participant.on_crash = self._crash
        self._supervisor: Supervisor | None = None
        self._is_connected = False
        self._opened: tuple[str, int] | None = None
        self._stage = stage
        self._spawned = spawned  # called with each new process of a job
        self._note_adopted = adopted
        self._started: list[Started] = []
        self._output: dict[str, int] = {}
        self._tokens: dict[Child, str] = {}
        self._leaders: set[str] = set()
        self._exits: dict[Child, RunExit] = {}
        self._children: dict[str, Child] = {}
        self._recorded: list[str] = []
        self._asked_at: float | None = None
        self._capacity = 0
        self._adopted = AdoptedRuns()

    # ── the supervisor ──────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, journal: str, *, lock: int, environment: Mapping[str, str]) -> None:
        stage = self._stage
        self._opened = journal, lock
        supervisor = self._supervisor = Supervisor(stage, self.host, journal, lock, self.signals, self._spawned)
        self._is_connected = True
        if stage.strikes(stage.chances.supervisor):
            stage.later(stage.random.random() * 6, supervisor.die)
        if stage.strikes(stage.chances.silence):
            seconds = stage.random.random() * MAX_SILENCE
            stage.later(stage.random.random() * 6, lambda: supervisor.stop(seconds))

    def close(self) -> None:
        """Runs continue."""
        self._adopted.close()
        self._be_gone(alone=True)

    def forget_journal(self) -> None:
        """It is about to be removed by a worker that exits in order: what it said cannot be known after that."""
        if self._supervisor is not None:
            self._supervisor.noted.clear()

    def _crash(self) -> None:
        """Sometimes with its supervisor, as at the end of a container or without memory."""
        chance = self._stage.random.random
        alone = chance() < 0.65
        self._be_gone(alone=alone)
        if alone and self._supervisor is not None and chance() < 0.15:
            self._stage.later(chance() * 3, self._supervisor.die)

    def lose_power(self) -> None:
        """The host is gone; `Host.boot_again` does the rest."""
        self._be_gone(alone=False)

    def _be_gone(self, *, alone: bool) -> None:
        if self.is_gone:
            return
        if self._supervisor is not None and alone:
            self._supervisor.hang_up()
        elif self._supervisor is not None:
            self._supervisor.die()
        self.is_gone = True
        self.host.processes.pop(self.process.pid, None)
        self.participant.on_crash = lambda: None
        self._adopted._selector.close()  # the descriptors in it are closed with all that a participant had open

    @property
    def has_supervisor(self) -> bool:
        return self._is_connected

    def kill_supervisor(self) -> None:
        if self._supervisor is not None and self._is_connected:
            self._supervisor.die()
            self._disconnect()

    def reopen(self) -> bool:
        assert self._opened is not None
        if self._supervisor is not None:
            self._supervisor.die()
            if self._stage.random.random() < 0.3:  # it takes a while
                return False
        journal, lock = self._opened
        self._asked_at = None
        self.open(journal, lock=lock, environment={})
        capacity, self._capacity = self._capacity, 0
        self.limit_runs(capacity)
        return True

    def ping(self) -> None:
        self._ask(lambda supervisor: supervisor.ping)

    def silent_for(self) -> float:
        return 0.0 if self._asked_at is None else self._stage.now - self._asked_at

    def _disconnect(self) -> None:
        self._read_news()
        self._is_connected = False
        self._asked_at = None
        self._recorded.clear()
        self._tokens.clear()

    def _ask(self, act: Callable[[Supervisor], Callable[[], None]]) -> None:
        if self._asked_at is None and self._is_connected:
            self._asked_at = self._stage.now
        self._send(act)

    def _send(self, act: Callable[[Supervisor], Callable[[], None]]) -> None:
        if not self._is_connected or self._supervisor is None:
            return
        if self._supervisor.is_gone:
            self._disconnect()
            return
        self.flush()
        # At once, or soon: also if we are stopped or dead by then.
        self._supervisor.request(act(self._supervisor), is_prompt=self._stage.random.random() < 0.7)

    def _receive(self) -> None:
        if self._is_connected and self._supervisor is not None:
            if self._supervisor.is_gone:
                self._disconnect()
            else:
                self._read_news()

    def _read_news(self) -> None:
        assert self._supervisor is not None
        news, self._supervisor.news = self._supervisor.news, type(self._supervisor.news)()
        if not news:
            return
        self._asked_at = None
        for answer in news.started:
            if isinstance(answer.child, Child):
                self._tokens[answer.child], self._children[answer.token] = answer.token, answer.child
        self._started += news.started
        self._output |= news.output
        self._leaders.update(news.leaders)
        self._exits |= {self._children[token]: ended for token, ended in news.exits.items()}

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def fileno(self) -> int:
        return self._adopted.fileno()

    def poll_again_in(self) -> float | None:
        return POLL_EVERY if self._adopted.needs_polling else None

    @property
    def is_ready(self) -> bool:
        return self._supervisor is not None and self._is_connected and bool(self._supervisor.news)

    def limit_logs(self, limit: int) -> None: ...

    def limit_runs(self, capacity: int) -> None:
        if capacity != self._capacity:
            self._capacity = capacity
            self._send(lambda supervisor: partial(supervisor.limit_runs, capacity))

    def withdraw(self, tokens: Sequence[str]) -> None:
        if tokens:
            self._send(lambda supervisor: partial(supervisor.withdraw, frozenset(tokens)))

    def start(self, requests: Sequence[StartRequest]) -> None:
        if requests and self._is_connected:
            if self._supervisor is not None and self._stage.strikes(self._stage.chances.stall):
                self._supervisor.stop(self._stage.random.random() * MAX_SILENCE)
            for request in requests:
                self._ask(lambda supervisor, request=request: partial(supervisor.start, request))  # type: ignore[misc]
        self._stage.effect(AFTER_AN_ORDER)

    def started(self) -> Sequence[Started]:
        self._receive()
        found, self._started = self._started, []
        return found

    def output(self) -> Mapping[str, int]:
        found, self._output = self._output, {}
        return found

    def poll(self, child: Child) -> RunExit | UnknownExit | None:
        if child not in self._adopted:
            return self._exits.get(child)
        how = self._adopted.poll(child)
        if how is None or isinstance(how, UnknownExit):
            return how
        ended = self._adopted.exit(child)
        assert ended is not None
        duration = self._adopted.duration(child)
        return RunExit(how, duration, ended.log_from, ended.log_to, ended.report, ended.reason)

    def has_exited(self, child: Child) -> bool:
        if child in self._exits or self._tokens.get(child) in self._leaders:
            return True
        return child not in self._tokens and not tree.is_running(child)

    def terminating(self, runs: Mapping[Child, str]) -> None:
        for child, reason in runs.items():
            if child in self._tokens:
                self._send(
                    lambda supervisor, token=self._tokens[child], reason=reason: partial(  # type: ignore[misc]
                        supervisor.terminating, token, reason
                    )
                )

    def finish(self, child: Child) -> None:
        if child in self._tokens and child not in self._exits:
            self._ask(lambda supervisor: partial(supervisor.finish, self._tokens[child]))

    def recorded(self, child: Child) -> None:
        self._stage.effect("before a run is forgotten")
        if child in self._adopted:
            self._adopted.forget(child)
        self._exits.pop(child, None)
        if (token := self._tokens.pop(child, None)) is not None:
            self._leaders.discard(token)
            self._recorded.append(token)  # sent with the next message, or when there is nothing else to do

    def flush(self) -> None:
        if self._recorded and self._is_connected and self._supervisor is not None:
            recorded, self._recorded = self._recorded, []
            self._supervisor.request(partial(self._supervisor.recorded, recorded), is_prompt=True)

    def adopt(self, child: Child, token: str, journal: str) -> float:
        age = self._adopted.adopt(child, token, journal)
        self._note_adopted(self, child, token, is_running=self._adopted._runs[child].pidfd is not None)
        return age

    def members(self, runs: Mapping[str, Child]) -> dict[str, list[ProcessInfo]]:
        return tree.members(runs)

    def send(self, number: int, to: Sequence[ProcessInfo]) -> None:
        tree.send(number, to)

    def kill_group(self, child: Child) -> None:
        tree.kill_groups({"": child})

    def reap_orphans(self) -> None: ...
