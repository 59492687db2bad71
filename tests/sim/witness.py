"""Sees every commit and every process, and says what must never be.

It knows nothing of how the store does it: it compares what was in the tables before a commit with what is in them after it,
and both with what the simulated processes really did.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from queuectl.jobs.outcome import Ending, Exited, Signalled
from queuectl.jobs.priority import Ageing, Standing, rank
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import FINAL, TRANSITIONS, Event, State
from queuectl.paths import wakeup_file
from queuectl.process.model import Child
from tests.sim.host import Host, Process
from tests.sim.records import COLUMNS, Row, Taken
from tests.sim.stage import Stage, Violation
from tests.sim.supervisor import Supervisor
from tests.sim.worker import Worker

if TYPE_CHECKING:
    from tests.sim.store import SimStore

FAILURES: Final = {Ending.FAILED, Ending.TIMEOUT, Ending.SIGNALLED, Ending.UNSTARTABLE}
ABOUT_WORKERS: Final = {"register", "heartbeat", "retire", "fence"}  # what these change of jobs, the next commit shows
JUST_NOW: Final = 0.1
MOST_DELAY: Final = 2.0  # of an end that is due: a store that cannot be asked is waited for, for a while
PEOPLE: Final = {"cancel": Event.CANCEL, "retry": Event.RETRY}


class Witness:
    first_states = frozenset({State.PENDING})

    def __init__(
        self,
        db: sqlite3.Connection,
        stage: Stage,
        hosts: Sequence[Host],
        *,
        ageing: Ageing,
        max_crashes: int,
        lease: float,
    ):
        self.db = db
        self.acknowledged: set[str] = set()
        self.purged: set[str] = set()
        self.taken: dict[str, Taken] = {}  # by token
        self.settled: dict[str, str] = {}  # token -> by which verb
        self._given_back: set[str] = set()  # tokens of claims that left no run
        self.happened: Counter[str] = Counter()  # how often what `totals` counts
        self.spawned: dict[str, Process] = {}  # token -> the leader
        self.serving: dict[str, Worker] = {}  # name -> whose it is
        self.fenced: set[str] = set()  # tokens of fenced workers
        self._barred: set[str] = set()  # the same, at once, until they are adopted: they may not be settled
        self.kept: dict[str, Supervisor] = {}  # token -> whose child the leader is
        self.cared: dict[str, float] = {}  # token -> since when the worker that has it now could look after it
        self._made_at: dict[str, float] = {}  # token -> when its process was
        self._bereft: set[str] = set()  # tokens of workers that were dead when they were fenced, from their own host
        self._wordless: set[str] = set()  # tokens whose termination could not be written: the disk was full
        self._given_up: set[str] = set()  # tokens of workers that were fenced by a process that lets no worker adopt
        self.strays: set[str] = set()  # jobs given back while a run of theirs went on where it could not be seen
        self.jumps = 0
        self._stage = stage
        self._hosts = {host.name: host for host in hosts}
        self._ageing = ageing
        self._max_crashes = max_crashes
        self._lease = lease
        self._signs: dict[str, float] = {}
        self.rows = self._read()
        for host in hosts:
            host.watch_signal = self._signalled

    def _read(self) -> dict[int, Row]:
        return {row[0]: Row._make(row) for row in self.db.execute(f"select {COLUMNS} from jobs")}

    def must(self, holds: object, what: str) -> None:
        if not holds:
            raise Violation(what)

    # ── what it is told ─────────────────────────────────────────────────────────────────────────────────────────────

    def notify_late(self, bells: Sequence[tuple[str, str]]) -> None:
        for home, worker in bells:
            try:
                fd = os.open(wakeup_file(home, worker), os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                continue
            os.write(fd, b"!")
            os.close(fd)

    def _check_fence(self, worker: str) -> None:
        """Only who is gone, or was silent for a lease while the other could have heard it, may be fenced."""
        serving, now = self.serving.get(worker), self._stage.now
        if serving is None or serving.is_gone or serving.participant is self._stage.me():
            return
        if self.db.execute("select state from workers where id = ?", (worker,)).fetchone() != ("lost",):
            return  # nothing was done: it was another one that was meant
        sign = self._signs.get(worker, 0)
        # For half of a lease it may be deaf and not notice.
        heard = self._stage.me().awake(sign, now, longest_nap=self._lease / 2)
        self.must(
            now - sign >= self._lease and heard >= self._lease / 2,
            f"{worker} lives, gave its signs, and is taken for lost",
        )

    def was_fenced(self, worker: str, tokens: Sequence[str], *, by: SimStore, is_silent: bool) -> None:
        self.fenced.update(tokens)
        victim = self.serving.get(worker)
        if victim is not None and victim.is_gone and victim.host is by.host and not (is_silent or by.spares_nothing):
            self._bereft.update(set(tokens) - self._given_up)
        else:  # and that process continues, whatever others do
            self._given_up.update(tokens)
            self._bereft.difference_update(tokens)

    def _signalled(self, process: Process) -> None:
        """Only what belongs to a run of ours, or of a fenced worker, may be signalled."""
        taken = self.taken.get(process.token)
        self.must(taken, f"a process that is none of ours, {process.pid}, is signalled")
        assert taken is not None
        is_mine = taken.process is not None and taken.process.participant is self._stage.me()
        self.must(
            is_mine or process.token in self.fenced, f"{process.job} of {taken.worker} is signalled ({process.token})"
        )
        if self._stage.now - self._stage.me().refused_at < JUST_NOW:
            self._wordless.add(process.token)

    def made(self, host: Host, leader: Process, supervisor: Supervisor) -> None:
        token = leader.token
        self.kept[token] = supervisor
        self._made_at[token] = self.cared[token] = self._stage.now
        self.must(token not in self.spawned, f"two processes for one claim of {leader.job} ({token})")
        self.spawned[token] = leader
        self.must(token in self.taken, f"{leader.job} runs without a claim ({token})")
        by = self.settled.get(token)
        self.must(by is None, f"{leader.job} is run after its run was settled by {by} ({token})")
        for other in (one for host in self._hosts.values() for one in host.living()):
            twice = other.job == leader.job and other.token not in {token, *self.settled}
            self.must(not twice, f"{leader.job} runs twice, as {other.pid} ({other.token}) and {leader.pid} ({token})")

    def adopted(self, worker: Worker, child: Child, token: str, *, is_running: bool) -> None:
        leader, taken = self.spawned[token], self.taken[token]
        # Its number may be another's by now.
        self.must(is_running == (leader.how is None), f"another process is taken for {taken.job} ({token})")
        self.must((leader.pid, leader.started) == child, f"{taken.job} is adopted as {child} ({token})")
        self.must(token in self.fenced, f"{taken.job} is adopted, and its worker was not fenced ({token})")
        self.must(self.kept[token].host is worker.host, f"{taken.job} is adopted on another machine ({token})")
        is_of_now = self.kept[token].machine == worker.host.machine
        self.must(is_of_now, f"{taken.job} is adopted, and the power was gone since it ran ({token})")
        name = next(name for name, one in self.serving.items() if one is worker)
        self.must(name == taken.worker, f"{taken.job} of {taken.worker} is adopted by {name} ({token})")
        self.taken[token] = taken._replace(process=worker)
        self.cared[token] = self._stage.now
        self._barred.discard(token)

    def lost_power(self, host: Host) -> None:
        """Nothing that ran there can be known any more, whatever a ledger says."""
        for supervisor in self.kept.values():
            if supervisor.host is host:
                supervisor.noted.clear()

    def _can_be_known(self, token: str) -> bool:
        """A supervisor forgets a run only once the store has its end: that it was told to is no excuse. One that is stopped writes
        nothing, and the worker that has adopted the run waits for it no longer than `WRITE_TIMEOUT`."""
        supervisor = self.kept.get(token)
        if (
            supervisor is None
            or not supervisor.is_signed
            or token not in supervisor.noted
            or token in supervisor.refused
        ):
            return False
        return token in supervisor.finished or not (supervisor.is_killed or supervisor.is_stopped)

    # ── a commit ────────────────────────────────────────────────────────────────────────────────────────────────────

    def committed(self, store: SimStore) -> bool:
        """Returns whether something was claimed."""
        if store.verb == "fence":
            self._check_fence(store.worker)
            self._barred.update(row.token for row in self.rows.values() if row.token and row.worker == store.worker)
        elif store.verb in ("register", "heartbeat"):
            self._signs[store.worker] = self._stage.now
        if store.verb in ABOUT_WORKERS:
            return False
        before, self.rows = self.rows, self._read()
        if before == self.rows:
            return False
        verb = store.verb
        claimed: list[Row] = []
        for seq, was in before.items():
            if seq not in self.rows:
                self.must(verb == "purge" and was.state == State.DEAD, f"{was.id}, {was.state}, is gone after {verb}")
                self.purged.add(was.id)
        for seq, row in self.rows.items():
            old = before.get(seq)
            if old is None:
                self.must(verb == "enqueue", f"{row.id} appeared by {verb}")
                self.happened["enqueued"] += 1
                self.must(row.state in self.first_states, f"{row.id} begins as {row.state}")
            elif old != row:
                self._compare(old, row, store)
                if row.token is not None and row.token != old.token:
                    claimed.append(row)
        if claimed:
            self._check_claims(claimed, before, store)
        self._check_counts()
        return bool(claimed)

    def _compare(self, old: Row, row: Row, store: SimStore) -> None:
        verb = store.verb
        if old.token is not None and old.token != row.token:
            if row.runs == old.runs - (row.token is None):
                self._check_given_back(old, row, store)
                old = old._replace(runs=old.runs - 1)
            else:
                self._check_end(old, row, store)
            old = old._replace(state=row.state if row.token is None else State.PENDING, attempts=row.attempts)
            old = old._replace(crashes=row.crashes)
        if row.token is not None and row.token == old.token and row.worker != old.worker:
            self.must(verb == "adopt", f"{row.id} passes from {old.worker} to {row.worker} by {verb}")
            self.must(row.worker == store.worker, f"{row.id} is adopted by {store.worker} for {row.worker}")
            self.taken[row.token] = self.taken[row.token]._replace(worker=store.worker, process=None)
        if row.token is not None and row.token != old.token:
            self.must(verb == "exchange", f"{row.id} is claimed by {verb}")
            self.must(old.state in ("pending", "failed"), f"{row.id}, {old.state}, is claimed")
            self.must(row.runs == old.runs + 1, f"{row.id} has run {row.runs} after run {old.runs}")
            self.must(row.token not in self.taken, f"the token {row.token} is given twice")
            self.must(row.worker == store.worker, f"{row.id} is claimed by {store.worker} for {row.worker}")
            self.taken[row.token] = Taken(row.id, row.runs, store.worker, self.serving.get(store.worker))
        elif old.state != row.state:
            self.must(verb in PEOPLE, f"{row.id} goes from {old.state} to {row.state} by {verb}")
            after = TRANSITIONS.get((State(old.state), PEOPLE.get(verb, Event.CLAIM)))
            self.must(after == row.state, f"{row.id} goes from {old.state} to {row.state} by {verb}")
            kept = verb == "cancel" or old.state == State.FAILED
            self.must(
                row.attempts == (old.attempts if kept else 0), f"{row.id} has {row.attempts} attempts after {verb}"
            )
            self.must(row.crashes == (old.crashes if kept else 0), f"{row.id} has {row.crashes} crashes after {verb}")
        else:
            self.must((row.attempts, row.crashes) == (old.attempts, old.crashes), f"{row.id} is charged by {verb}")
        allowed = allowed_failures(row.max_retries, first_is_free=bool(row.first_is_free))
        self.must(row.attempts <= allowed, f"{row.id} has failed {row.attempts} times of {allowed}")
        self.must(row.crashes <= self._max_crashes, f"{row.id} was lost {row.crashes} times of {self._max_crashes}")

    def _check_given_back(self, old: Row, row: Row, store: SimStore) -> None:
        """The claim `old.token` has left no run: nothing of it can have begun."""
        token = self._note_end(old, row, store)
        self._given_back.add(token)
        self.must(token not in self.spawned, f"{row.id} is given back, and has begun ({token})")
        self.must(not old.cancel_requested, f"{row.id} was cancelled and is given back")
        counts = (row.attempts, row.crashes)
        self.must(counts == (old.attempts, old.crashes), f"{row.id} was given back and has {counts}")
        self.must(row.token is not None or row.state == State.PENDING, f"{row.id} was given back and is {row.state}")

    def _note_end(self, old: Row, row: Row, store: SimStore) -> str:
        """Returns the token of the claim that is over."""
        token, verb = old.token or "", store.verb
        self.must(verb in ("exchange", "rescue"), f"{row.id} is ended by {verb}")
        self.must(token not in self.settled, f"{row.id} is settled twice ({token})")
        self.settled[token] = verb
        return token

    def _check_end(self, old: Row, row: Row, store: SimStore) -> None:
        """The run `old.token` is over."""
        token, verb = self._note_end(old, row, store), store.verb
        ending, code, number = row.ending, row.exit_code, row.signal
        if row.token is not None:  # given back and claimed again at once
            asked = "select ending, exit_code, signal from runs where job = ? and number = ?"
            found = self.db.execute(asked, (row.seq, old.runs)).fetchone()
            self.must(found, f"run {old.runs} of {row.id} is not in its history")
            ending, code, number = found
        self.must(ending is not None, f"{row.id} ended without an ending")
        self.happened["completed"] += ending == Ending.COMPLETED
        self.happened["failed"] += ending in FAILURES
        self.happened["rescued"] += ending == Ending.LOST
        taken = self.taken[token]
        leader = self.spawned.get(token)
        if verb == "exchange":
            mine = taken.worker == store.worker and taken.process is self.serving.get(store.worker)
            self.must(mine, f"{store.worker} settled the run of {taken.worker} ({row.id}, {token})")
            self.must(token not in self._barred, f"{store.worker} settled {row.id} after it was fenced ({token})")
            self.must(leader is None or leader.how is not None, f"{row.id} is settled while it runs ({token})")
            # Also if that was a worker that is dead: it has to write the reason first, if it can.
            charged = leader is not None and leader.is_ended_by_us and ending in (Ending.SIGNALLED, Ending.FAILED)
            self.must(
                not charged or token in self._wordless, f"{row.id} is charged for having been ended by us ({token})"
            )
            self._check_truth(row.id, token, str(ending), code, number)
            self._check_time(old, token, str(ending))
        else:
            self._check_nothing_runs(row.id, token)
            if any(one.token == token for host in self._hosts.values() for one in host.living()):
                self.strays.add(row.id)
        if ending == Ending.LOST:
            # Unless it ended of what a rescue did to it that did not come to its end: that tells nothing about the job.
            is_untold = leader is not None and leader.is_ended_by_us
            could = token in self._bereft and self._can_be_known(token) and not is_untold
            self.must(not could, f"{row.id} is lost, and it can be known how it ends ({token})")
            self.must(row.crashes == old.crashes + 1, f"{row.id} was lost, and has {row.crashes} crashes")
            self.must(verb == "rescue", f"{row.id} was lost by {verb}")
            self.must(
                (row.crashes >= self._max_crashes) == (row.state == State.DEAD), f"{row.id}, lost, is {row.state}"
            )
        elif row.state != State.PENDING or row.token is None:
            self.must(row.crashes == old.crashes, f"{row.id} has {row.crashes} crashes without being lost")
        self.must(
            row.attempts == old.attempts + (ending in FAILURES), f"{row.id} has {row.attempts} attempts, {ending}"
        )
        if row.token is None:
            expected = self._after(str(ending), row)
            self.must(row.state == expected, f"{row.id} ended {ending} and is {row.state}")
        cancelled = bool(old.cancel_requested)
        self.must(not cancelled or ending == Ending.CANCELLED, f"{row.id} was cancelled and ended {ending}")

    def _after(self, ending: str, row: Row) -> str:
        allowed = allowed_failures(row.max_retries, first_is_free=bool(row.first_is_free))
        match ending:
            case Ending.COMPLETED:
                return State.COMPLETED
            case Ending.CANCELLED:
                return State.CANCELLED
            case Ending.RELEASED:
                return State.PENDING
            case Ending.LOST:
                return State.DEAD if row.crashes >= self._max_crashes else State.PENDING
            case _:
                return State.DEAD if row.attempts >= allowed else State.FAILED

    def _check_truth(self, job: str, token: str, ending: str, code: int | None, number: int | None) -> None:
        """What is written is what the process did."""
        leader = self.spawned.get(token)
        how = None if leader is None else leader.how
        told = f"{job} ended {ending} ({token}), and its process {how or 'never was'}"
        match ending:
            case Ending.COMPLETED:
                self.must(how == Exited(0), told)
            case Ending.FAILED:
                self.must(how == Exited(code or 0) and code, told)
            case Ending.SIGNALLED:
                self.must(how == Signalled(number or 0), told)
            case Ending.UNSTARTABLE:
                self.must(leader is None, told)
            case Ending.TIMEOUT | Ending.CANCELLED | Ending.RELEASED if leader is not None and not code:
                if ending != Ending.CANCELLED:
                    self._check_nothing_runs(job, token)

    def _check_time(self, row: Row, token: str, ending: str) -> None:
        """A time limit is kept by the worker that watches the run, if it was awake."""
        if row.timeout_ms is None or ending not in (Ending.COMPLETED, Ending.FAILED):
            return
        since = self.cared[token]
        limit = max(self._made_at[token] + row.timeout_ms / 1000, since) + MOST_DELAY
        napped = any(end > since for _, end in self._stage.me().naps)
        lasted = self.spawned[token].ended_at - self._made_at[token]
        self.must(napped or self.spawned[token].ended_at <= limit, f"{row.id} ran for {lasted:.1f} s ({token})")

    def _check_nothing_runs(self, job: str, token: str) -> None:
        """Of a machine where it could be seen: on another one only its own worker can end it."""
        host = self._stage.me().host
        left = [one.pid for one in host.living() if one.token == token]
        self.must(not left, f"{job} is given back while its processes {left} run ({token})")

    def _check_claims(self, claimed: list[Row], before: dict[int, Row], store: SimStore) -> None:
        known = self.db.execute("select state from workers where id = ?", (store.worker,)).fetchone()
        self.must(known and known[0] != "lost", f"{store.worker} claims and is {known and known[0]}")
        asked = store.asked
        assert asked is not None
        self.must(len(claimed) <= asked.limit, f"{store.worker} asked for {asked.limit} and has {len(claimed)}")
        now = store.host.now_ms()
        is_sure = store.since_jumps == self.jumps
        for row in claimed:
            self.must(asked.queues is None or row.queue in asked.queues, f"{row.id} of {row.queue} is not asked for")
            old = before[row.seq]
            due = old.ready or old.token is not None or row.run_at <= now or not is_sure
            self.must(due and not row.held, f"{row.id} is claimed before its time")
        last = max(self._place(row, asked.queues) for row in claimed)
        latest = min(now, store.since_ms) if is_sure else 0
        for row in self.rows.values():
            waits = row.state in ("pending", "failed") and not row.held and (row.ready or row.run_at <= latest)
            if waits and (asked.queues is None or row.queue in asked.queues):
                self.must(self._place(row, asked.queues) > last, f"{row.id} was before {[one.id for one in claimed]}")

    def _place(self, row: Row, queues: tuple[str, ...] | None) -> tuple[int, int, int]:
        standing = Standing(row.priority, row.seq, row.eligible_at, row.missed)
        return (queues.index(row.queue) if queues else 0, rank(self._ageing, standing), row.seq)

    def _check_counts(self) -> None:
        real = Counter((row.queue, row.state) for row in self.rows.values())
        told: Counter[tuple[str, str]] = Counter()
        for queue, was, now, jobs in self.db.execute("select queue, was, now, jobs from moves"):
            told[queue, now] += jobs
            told[queue, was] -= jobs
        wrong = {key: count for key, count in told.items() if key[1] and count != real[key]}
        self.must(not wrong and set(real) <= set(told), f"the counts say {wrong}, the jobs {dict(real)}")

    # ── at quiet ────────────────────────────────────────────────────────────────────────────────────────────────────

    def unfinished(self) -> list[str]:
        return [f"{row.id} is {row.state}" for row in self.rows.values() if row.state not in FINAL]

    def check_totals(self, totals: dict[str, dict[str, int]]) -> None:
        """They only grow, whatever is purged."""
        real = {**self.happened, "started": len(self.taken)}
        told = {name: sum(of_queue[name] for of_queue in totals.values()) for name in real}
        self.must(told == real, f"the totals say {told}, and what happened is {real}")

    def check_end(self) -> None:
        """All faults are over, and nothing changes any more."""
        self.rows = self._read()
        known = {row.id for row in self.rows.values()} | self.purged
        self.must(self.acknowledged <= known, f"lost: {sorted(self.acknowledged - known)}")
        dead = [name for (name,) in self.db.execute("select id from workers") if self.serving[name].is_gone]
        self.must(not dead, f"no worker has rescued {dead}")
        self._check_history()
        self._check_counts()

    def _check_history(self) -> None:
        by_id = {row.id: row for row in self.rows.values()}
        archived: dict[int, dict[int, Any]] = {}
        for job, number, *facts in self.db.execute("select job, number, worker, pid, ending from runs"):
            archived.setdefault(job, {})[number] = facts
        for row in self.rows.values():
            history = archived.setdefault(row.seq, {})
            if row.ending is not None:
                history[row.runs] = (row.worker, row.pid, row.ending)
            self.must(
                sorted(history) == list(range(1, row.runs + 1)), f"{row.id}: runs {sorted(history)} of {row.runs}"
            )
        for token, taken in self.taken.items():
            if (job := by_id.get(taken.job)) is None or token in self._given_back:
                continue
            worker, pid, ending = archived[job.seq][taken.run]
            told = f"run {taken.run} of {taken.job} ({token})"
            self.must(worker == taken.worker, f"{told} was of {taken.worker}, its history says {worker}")
            leader = self.spawned.get(token)
            self.must(pid is None or (leader and leader.pid == pid), f"{told} has pid {pid} and not its own")
            excused = leader is None or ending in (Ending.LOST, Ending.CANCELLED)
            self.must(pid is not None or excused, f"{told} has no pid")
