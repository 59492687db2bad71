"""One seed: a store, a few machines, workers and people, a time of faults, and a time of quiet."""

from __future__ import annotations

import contextlib
import os
import select
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from queuectl import errors, events
from queuectl import paths as places
from queuectl.config import Here, load_settings
from queuectl.jobs.priority import parse_ageing
from queuectl.maintenance.adoption import Adopter
from queuectl.maintenance.rescuer import RescueTask, rescue_namesake
from queuectl.policy.gate import Gate, PolicyLoader
from queuectl.process.journal import Journal
from queuectl.settings import Settings
from queuectl.store.sqlite.store import SqliteStore
from queuectl.worker import loop
from queuectl.worker.config import WorkerConfig, WorkerContext
from queuectl.worker.launcher import Launcher
from queuectl.worker.main import _lock_name
from tests.sim.host import Host
from tests.sim.logs import check_logs
from tests.sim.patches import installed
from tests.sim.people import People
from tests.sim.pool import Pool
from tests.sim.stage import BEFORE_A_SLEEP, Chances, Crashed, Stage, Violation
from tests.sim.store import SimStore
from tests.sim.themes import Theme, chances_of, theme_of
from tests.sim.witness import Witness
from tests.sim.worker import Worker
from tests.store.backends import SqliteBackend
from tests.store.invariants import check_invariants

LEASE: Final = 4.0
THOROUGH: Final = 5  # of so many seeds one is looked at once more, through all that the store shows
LOOK_EVERY: Final = 0.2
QUIET: Final = 150.0  # seconds until everything must have come to its end
STORED: Final = {"heartbeat": "1s", "lease": "4s", "poll-interval": "1s", "kill-grace": "500ms", "backoff-max": "1s"}


class Scene:
    people: type[People] = People

    def __init__(self, seed: int, folder: Path, pool: Pool) -> None:
        self.seed = seed
        self.stage = Stage(seed, chances=Chances())
        self.stage.hidden = str(folder)
        self.path = pool.path
        self._pool = pool
        chance = self.chance = self.stage.random.random
        self._max_crashes = 2 + int(chance() * 2)
        ageing = ("off", "enqueues", "1s")[int(chance() * 3)]
        self.settings = load_settings({**STORED, "max-crashes": str(self._max_crashes), "ageing": ageing}, {})
        self.hosts = [Host(self.stage, name, str(folder / name)) for name in ("A", "B")[: 1 + int(chance() * 2)]]
        self.hosts[0].is_only_one = len(self.hosts) == 1
        self.witness = Witness(
            pool.connect(),
            self.stage,
            self.hosts,
            ageing=parse_ageing(ageing, subject="ageing"),
            max_crashes=self._max_crashes,
            lease=LEASE,
        )
        self.witness.db.execute("insert or replace into config values ('ageing', ?)", (ageing,))
        self.is_quiet = False
        self.jobs = 0  # enqueued so far
        self.theme = theme_of(seed)
        self.are_alert = self.theme is Theme.ALERT  # the clients: they rescue the jobs of a crashed worker at once
        self.deaths = 0
        self._cuts_left = 2 if self.theme is Theme.POWER else 0  # of power, each soon after a crash
        self._names: dict[int, str] = {}
        self._workers: dict[int, Worker] = {}
        for host in self.hosts:
            os.makedirs(os.path.join(host.home, "workers"))
            os.makedirs(os.path.join(host.home, "logs"))
        for number in range(2 + int(chance() * 2)):
            host = self.hosts[number % len(self.hosts)]
            self.stage.add(f"w{number}", host, lambda number=number, host=host: self._work(number, host))
        for number in range(2):
            host = self.hosts[0]
            self.stage.add(f"p{number}", host, lambda: self.people(self).live(self.hosts[0]))

    def places(self, job: int) -> int | None:  # nor says how many of its key may run
        return None

    def key(self, job: int) -> str | None:  # of a scene without limits, no job has one
        return None

    def play(self) -> None:
        """Raises Violation, or whatever else went wrong."""
        chance, stage = self.chance, self.stage
        stage.chances = chances_of(self.theme, chance)
        self.logs_fail = stage.chances.log > 0
        cuts = self.theme is Theme.MIXED and chance() < 0.3
        for _ in range(int(chance() * 3)):
            stage.later(chance() * 8, self._jump)
        if chance() < 0.3:
            stage.later(chance() * 6, self._suspend)
        if cuts:
            stage.later(chance() * 6, self._cut_power)
        stage.later(3 + chance() * 6, self._be_quiet)
        try:
            with installed(stage, self._pool):
                stage.run()
            self.witness.check_end()
            for host in () if self.logs_fail else self.hosts:
                check_logs(self.witness, host)
            if self.seed % THOROUGH == 0:
                self._check_as_every_store()
        finally:
            self.witness.db.close()
            for host in self.hosts:
                host.close()

    def _check_as_every_store(self) -> None:
        """What the tests of the stores ask of every one of them, and what it shows to people."""
        store, backend = SqliteStore(self.path, clock=self.hosts[0]), SqliteBackend(Path(self.path).parent)
        try:
            check_invariants(store, backend)
            self.witness.check_totals(store.totals())
        finally:
            backend.close()
            store.close()

    # ── by itself ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _jump(self) -> None:
        host = self.hosts[int(self.chance() * len(self.hosts))]
        by = (self.chance() - 0.5) * 20
        host.wall += by
        self.witness.jumps += 1
        self.stage.tell(f"the wall clock of {host.name} jumps by {by:.3f} s")

    def _suspend(self) -> None:
        """A whole host is suspended: no process there can tell for how long."""
        host, seconds = self.hosts[int(self.chance() * len(self.hosts))], 2 + self.chance() * 6
        self.stage.tell(f"{host.name} stands still for {seconds:.3f} s")
        for participant in self.stage.participants:
            if participant.host is host:
                self.stage.freeze(participant, seconds)

    def _cut_power(self) -> None:
        """All that runs on a machine is gone at once; its disk is not."""
        if self.is_quiet:
            return
        host = self.hosts[int(self.chance() * len(self.hosts))]
        self.stage.tell(f"{host.name} loses its power")
        for worker in self._workers.values():
            if worker.host is host:
                worker.lose_power()
        for participant in self.stage.participants:
            if participant.host is host:
                self.stage.cut_off(participant)
        self.witness.lost_power(host)
        host.boot_again()

    def _be_quiet(self) -> None:
        self.stage.tell("no more faults from here on")
        self.is_quiet = True
        self.stage.chances = Chances(long=0.0, longest=0.5)
        for host in self.hosts:  # what takes long has done so by now, and would only be waited for
            host.hurry()
        deadline = self.stage.now + QUIET

        def look() -> None:
            if not self.witness.unfinished() and not self._is_unrescued():
                self.stage.is_over = True
            elif self.stage.now > deadline:
                left = self.witness.unfinished() + self._is_unrescued()
                self.stage.fail(Violation(f"after {QUIET:g} quiet seconds {', '.join(left)}"))
            else:
                self.stage.later(LOOK_EVERY, look)

        self.stage.later(LOOK_EVERY, look)

    def _is_unrescued(self) -> list[str]:
        names = [name for (name,) in self.witness.db.execute("select id from workers")]
        return [f"{name} is not forgotten" for name in names if self.witness.serving[name].is_gone]

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _work(self, number: int, host: Host) -> None:
        """One worker after the other, in the same place."""
        stage, lives = self.stage, 0
        while True:
            lives += 1
            if number not in self._names or self.chance() < 0.5:  # else it takes the name of the one before
                self._names[number] = f"w{number}.{lives}"
            stage.me().is_gone = False
            process = self._workers[number] = Worker(stage, host, self.witness.made, self.witness.adopted)
            try:
                self._serve(self._names[number], host, process)
                stage.note("ends")
            except Crashed:
                self._note_death()
                stage.born_again()
            except errors.QueuectlError as exc:
                stage.note(f"gives up: {exc.message}")
            # The first one of all comes back at once, so that there is always a worker.
            back_at = stage.now + 0.1 + self.chance() * (2 if number == 0 else 6) * (not self.is_quiet)
            while stage.now < back_at:
                with contextlib.suppress(Crashed):  # the host, while no worker was there
                    stage.born_again()
                    stage.wait(back_at - stage.now)

    def _note_death(self) -> None:
        self.deaths += 1
        if self._cuts_left:
            self._cuts_left -= 1
            self.stage.later(self.chance() * 0.8, self._cut_power)

    def _serve(self, name: str, host: Host, process: Worker) -> None:
        """As `worker.serve` does it, but for the signals of a real process."""
        stage = self.stage
        store = SimStore(self.path, stage, host, self.witness, patience=0.25)
        try:
            here = Here(host.name, host.machine)
            slots = 1 + int(self.chance() * 2)
            queues = None if self.chance() < 0.6 else ("b", "a")
            if name.startswith("w0"):
                queues = None
            config = WorkerConfig(name, host.name, host.machine, process.process.pid, host.home, slots, queues)

            def settings() -> Settings:
                store.config()
                return self.settings

            adopter = Adopter(name, host.home, deque())
            wait = self._wait_for(process)
            context = WorkerContext(
                store, process, host, stage.random.random, settings, self.emit, wait, adopter.adoptions
            )
            lock = _lock_name(config, context)
            config = config._replace(lock=lock.mark)
            try:
                stage.note(f"is worker {name} on {host.name}, slots {slots}, queues {queues or 'all'}")
                settings_now = self.settings
                store.db.patience = 30.0
                rescue_namesake(store, adopter, clock=host, settings=settings_now, emit=self.emit)
                store.db.patience = 0.25
                self.witness.serving[name] = process
                runs_file = places.runs_file(host.home, name)
                journal = Journal(runs_file)
                process.open(runs_file, lock=lock.fileno(), environment={})
                launcher = Launcher(
                    worker=name,
                    home=host.home,
                    db=None,
                    journal=journal,
                    gate=Gate(PolicyLoader(None), {}),
                )
                task = RescueTask(adopter, here, store=store, clock=host, settings=settings, emit=self.emit)
                loop.Worker(config, context, launcher=launcher, signals=process.signals, tasks=[task]).run(lambda: None)
                journal.close()
                process.forget_journal()
                with contextlib.suppress(OSError):
                    os.unlink(places.runs_file(host.home, name))
            finally:
                if not (stage.me().is_gone or stage.is_over):
                    process.close()
                    lock.remove()
        finally:
            store.close()

    def _wait_for(self, process: Worker) -> Any:
        def wait(sources: Sequence[Any], seconds: float) -> Sequence[Any]:
            self.stage.effect(BEFORE_A_SLEEP)
            watch = select.poll()
            for source in sources:
                if source.fileno() >= 0:
                    watch.register(source.fileno(), select.POLLIN)

            def wakes() -> bool:
                return process.signals.is_pending or process.is_ready or bool(watch.poll(0))

            if seconds > 0:
                self.stage.wait(seconds, wakes)
            self.stage.effect("after a sleep")
            return sources

        return wait

    def emit(self, event: events.Event) -> None:
        if not isinstance(event, events.JobStarted | events.JobEnded | events.JobRescued | events.JobLost):
            self.stage.note(str(event))
