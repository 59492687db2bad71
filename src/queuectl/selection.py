"""Many jobs at once for Python programs: what the selectors of the command line do. See client.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from queuectl.clock import Clock
from queuectl.errors import UsageError
from queuectl.job.change import read_change
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import FINAL, WAITING, State
from queuectl.job.model import Job
from queuectl.queue import amend, control, dlq
from queuectl.queue import wait as waiting
from queuectl.queue.filters import able_only
from queuectl.queue.pick import Answer
from queuectl.queue.pythonic import plain
from queuectl.store.protocol import Chosen, Filter, Reads, Store


class Hands(NamedTuple):
    """What a selection works with. Opening may make the home, so it comes last; looking makes nothing."""

    reads: Callable[[], Reads]
    open_store: Callable[[], Store]
    clock: Clock
    rescue: Callable[[], None]  # deals with the jobs of dead workers of this host
    home: str


class _Do(Protocol):
    def __call__(self, store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer: ...


class Selection:
    """The jobs that match, each time it is asked. A change is made to those that it can be made to, and tells what worked and
    what did not, and why, as `--json` does: `{"done": [ids], "refused": [{"id", "code", "message"}]}`. Raises InvalidInput if a
    state was named that it can not be made to, UsageError if nothing was said about which jobs.

    >>> from queuectl import Queue
    >>> with Queue() as queue:
    ...     _ = queue.enqueue_many(["true", "false"], batch="some")
    ...     some = queue.select(batch="some", match="false")
    ...     len(some.cancel()["done"]), [job.state.value for job in some]
    (1, ['cancelled'])
    """

    def __init__(self, where: Filter, hands: Hands) -> None:
        self._where = where
        self._hands = hands

    def __iter__(self) -> Iterator[Job]:
        """Newest first, in bounded memory."""
        return self._hands.reads().jobs(self._where)

    def __len__(self) -> int:
        return self._hands.reads().count(self._where)

    def cancel(self) -> dict[str, Any]:
        """Call them off; returns when it is so, also of those that run."""
        clock, rescue = self._hands.clock, self._hands.rescue

        def do(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
            return control.cancel(store, clock, refs, rescue=rescue, exact=exact)

        return self._act(do, control.CANCELLABLE, done="cancelled")

    def retry(self) -> dict[str, Any]:
        """Let those that failed, are dead or were cancelled run again, now."""
        return self._act(control.retry, control.REVIVABLE, done="retried")

    def edit(self, **fields: Any) -> dict[str, Any]:
        """Change those that wait; `fields` are those of `Queue.edit`.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue("true", queue="later", id="later-1")
        ...     queue.select(queue="later").edit(priority=-5, timeout="1h")
        {'done': ['later-1'], 'refused': []}
        """
        change = read_change({name: plain(value) for name, value in fields.items()})

        def do(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
            return amend.edit(store, refs, change, exact=exact)

        return self._act(do, WAITING, done="edited")

    def hold(self) -> dict[str, Any]:
        """Keep those that wait from being run until they are released."""
        return self._act(amend.hold, WAITING, done="held", wants=lambda job: not job.held)

    def release(self) -> dict[str, Any]:
        """Let go those that are held."""
        return self._act(amend.release, WAITING, done="released", wants=lambda job: job.held)

    def run_now(self) -> dict[str, Any]:
        """Make those due now that are delayed, held or wait for a retry."""
        return self._act(amend.run_now, amend.CLAIMABLE, done="made due")

    def purge(self) -> dict[str, Any]:
        """Remove those that are dead, with their history and logs."""
        return self._act(dlq.purge, dlq.DEAD, done="purged")

    def prune(self, *, older_than: str | float | timedelta = 0) -> dict[str, int]:
        """Remove those that have ended, and did so that long ago, with history, output and logs. Returns how many, by state."""
        from queuectl.upkeep import prune as use

        age = parse_duration_ms(plain(older_than), subject="older_than")
        where = self._able(FINAL, done="pruned")
        chosen = frozenset(job.id for job in self._hands.reads().choose(where))
        if not chosen:
            return {}
        store = self._hands.open_store()
        ages: dict[State, int | None] = {state: age for state in State if state in where.states}
        plan = use.Plan.by_age(ages, now_ms=store.now_ms(), only=chosen)
        writer = f"prune-{os.getpid()}"
        pruner = use.Pruner(store, home=self._hands.home, writer=writer, rows=use.ROWS_AT_ONCE)
        done = use.prune(pruner, plan, clock=self._hands.clock, advance=lambda _: None)
        return {state.value: jobs for state, jobs in done.jobs.items() if jobs}

    def wait(self, timeout: str | float | timedelta | None = None) -> list[Job]:
        """Those that have not ended now (or are in the states that were named), once they have. Raises WaitTimeout."""
        seconds = None if timeout is None else parse_duration_ms(plain(timeout), subject="timeout") / 1000
        where = self._where if self._where.states else self._where._replace(states=frozenset(State) - FINAL)
        ids = [job.id for job in self._hands.reads().choose(where)]
        return waiting.wait(self._hands.reads(), self._hands.clock, ids, timeout=seconds) if ids else []

    def _able(self, able: frozenset[State], *, done: str) -> Filter:
        if self._where.names_states_only and not self._where.states:
            # A list that is empty, or a name that is None, rather than a wish for all.
            raise UsageError("which jobs?", hint="choose them by state, queue, tag, batch, since or match")
        return able_only(self._where, able, done=done, subject="state")

    def _act(
        self, do: _Do, able: frozenset[State], *, done: str, wants: Callable[[Chosen], bool] = lambda _: True
    ) -> dict[str, Any]:
        where = self._able(able, done=done)
        ids = [job.id for job in self._hands.reads().choose(where) if wants(job)]
        answer = do(self._hands.open_store(), ids, exact=True) if ids else Answer([], [])
        return answer.to_dict()
