"""A home, the real program on it, and what a test has to know about both."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from queuectl.jobs.states import FINAL, State
from queuectl.store.open import open_reads
from queuectl.store.store import Store
from queuectl.store.types import Filter
from tests.e2e.processes import carrying, process
from tests.program import COMMAND, Leftovers, Program, WorkerProcess
from tests.wait import wait_until

FULL = os.environ.get("QUEUECTL_TEST_FULL") == "1"  # the numbers of the contract, not those of a quick look


class WrappedWorker(WorkerProcess):
    """A worker that something else may start: `nohup`, `unshare`, a shell with its own ideas about signals."""

    def __init__(
        self,
        scene: Scene,
        log: Path,
        *args: str | Path,
        through: Sequence[str],
        env: Mapping[str, str | None] | None,
        **popen: Any,
    ) -> None:
        self._scene = scene
        self._queuectl = scene.queuectl
        self._log = log
        if not through and not popen:
            self.process = scene.queuectl.start_worker(*args, log=log, env=env)
            return
        command = [*through, *COMMAND, "worker", "start", *map(str, args)]
        with log.open("wb") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, **popen}
            self.process = subprocess.Popen(command, env=scene.queuectl.environment(env), **streams)

    def wait_until_ready(self, timeout: float = 20) -> WorkerProcess:
        """Until the store knows it, or it has ended already."""
        wait_until(self._is_ready, timeout=timeout, what="the worker to be ready")
        return self

    def _is_ready(self) -> bool:
        if (code := self.process.poll()) is not None:
            assert code == 0, f"the worker exited {code}: {self.output}"
            return True
        return self._scene.is_there and any(worker.pid == self.pid for worker in self._scene.store.workers())


class Scene:
    """What happens is made by the program; what is seen is read from the store, since asking the program a hundred times
    would take most of a test's time."""

    def __init__(self, queuectl: Program, directory: Path) -> None:
        self.queuectl = queuectl
        self.home = queuectl.home
        self.db = queuectl.env.get("QUEUECTL_DB")  # None: SQLite, in the home
        self.directory = directory
        self._reads: Store | None = None
        self._workers: list[WorkerProcess] = []

    # ── do ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def enqueue(self, command: str | None = None, **fields: Any) -> str:
        return self.enqueue_all([{"command": command, **fields}])[0]

    def enqueue_all(self, jobs: Sequence[Mapping[str, Any]]) -> list[str]:
        return self.queuectl("enqueue", json.dumps(jobs), check=0, cwd=self.directory).lines

    def enqueue_all_from_file(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """More than fit on a command line."""
        text = "\n".join(map(json.dumps, jobs))
        self.queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0, cwd=self.directory)

    def configure(self, **settings: object) -> None:
        for name, value in settings.items():
            self.queuectl("config", "set", name.replace("_", "-"), str(value), check=0)

    def worker(
        self,
        *args: str | Path,
        ready: bool = True,
        env: Mapping[str, str | None] | None = None,
        through: Sequence[str] = (),
        **popen: Any,
    ) -> WorkerProcess:
        """A worker in the foreground; `through` are the words of a program that starts it."""
        log = self.directory / f"worker-{len(self._workers)}.out"
        worker = WrappedWorker(self, log, *args, through=through, env=env, **popen)
        self._workers.append(worker)
        return worker.wait_until_ready() if ready else worker

    def drain(self, *args: str, env: Mapping[str, str | None] | None = None) -> None:
        """Let a worker do all there is to do."""
        self.queuectl("worker", "start", "--drain", "--quiet", *args, env=env, check=0)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()
        if self._reads is not None:
            self._reads.close()

    def forge(self, statement: str, values: Sequence[Any] = (), *, patience: float = 10) -> None:
        """Write into the store, a SQLite file, behind everybody's back."""
        with closing(sqlite3.connect(self.home / "queue.db", isolation_level=None, timeout=patience)) as other:
            other.execute(statement, values)

    # ── see ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_there(self) -> bool:
        return self.db is not None or (self.home / "queue.db").exists()

    @property
    def store(self) -> Store:
        """To look only."""
        if self._reads is None:
            assert self.is_there, "nothing has been enqueued yet"
            self._reads = open_reads(str(self.home), self.db)
        return self._reads

    def job(self, job_id: str) -> dict[str, Any]:
        return self.store.get(job_id).to_dict()

    def state(self, job_id: str) -> str:
        return self.store.get(job_id).state.value

    def states(self) -> dict[str, str]:
        return {job.id: job.state.value for job in self.store.jobs(Filter())}

    def count(self, state: str) -> int:
        return self.store.count(Filter(states=frozenset({State(state)})))

    def history(self, job_id: str) -> list[dict[str, Any]]:
        return [run.to_dict() for run in self.store.history(job_id)]

    def outcomes(self, job_id: str) -> list[str]:
        return [run["outcome"] for run in self.history(job_id)]

    def workers(self) -> dict[str, str]:
        """The workers that the store knows and the state that `worker list` says they are in."""
        listed = self.queuectl("worker", "list", "--json", check=0).json
        return {worker["id"]: worker["state"] for worker in listed}

    def wait_for(self, job_id: str, *states: str, timeout: float = 20) -> dict[str, Any]:
        wait_until(
            lambda: self.state(job_id) in states, timeout=timeout, what=f"{job_id} to be {states}: {self.job(job_id)}"
        )
        return self.job(job_id)

    def wait_for_workers(self, *names: str, timeout: float = 20) -> None:
        """Until these, and no others, are known to the store."""
        wait_until(
            lambda: {worker.id for worker in self.store.workers()} == set(names),
            timeout=timeout,
            what=f"workers {names}",
        )

    def leftovers_gone(self) -> None:
        """Until nothing of this home runs any more."""
        Leftovers(self.home).wait_until_none()

    def wait_for_all(self, timeout: float = 30) -> None:
        """Until every job has ended for good."""
        wait_until(
            # In one look: between two, what ran can be back in the line that was found empty.
            lambda: self.store.count(Filter(states=frozenset(State) - FINAL)) == 0,
            timeout=timeout,
            what="every job to end",
        )

    # ── jobs that wait for the test ─────────────────────────────────────────────────────────────────────────────────

    def path(self, name: str) -> Path:
        return self.directory / name

    def until(self, name: str) -> str:
        """Words for the shell: go on when the test has made the file `name`."""
        return f"until [ -e {self.quoted(name)} ]; do sleep 0.03; done"

    def loop(self, name: str, words: str) -> str:
        """Words for the shell: do it until the test has made the file `name`."""
        return f"until [ -e {self.quoted(name)} ]; do {words}; done"

    def note(self, name: str, text: str = ".") -> str:
        """Words for the shell: make the file `name`, or add a line to it."""
        return f"echo {text} >> {self.quoted(name)}"

    def shell_word(self, words: str) -> str:
        return shlex.quote(words)

    def quoted(self, name: str) -> str:
        return shlex.quote(str(self.path(name)))

    def open(self, name: str) -> None:
        self.path(name).touch()

    def lines(self, name: str) -> list[str]:
        path = self.path(name)
        return path.read_text().split() if path.exists() else []

    def wait_for_file(self, name: str, timeout: float = 20) -> None:
        wait_until(self.path(name).exists, timeout=timeout, what=f"the file {name}")

    def wait_for_lines(self, name: str, count: int, timeout: float = 20) -> list[str]:
        wait_until(lambda: len(self.lines(name)) >= count, timeout=timeout, what=f"{count} lines in {name}")
        return self.lines(name)


def make_scene(queuectl: Program, directory: Path) -> Iterator[Scene]:
    made = Scene(queuectl, directory)
    yield made
    made.end()


@pytest.fixture
def scene(queuectl: Program, tmp_path: Path) -> Iterator[Scene]:
    yield from make_scene(queuectl, tmp_path)


@pytest.fixture
def chance() -> random.Random:
    seed = os.environ.get("QUEUECTL_TEST_SEED", str(random.randrange(10**9)))
    print(f"QUEUECTL_TEST_SEED={seed}")  # noqa: T201 - pytest shows it with a failure
    return random.Random(seed)


def stop(worker: WorkerProcess, *signals: signal.Signals) -> None:
    """Send the signals, the next one when the worker has taken note of the one before."""
    for count, number in enumerate(signals, start=1):
        worker.send(number)
        wait_until(
            lambda count=count: worker.process.poll() is not None or worker.output.count(" stopping ") >= min(count, 2),
            what="the worker to take note",
        )


def freeze(scene: Scene, worker: WorkerProcess) -> None:
    """SIGSTOP, but not in the middle of a transaction: SQLite's lock would keep everybody else waiting, too."""

    def is_frozen() -> bool:
        worker.send(signal.SIGSTOP)
        wait_until(lambda: (found := process(worker.pid)) and found.state == "T", what="the worker to stand still")
        try:
            scene.forge("update config set value = value", patience=0)
        except sqlite3.OperationalError:
            worker.send(signal.SIGCONT)
            return False
        return True

    wait_until(is_frozen, what="the worker to stand still outside of a transaction")


def family_of(tag: str) -> list[int]:
    return carrying(f"FAMILY={tag}")
