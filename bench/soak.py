"""Soak test with random faults: bench/soak.py --minutes N [--postgres]. Exits with 1 if a job was lost, ran twice ...

It uses real workers, clients and data directories. Random processes are killed, suspended, restarted and stopped by PID or
name. Then the faults stop, all jobs finish, and the acknowledged jobs are compared with the traces of their runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from _bench import Lab, lab
from _postgres import Server, server
from _tally import tally

SETTINGS = {"heartbeat": "500ms", "lease": "3s", "poll-interval": "1s", "backoff-base": "1", "backoff-max": "200ms",
            "max-crashes": "1000", "kill-grace": "500ms"}  # fmt: skip
KINDS = {
    "short": "true",
    "failing": "exit 3",
    "slow": "sleep 1.5",
    "stubborn": "trap '' TERM; sleep 0.7",
    "printing": "seq 3000",
    "with children": "sleep 0.6 & sleep 0.3 & wait",
    "with children that stay": "(sleep 1; echo late) & true",
}
WORKERS, ENQUEUERS, SLOTS = 3, 2, 4
HOSTS = ("one", "two")  # that share a PostgreSQL database
DRAIN = 180.0
LONGEST = 60.0  # seconds that a command may take; it gives up on an unavailable server earlier


class Soak:
    def __init__(self, place: Lab, db: str | None, postgres: Server | None) -> None:
        self.acknowledged: dict[str, str] = {}  # id -> kind
        self.injections: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.db = db
        self.effects = place.path / "effects"
        self.said = place.path / "said"
        self._place = place
        self._postgres = postgres
        self._hosts = [self._environment(place.new_home(), host) for host in (HOSTS if db else (None,))]
        self.homes = [env["QUEUECTL_HOME"] for env in self._hosts]
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * WORKERS
        self._enqueuing: list[subprocess.Popen[bytes] | None] = [None] * ENQUEUERS
        self._commands: list[tuple[float, subprocess.Popen[bytes], Path]] = []  # start time, process and output
        self._timers: list[threading.Timer] = []
        self._is_served = threading.Event()  # set unless this program has stopped the server
        self._is_served.set()
        self._is_over = threading.Event()

    def _environment(self, home: Path, host: str | None) -> dict[str, str]:
        more = {"QUEUECTL_DB": self.db, "QUEUECTL_HOST": host} if self.db and host else {}
        return {**self._place.environment(home), **more}

    # ── load ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, seconds: float) -> None:
        for name, value in SETTINGS.items():
            self._start("config", "set", name, value).wait()
        threads = [threading.Thread(target=self._enqueue, args=(number,)) for number in range(ENQUEUERS)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        injections = [
            self._kill,
            self._crash,
            self._finish,
            self._freeze,
            self._restart,
            self._end,
            self._kill_enqueuer,
        ]
        if self._postgres is not None:  # rarely: nothing else happens during an outage
            injections = [*injections, *injections, *injections, self._stop_server]
        # Not by KeyboardInterrupt, which may arrive between the start of a worker and its registration here.
        interrupted = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
        try:
            while time.monotonic() < end and not interrupted.is_set():
                self._keep_up()
                if not interrupted.wait(random.uniform(0.1, 0.6)):
                    random.choice(injections)()
        finally:
            signal.signal(signal.SIGINT, before)
            self._is_over.set()
            for thread in (*self._timers, *threads):
                thread.join()

    def _enqueue(self, number: int) -> None:
        count = 0
        while not self._is_over.is_set():
            count += 1
            kind, job = random.choice(list(KINDS)), f"e{number}-{count}"
            command = f'echo "$QUEUECTL_JOB_ID $QUEUECTL_RUN" >> {self.effects}; {KINDS[kind]}'
            words = ["enqueue", "--quiet", "--id", job, "--max-retries", "1", command]
            process = self._enqueuing[number] = self._start(*words, on=number)
            if self._wait(process, LONGEST) == 0:
                self.acknowledged[job] = kind

    def _keep_up(self) -> None:
        for number, worker in enumerate(self._workers):
            if worker is None or worker.poll() is not None:
                words = ["worker", "start", "--name", f"w{number}", "--count", str(SLOTS)]
                self._workers[number] = self._start(*words, on=number)
        for one in [*self._commands]:
            began, command, said = one
            code = self._wait(command, max(0.0, began + LONGEST - time.monotonic()), at_once=True)
            if code is None:
                continue
            self._commands.remove(one)
            words = said.read_bytes()
            said.unlink()
            with self.said.open("ab") as all_said:
                all_said.write(words)
            # It may be refused, because its worker or the server is gone. But then it must print an error.
            if code not in (0, 1) or (code == 1 and not words.startswith(b"error: ")):
                print(f"exit {code}: {command.args!r}: {words.decode(errors='replace')}", file=sys.stderr)
                self.violations["commands failed"] += 1

    def _wait(self, process: subprocess.Popen[bytes], seconds: float, *, at_once: bool = False) -> int | None:
        """Return its exit code, or None if it is running and `at_once` is set. Kill a process that hangs."""
        if at_once and seconds:
            return process.poll()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"timeout after {LONGEST:.0f} s: {process.args!r}", file=sys.stderr)
            self.violations["hung"] += 1
            process.kill()
            return process.wait()

    # ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _kill(self) -> None:
        self._send(signal.SIGKILL, self._victim(), "workers killed")

    def _crash(self) -> None:
        """Kill a worker with its supervisor, so that the results of its jobs are unknown."""
        if (worker := self._victim()) is not None:
            self._send(signal.SIGSTOP, worker, "workers killed with their supervisor")
            for pid in children(worker.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            worker.kill()

    def _finish(self) -> None:
        self._send(signal.SIGTERM, self._victim(), "workers told to finish")

    def _freeze(self) -> None:
        if (worker := self._victim()) is not None:
            self._send(signal.SIGSTOP, worker, "workers stopped for a while")
            self._later(random.uniform(0.5, 5), lambda: worker.send_signal(signal.SIGCONT))

    def _restart(self) -> None:
        self._order("restart", name="workers restarted")

    def _end(self) -> None:
        self._order("stop", "--now", name="workers told to end at once")

    def _order(self, verb: str, *words: str, name: str) -> None:
        """Run a command for a worker of any host without waiting, so that other faults can occur meanwhile."""
        number = random.randrange(WORKERS)
        said = self._place.path / f"said-{self.injections.total()}"
        command = self._start("worker", verb, *words, f"w{number}", on=random.randrange(2), said=said)
        self._commands.append((time.monotonic(), command, said))
        self.injections[name] += 1

    def _kill_enqueuer(self) -> None:
        self._send(signal.SIGKILL, random.choice(self._enqueuing), "enqueuers killed")

    def _stop_server(self) -> None:
        assert self._postgres is not None
        if self._is_served.is_set():
            self._is_served.clear()
            name, strike = random.choice((("killed", self._postgres.crash), ("stopped", self._postgres.stop)))
            self.injections[f"servers {name}"] += 1
            strike()
            self._later(random.uniform(0, 4), self._start_server)

    def _start_server(self) -> None:
        assert self._postgres is not None
        self._postgres.start()
        self._is_served.set()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do it later, so that other faults can occur in between."""
        timer = threading.Timer(seconds, act)
        self._timers.append(timer)
        timer.start()

    def _victim(self) -> subprocess.Popen[bytes] | None:
        return random.choice(self._workers)

    def _send(self, number: signal.Signals, victim: subprocess.Popen[bytes] | None, name: str) -> None:
        if victim is not None and victim.poll() is None:
            victim.send_signal(number)
            self.injections[name] += 1

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def drain(self) -> None:
        """Wait until all jobs have finished without help."""
        from queuectl.jobs.states import State
        from queuectl.store.open import open_reads
        from queuectl.store.types import Filter

        waiting = Filter(states=frozenset({State.PENDING, State.PROCESSING, State.FAILED}))
        deadline = time.monotonic() + DRAIN
        with contextlib.closing(open_reads(self.homes[0], self.db)) as store:
            self._keep_up()
            while left := store.count(waiting) + len(self._commands):
                if time.monotonic() > deadline:
                    print(f"{left} jobs and commands have not finished within {DRAIN:.0f} s", file=sys.stderr)
                    self.violations["stuck"] += left
                    return
                time.sleep(0.2)
                self._keep_up()

    def stop(self) -> None:
        """Stop the workers, and check that no process is left."""
        self._wait_until_they_serve()
        for worker in filter(None, self._workers):
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
        for worker in filter(None, self._workers):
            if self._wait(worker, LONGEST) != 0:
                self.violations["ended badly"] += 1
        deadline = time.monotonic() + 15  # a background child may still print, and the supervisor waits for it
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.violations["left behind"] += len(left)

    def _wait_until_they_serve(self) -> None:
        """Wait for the workers to start: SIGTERM kills a process that is still loading, which is not a finding."""
        from queuectl.store.open import open_reads

        deadline = time.monotonic() + LONGEST
        with contextlib.closing(open_reads(self.homes[0], self.db)) as store:
            while time.monotonic() < deadline:
                serving = {worker.pid for worker in store.workers()}
                if all(worker.poll() is not None or worker.pid in serving for worker in filter(None, self._workers)):
                    return
                time.sleep(0.05)

    def close(self) -> None:
        """Kill all remaining processes."""
        for process in (*self._workers, *self._enqueuing, *(command for _, command, _ in self._commands)):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _left(self) -> list[int]:
        return [pid for home in self.homes for pid in belonging(home)]

    def _start(self, *words: str, on: int = 0, said: Path | None = None) -> subprocess.Popen[bytes]:
        env, null = self._hosts[on % len(self._hosts)], subprocess.DEVNULL
        words = (*self._place.queuectl, *words)
        with (said or self.said).open("ab") as told:
            # In its own session, so that Ctrl-C reaches only this program.
            return subprocess.Popen(words, env=env, stdin=null, stdout=null, stderr=told, start_new_session=True)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def belonging(home: str) -> list[int]:
    """Return the processes of this data directory: jobs have it in their environment, supervisors in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # exited meanwhile, or not accessible
                is_kept = f"{home}/workers/".encode() in (entry / "cmdline").read_bytes()
                if is_kept or f"QUEUECTL_HOME={home}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


@contextmanager
def store(place: Lab, db: str | None, *, own: bool) -> Iterator[tuple[str | None, Server | None]]:
    if not own:
        yield db, None
        return
    with server(place) as started:
        yield started.new_database(), started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to load and kill (default: 1)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--postgres", action="store_true", help="use a temporary server, which is stopped and killed as well; two hosts"
    )
    where.add_argument("--db", help="use this PostgreSQL server, which is not stopped; two hosts")
    parser.add_argument(
        "--seed", type=int, default=None, help="seed of the faults: the same order, but not the same times"
    )
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # it always checks
    given = parser.parse_args()
    random.seed(given.seed)
    with lab() as place, store(place, given.db, own=given.postgres) as (db, postgres):
        soak = Soak(place, db, postgres)
        try:
            soak.run(given.minutes * 60)
            soak.drain()
            soak.stop()
            counts, violations = tally(soak.homes[0], db, soak.acknowledged, effects=soak.effects, said=soak.said)
        finally:
            soak.close()
    violations.update(soak.violations)
    for name, count in (*soak.injections.items(), *counts.items(), *violations.items()):
        print(f"{name:<36}{count:>8,}")
    return 1 if violations.total() else 0


if __name__ == "__main__":
    sys.exit(main())
