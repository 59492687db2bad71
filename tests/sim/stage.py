"""Who goes next, and what time it is: every participant is a thread, and exactly one of them runs.

A participant that comes to an effect passes the baton, and chance decides to which one: so a seed decides everything. A participant can be
crashed before and after each effect: it never runs again, and what it had open is closed as the kernel would.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import itertools
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

START_MS: Final = 1_767_323_045_000
LONGEST_NAP: Final = 9.0
TRACE: Final = 400  # events kept, to understand a failure
BEFORE_WRITING: Final = "before it begins to write"
AFTER_A_SIGNAL: Final = "after a signal"
AFTER_A_CLAIM: Final = "after a claim"
BEFORE_SETTLING: Final = "before it begins to settle"
BEFORE_A_SLEEP: Final = "before a sleep"
AFTER_AN_ORDER: Final = "after an order"
STEPS: Final = 8_000  # far more than any scene needs: a longer one is an endless loop


class Crashed(BaseException):
    """This participant is gone. Not an Exception: only the stage catches it."""


class Over(BaseException):
    """The play is over."""


class Violation(AssertionError):
    """Something that must never be."""


class Chances:
    """How likely each fault is, at each effect that it can strike. All zero: a quiet world."""

    def __init__(self, **given: float) -> None:
        self.crash = given.get("crash", 0.0)
        # Where it has begun to terminate a run, and not yet written why; where it waits, maybe because it could not write;
        # where it has begun what it has not noted.
        self.crash_at = {
            AFTER_A_SIGNAL: given.get("ending", 8 * self.crash),
            BEFORE_A_SLEEP: given.get("sleeping", self.crash),
            AFTER_AN_ORDER: given.get("ordered", self.crash),
        }
        self.freeze = given.get("freeze", 0.0)  # not scheduled for long, as by SIGSTOP
        # Where it has decided and not yet written, and where it has claimed and not yet begun: there it may do harm later.
        self.freeze_at = {
            BEFORE_WRITING: 4 * self.freeze,
            BEFORE_SETTLING: given.get("settling", 4 * self.freeze),
            AFTER_A_CLAIM: given.get("claimed", self.freeze),
            AFTER_AN_ORDER: given.get("requested", self.freeze),
        }
        self.stall = given.get("stall", 0.0)  # of a supervisor, that it is stopped before it starts what is requested
        self.least_nap = given.get("least_nap", 0.0)
        self.one_at_a_time = bool(given.get("one_at_a_time"))  # else those may be asleep, too, who would notice
        self.busy = given.get("busy", 0.0)
        self.full = given.get("full", 0.0)
        self.broken = given.get("broken", 0.0)  # an I/O error
        troubles = {"busy": self.busy, "full": self.full, "broken": self.broken}
        self.of_the_store = tuple(
            (name, likely) for name, likely in troubles.items() if likely
        )  # asked at every statement
        self.log = given.get("log", 0.0)  # a log or ledger that cannot be written
        self.drop = given.get("drop", 0.0)  # a wake-up that is lost
        self.delay = given.get("delay", 0.0)
        self.unstartable = given.get("unstartable", 0.0)
        self.supervisor = given.get("supervisor", 0.0)  # of a worker, that its supervisor is killed
        self.silence = given.get("silence", 0.0)  # that it is stopped for a while
        self.brief = given.get("brief", 0.5)  # of a process, that it is over at once
        self.long = given.get("long", 0.15)  # of a process, that it takes far longer than a lease, unless it is ended
        self.longest = given.get("longest", 3.0)  # seconds that any other takes


class Participant:
    def __init__(self, stage: Stage, name: str, host: Any, play: Callable[[], None]) -> None:
        self.name = name
        self.host = host
        self.is_gone = False  # crashed: nothing it does has any effect until it is born again
        self.is_done = False
        self.due = 0.0  # when to go on, unless something wakes it before
        self.frozen_until = 0.0
        self.refused_at = -1.0  # when it last could not write a file
        self.naps: list[tuple[float, float]] = []  # when it was frozen
        self.wakes: Callable[[], bool] | None = None
        self.descriptors: set[int] = set()
        self.on_crash: Callable[[], None] = lambda: None
        self.baton = threading.Lock()
        self.baton.acquire()
        self._stage = stage
        self._play = play
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def awake(self, since: float, now: float, *, longest_nap: float) -> float:
        """For how long of that time it was not frozen; shorter naps do not count."""
        naps = [(begin, end) for begin, end in self.naps if end - begin > longest_nap]
        return now - since - sum(max(0.0, min(end, now) - max(begin, since)) for begin, end in naps)

    def _run(self) -> None:
        self.baton.acquire()
        try:
            if not self._stage.is_over:
                self._play()
        except Over:
            pass
        except BaseException as exc:  # noqa: BLE001 - whatever it is, it is told with the seed
            self._stage.fail(exc)
        self.is_done = True
        self._stage.leave(self)


class Stage:
    def __init__(self, seed: int, *, chances: Chances) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.chances = chances
        self.now = 1000.0
        self.steps = 0
        self.is_over = False
        self.failure: BaseException | None = None
        self.current: Participant | None = None
        self.participants: list[Participant] = []
        self.crashes_left = 4
        self.trace: deque[str] = deque(maxlen=TRACE)
        self.is_aside = False  # what happens now is done by none of the participants
        self.hidden = ""  # the folder of this play: another one every time
        self._digest = hashlib.sha256()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._finished = threading.Lock()
        self._finished.acquire()

    # ── the play ────────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, name: str, host: Any, play: Callable[[], None]) -> Participant:
        participant = Participant(self, name, host, play)
        self.participants.append(participant)
        return participant

    def run(self) -> None:
        """Play until it is over, and raise what went wrong."""
        for participant in self.participants:
            participant.thread.start()
        self._hand_to(self.participants[0])
        self._finished.acquire()
        for participant in self.participants:
            participant.thread.join()
        if self.failure is not None:
            raise self.failure

    def fail(self, exc: BaseException) -> None:
        if self.failure is None:
            self.failure = exc
            self.note(f"!! {type(exc).__name__}: {exc}")
        self.is_over = True

    def leave(self, participant: Participant) -> None:
        """The last act of a thread."""
        self._close_all(participant)
        left = [one for one in self.participants if not one.is_done]
        if not left:
            self._finished.release()
        else:
            chosen = self._next()
            self._hand_to(left[0] if self.is_over else chosen)

    def me(self) -> Participant:
        assert self.current is not None
        return self.current

    def here(self) -> Participant:
        """The same, for a participant that is about to have an effect: one that is gone has none."""
        me = self.me()
        if self.is_over:
            raise Over
        if me.is_gone:
            raise Crashed
        return me

    def note(self, text: str) -> None:
        self.tell(f"{self.current.name if self.current else '-':<4} {text}")

    def tell(self, text: str) -> None:
        """The same for what happens by itself."""
        line = f"{self.now - 1000:9.4f}  {text.replace(self.hidden, '') if self.hidden else text}"
        self._digest.update(line.encode())
        self.trace.append(line)

    @property
    def digest(self) -> str:
        """Of all that was ever noted: two plays of one seed have the same."""
        return self._digest.hexdigest()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        before, self.is_aside = self.is_aside, True
        try:
            yield
        finally:
            self.is_aside = before

    # ── effects ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def effect(self, what: str) -> None:
        """Just before or after something that others can see: they may go first, and we may be gone."""
        me = self.here()
        chance, faults = self.random.random, self.chances
        self.now += chance() * 0.001
        if faults.crash and self.crashes_left > 0 and chance() < faults.crash_at.get(what, faults.crash):
            self.crashes_left -= 1
            self.note(f"CRASHES {what}")
            self._die(me)
        if faults.freeze and chance() < faults.freeze_at.get(what, faults.freeze) and self._may_freeze():
            self.freeze(me, faults.least_nap + chance() * (LONGEST_NAP - faults.least_nap))
            self.note(f"stands still {what} until {me.frozen_until - 1000:.4f}")
            self.pause()
        elif chance() < 0.3:
            self.pause()

    def _may_freeze(self) -> bool:
        return not (self.chances.one_at_a_time and any(one.frozen_until > self.now for one in self.participants))

    def freeze(self, participant: Participant, seconds: float) -> None:
        """As SIGSTOP and, later, SIGCONT."""
        begin, end = max(self.now, participant.frozen_until), self.now + seconds
        if begin < end:
            participant.frozen_until = end
            participant.naps.append((begin, end))

    def thaw(self, participant: Participant, seconds: float) -> None:
        """It goes on so soon, if it is frozen."""
        end = self.now + seconds
        if participant.frozen_until > end:
            participant.frozen_until = end
            # All of them: one that was frozen twice has two that lie behind each other.
            participant.naps = [(begin, min(until, end)) for begin, until in participant.naps if begin < end]

    def strikes(self, chance: float) -> bool:
        return bool(chance) and self.random.random() < chance

    def wait(self, seconds: float, wakes: Callable[[], bool] | None = None) -> None:
        """Until that time has passed, or `wakes` says yes."""
        me = self.here()
        me.due, me.wakes = self.now + seconds, wakes
        self.pause()
        me.wakes = None

    def pause(self) -> None:
        """Let a participant continue, maybe ourselves."""
        me = self.me()
        chosen = self._next()
        if chosen is not me:
            self._hand_to(chosen)
            me.baton.acquire()
        if self.is_over:
            raise Over
        if me.is_gone:  # meanwhile
            raise Crashed

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Something that happens by itself."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), act))

    def born_again(self) -> None:
        """A new process takes the place of the one that crashed."""
        me = self.me()
        me.is_gone = False
        me.due, me.wakes, me.frozen_until = self.now, None, 0.0

    def _die(self, me: Participant) -> None:
        me.is_gone = True
        me.on_crash()
        self._close_all(me)
        raise Crashed

    def cut_off(self, participant: Participant) -> None:
        """It is gone, whichever runs now: it finds out as soon as it is its turn."""
        participant.is_gone = True
        self._close_all(participant)
        self.thaw(participant, 0.0)
        participant.due, participant.wakes = self.now, None

    def _close_all(self, participant: Participant) -> None:
        for fd in participant.descriptors:
            with contextlib.suppress(OSError):
                os.close(fd)
        participant.descriptors.clear()

    def _hand_to(self, participant: Participant) -> None:
        self.current = participant
        participant.baton.release()

    def _next(self) -> Participant:
        self.steps += 1
        if self.steps > STEPS and not self.is_over:
            self.fail(Violation("it never comes to rest"))
        if self.is_over:
            return self.me()
        while True:
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            now = self.now
            ready = [
                one
                for one in self.participants
                if not (one.is_done or one.frozen_until > now)
                and (one.due <= now or (one.wakes is not None and one.wakes()))
            ]
            if ready:
                return ready[0] if len(ready) == 1 else ready[int(self.random.random() * len(ready))]
            self._let_time_pass()

    def _let_time_pass(self) -> None:
        moments = [max(one.due, one.frozen_until) for one in self.participants if not one.is_done]
        if self._events:
            moments.append(self._events[0][0])
        self.now = max(self.now, min(moments))
