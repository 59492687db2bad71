"""Load, kill and check for as long as you like: bench/soak.py --minutes N [--db URL]. Exits 1 if a job was lost or ran twice.

Real workers and enqueuers, a real home. Victims are killed, stopped and ended by their pid, at random; then all is left
alone until nothing is left to do, and what was acknowledged is compared with what was done.
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
from pathlib import Path

from _bench import Lab, lab

SETTINGS = {"heartbeat": "500ms", "lease": "3s", "poll-interval": "1s", "backoff-base": "1", "backoff-max": "200ms",
            "max-crashes": "1000", "kill-grace": "500ms"}  # fmt: skip
KINDS = {
    "short": "true",
    "failing": "exit 3",
    "slow": "sleep 1.5",
    "printing": "seq 3000",
    "with children": "sleep 0.6 & sleep 0.3 & wait",
}
NOT_ITS_FAULT = {"lost", "released", "signalled"}  # after these a run is followed by another
FAILURES = {"failed", "timeout"}
WORKERS, ENQUEUERS, SLOTS = 3, 2, 4
DRAIN = 180.0


class Soak:
    def __init__(self, place: Lab, db: str | None) -> None:
        self.home = place.new_home()
        self.acknowledged: dict[str, str] = {}  # id -> kind
        self.blows: Counter[str] = Counter()
        self._db = db
        self._place = place
        self._env = {**place.environment(self.home), **({"QUEUECTL_DB": db} if db else {})}
        self._effects = place.path / "effects"
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * WORKERS
        self._enqueuing: list[subprocess.Popen[bytes] | None] = [None] * ENQUEUERS
        self._is_over = threading.Event()

    # ── load ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, seconds: float) -> None:
        for name, value in SETTINGS.items():
            self._queuectl("config", "set", name, value)
        threads = [threading.Thread(target=self._enqueue, args=(number,)) for number in range(ENQUEUERS)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        try:
            with contextlib.suppress(KeyboardInterrupt):
                while time.monotonic() < end:
                    self._keep_up()
                    time.sleep(random.uniform(0.1, 0.6))
                    random.choice((self._kill, self._crash, self._stop, self._freeze, self._kill_enqueuer))()
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()

    def _enqueue(self, number: int) -> None:
        count = 0
        while not self._is_over.is_set():
            count += 1
            kind, job = random.choice(list(KINDS)), f"e{number}-{count}"
            command = f'echo "$QUEUECTL_JOB_ID $QUEUECTL_RUN" >> {self._effects}; {KINDS[kind]}'
            words = ["enqueue", "--quiet", "--id", job, "--max-retries", "1", command]
            process = self._enqueuing[number] = self._start(*words, out=subprocess.DEVNULL)
            if process.wait() == 0:
                self.acknowledged[job] = kind

    def _keep_up(self) -> None:
        for number, worker in enumerate(self._workers):
            if worker is None or worker.poll() is not None:
                words = ["worker", "start", "--name", f"w{number}", "--count", str(SLOTS)]
                self._workers[number] = self._start(*words, out=subprocess.DEVNULL)

    # ── blows ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _kill(self) -> None:
        self._send(signal.SIGKILL, self._victim(), "workers killed")

    def _crash(self) -> None:
        """With its keeper, so that nobody knows how its jobs end."""
        if (worker := self._victim()) is not None:
            self._send(signal.SIGSTOP, worker, "workers killed with their keeper")
            for pid in children(worker.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            worker.kill()

    def _stop(self) -> None:
        self._send(signal.SIGTERM, self._victim(), "workers told to finish")

    def _freeze(self) -> None:
        if (worker := self._victim()) is not None:
            self._send(signal.SIGSTOP, worker, "workers stopped for a while")
            self._is_over.wait(random.uniform(0.5, 5))
            worker.send_signal(signal.SIGCONT)

    def _kill_enqueuer(self) -> None:
        self._send(signal.SIGKILL, random.choice(self._enqueuing), "enqueuers killed")

    def _victim(self) -> subprocess.Popen[bytes] | None:
        return random.choice(self._workers)

    def _send(self, number: signal.Signals, victim: subprocess.Popen[bytes] | None, name: str) -> None:
        if victim is not None and victim.poll() is None:
            victim.send_signal(number)
            self.blows[name] += 1

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def drain(self) -> bool:
        """Whether everything came to its end by itself."""
        from queuectl.job.lifecycle import State
        from queuectl.store.open import open_reads
        from queuectl.store.protocol import Filter

        self._keep_up()
        waiting = Filter(states=frozenset({State.PENDING, State.PROCESSING, State.FAILED}))
        deadline = time.monotonic() + DRAIN
        with contextlib.closing(open_reads(str(self.home), self._db)) as store:
            while left := store.count(waiting):
                if time.monotonic() > deadline:
                    print(f"{left} jobs have not come to their end in {DRAIN:.0f} s", file=sys.stderr)
                    return False
                time.sleep(0.2)
                self._keep_up()
        return True

    def count(self) -> dict[str, int]:
        from queuectl.errors import JobNotFound
        from queuectl.store.open import open_reads

        lines = self._effects.read_text().splitlines() if self._effects.exists() else []
        effects: Counter[str] = Counter(line.split()[0] for line in lines)
        again = {line.split()[0] for line, times in Counter(lines).items() if times > 1}  # one run, twice
        counts = Counter({"acknowledged": len(self.acknowledged), "completed": 0, "dead": 0, "lost": 0, "doubled": 0})
        with contextlib.closing(open_reads(str(self.home), self._db)) as store:
            for job, kind in self.acknowledged.items():
                try:
                    state = store.get(job).state.value
                except JobNotFound:
                    state = "gone"
                counts[state if state in ("completed", "dead") else "lost"] += 1
                explained = NOT_ITS_FAULT | (FAILURES if kind == "failing" else set())
                before = [run.to_dict()["outcome"] for run in store.history(job)[:-1]] if state != "gone" else []
                # Without a trace of its effect it was not done, whatever the store says.
                counts["lost"] += state == "completed" and not effects[job]
                counts["doubled"] += job in again or not explained.issuperset(before)
        return dict(counts)

    def close(self) -> None:
        """Leave no process behind."""
        for worker in self._workers:
            if worker is not None and worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
        for worker in self._workers:
            if worker is not None:
                try:
                    worker.wait(10)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()
        for pid in carrying(f"QUEUECTL_HOME={self.home}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _queuectl(self, *words: str) -> None:
        subprocess.run([*self._place.queuectl, *words], env=self._env, check=True, stdout=subprocess.DEVNULL)

    def _start(self, *words: str, out: int) -> subprocess.Popen[bytes]:
        # In a session of its own: a Ctrl-C is for us, and we end in order.
        words = (*self._place.queuectl, *words)
        return subprocess.Popen(
            words, env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def carrying(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours to look at
            if entry.name.isdecimal() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to load and kill (default: 1)")
    parser.add_argument("--db", help="the address of a PostgreSQL store; else SQLite, in a home of its own")
    parser.add_argument("--check", action="store_true", help="does nothing: it always checks")
    given = parser.parse_args()
    with lab() as place:
        soak = Soak(place, given.db)
        try:
            soak.run(given.minutes * 60)
            drained = soak.drain()
            counts = soak.count()
        finally:
            soak.close()
    for name, count in (*soak.blows.items(), *counts.items()):
        print(f"{name:<36}{count:>8,}")
    return 0 if drained and counts["lost"] == counts["doubled"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
