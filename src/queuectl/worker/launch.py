"""From a claim to a running process: its words, its environment, its log."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from queuectl.clock import boot_ticks
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import NotStarted, Refused
from queuectl.logs.frames import start_line
from queuectl.logs.parents import folder_of, share_logs
from queuectl.policy.evaluator import Decision, Request
from queuectl.policy.gate import Gate, between_of, shell_words
from queuectl.policy.rules import Refusal, is_delivery
from queuectl.process.ledger import LOST, EndBegun, Footprint, Ledger
from queuectl.process.libc import Words
from queuectl.process.limiting import limited
from queuectl.process.orders import CannotLog
from queuectl.process.protocol import Begun, CannotSpawn, Order
from queuectl.process.watch import Adoption, Child
from queuectl.secrets.resolver import Secret, Unresolved
from queuectl.secrets.rules import parse_stored
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import DELIVER_PROGRAM
from queuectl.worker.running import Running, Why
from queuectl.worker.seen import OF_A_RUN, PARENT_LOGS, PARENTS, Environments, Seen, joined

Take = Callable[[Claim], Sequence[Secret] | Unresolved]


class Ready(NamedTuple):
    """All that a run needs but its process and its log."""

    order: Order
    claim: Claim
    slot: int


# Something that is no log of ours lies in this job's place: its own failure, and nobody else's.
_ONLY_THIS_LOG: Final = frozenset({errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL, errno.ENAMETOOLONG})


class Unstarted(NamedTuple):
    """There is no process, and why."""

    claim: Claim
    problem: str
    began: float
    log_from: int | None  # None: nor a log


class Unlogged(NamedTuple):
    """There is no process, for its log cannot be written. That is our trouble, not the job's failure."""

    claim: Claim
    problem: str


class Launcher:
    def __init__(
        self,
        *,
        worker: str,
        home: str,
        db: str | None,
        ledger: Ledger,
        is_shared: bool,
        gate: Gate,
    ) -> None:
        """`is_shared`: what runs print goes to a store that others read, see streaming.py. `gate`: what may be started here."""
        self.worker = worker
        # While we read it for others, all that is in a log behind its START line has to be output.
        self._ends_logs = not is_shared
        self._ledger = ledger
        self._environments = Environments(gate.environment, home=home, worker=worker, db=db)
        self._gate = gate

    def may_have(self, claim: Claim) -> bool:
        """Whether the policy lets it have its secrets."""
        evaluator = self._gate.policy.evaluator
        return evaluator is None or evaluator.of(claim.queue).against_secrets(parse_stored(claim.secrets)) is None

    def prepare_all(
        self, placed: Sequence[tuple[Claim, int, int]], *, now_ms: int, secrets: Take = lambda _: ()
    ) -> tuple[list[Ready], list[tuple[Claim, Refused | NotStarted]]]:
        """Those that can begin, each with its slot and place, and those that the policy is against, or that lack what they need.
        `secrets` tells those of a claim, once."""
        ready: list[Ready] = []
        refused: list[tuple[Claim, Refused | NotStarted]] = []
        for claim, slot, place in placed:
            one = self.prepare(claim, slot=slot, place=place, now_ms=now_ms, secrets=secrets)
            if isinstance(one, Ready):
                ready.append(one)
            else:
                refused.append((claim, one))
        return ready, refused

    def prepare(
        self, claim: Claim, *, slot: int, place: int, now_ms: int, secrets: Take = lambda _: ()
    ) -> Ready | Refused | NotStarted:
        """Everything up to the process. `place`: in the ledger."""
        evaluator, permit, seen = self._gate.policy.evaluator, None, self._environments.base
        if evaluator is not None and not is_own_program(claim):
            judged = self._gate.admit(_wish(claim))
            if isinstance(judged, Refusal):
                return Refused(*judged)
            seen = self._environments.of(evaluator.of(claim.queue), judged.account)
            permit, claim = judged, claim._replace(timeout_ms=judged.timeout_ms, limits=judged.limits)
        known = secrets(claim) if claim.secrets else ()
        if isinstance(known, Unresolved):
            return NotStarted(known.problem)
        base, env = _environment(claim, slot, seen, known)
        order = self._order(claim, base, env, place=place, now_ms=now_ms)
        if known:
            order = order._replace(masks=[(secret.entry, secret.value) for secret in known])
        if permit is None:
            return Ready(limited(order, claim.limits), claim, slot)
        if permit.account is not None and claim.parents:
            share_logs(claim.log, claim.run, claim.parents, reader=permit.account.uid)
        return Ready(limited(_as_permitted(order, permit), claim.limits), claim, slot)

    def _order(self, claim: Claim, base: Words, env: Sequence[bytes], *, place: int, now_ms: int) -> Order:
        head, is_first = start_line(claim.run, worker=self.worker, now_ms=now_ms), claim.run == 1
        of_log = (claim.log, head, is_first, self._ends_logs)
        return Order(words(claim), claim.cwd, base, env, *of_log, place, claim.token)

    def note(self, ready: Ready, begun: Begun) -> Running | Unstarted | Unlogged:
        """What has become of it."""
        order, claim, slot = ready
        child, began, log_from = begun
        match child:
            case CannotLog():
                if child.errno in _ONLY_THIS_LOG:
                    return Unstarted(claim, f"its log {claim.log} cannot be written: {child}", began, None)
                return Unlogged(claim, f"cannot write {claim.log}: {child}")
            case CannotSpawn():
                return Unstarted(claim, str(child), began, log_from)
            case _:
                return Running(claim, slot, order.place, child, began, log_from, _deadline(claim, began))

    def adopt(self, adoption: Adoption, *, slot: int, place: int, began: float) -> Running:
        """A run that another has begun. Noted, or nobody would know of it after us."""
        claim, footprint, ledger, *_ = adoption
        if (evaluator := self._gate.policy.evaluator) is not None:
            rules = evaluator.of(claim.queue)
            limits = rules.capped_limits(claim.limits)
            claim = claim._replace(timeout_ms=rules.capped(claim.timeout_ms), limits=limits)
        pid, started, log_from, *_ = footprint
        with contextlib.suppress(OSError):  # a full disk: then there is the mark
            note = Footprint(pid, started, log_from, kept=os.path.basename(ledger))
            self._ledger.write(place, claim.token, note)
        child, deadline = Child(pid, started), _deadline(claim, began)
        return Running(claim, slot, place, child, began, log_from, deadline, adoption.may_be_closed)

    def note_end(self, run: Running, why: Why | EndBegun) -> None:
        """That we are about to end it: whoever comes after us goes on with that, and does not take our signal for its own end."""
        with contextlib.suppress(OSError):  # a full disk: then it counts as ended by itself
            if isinstance(why, Why):  # else another had begun it, and what counts is when
                why = EndBegun(LOST if run.is_lost or why is Why.UNTOLD else why.value, boot_ticks())
            self._ledger.note_end(run.place, run.claim.token, why)

    def is_taken(self, token: str) -> bool:
        """Whether somebody else has begun to end a run of ours: its log is theirs to close."""
        return token in self._ledger.added_ends()

    def note_unbegun(self, tokens: Collection[str]) -> None:
        """All that we have claimed and not begun: if we are gone, nobody is charged with it."""
        with contextlib.suppress(OSError):  # a full disk: then it counts as begun
            self._ledger.note_unbegun(tokens)


def _environment(claim: Claim, slot: int, seen: Seen, secrets: Sequence[Secret]) -> tuple[Words, Sequence[bytes]]:
    base, hidden = seen.joined, {secret.variable.encode(): secret.value for secret in secrets}
    if claim.env or hidden:
        # Text of the job, not of this process: UTF-8, whatever the locale of the worker is.
        of_job = {name.encode(): value.encode() for name, value in (claim.env or {}).items()}
        variables = {**seen.variables, **of_job, **seen.ours}
        base = joined({name: value for name, value in variables.items() if name not in hidden})
    values = (
        claim.id.encode(),
        b"%d" % claim.run,
        b"%d" % (claim.attempts + 1),
        claim.queue.encode(),
        b"%d" % slot,
        claim.token.encode(),
    )
    of_run = [b"%b=%b" % item for item in zip(OF_A_RUN, values, strict=True)]
    of_run += [b"%b=%b" % item for item in hidden.items()]
    if claim.parents:
        of_run.append(b"%b=%b" % (PARENTS, " ".join(claim.parents).encode()))
        of_run.append(b"%b=%b" % (PARENT_LOGS, os.fsencode(folder_of(claim.log, claim.run))))
    return base, of_run


def _deadline(claim: Claim, began: float) -> float | None:
    return None if claim.timeout_ms is None else began + claim.timeout_ms / 1000


def _wish(claim: Claim) -> Request:
    asked = (claim.timeout_ms, claim.limits, claim.secrets)
    # In the reserved queue there are calls of webhooks and alert commands: queuectl chose their time limit.
    by_user = claim.queue != WEBHOOK_QUEUE
    return Request(claim.queue, claim.command, claim.argv, claim.cwd, claim.env or {}, *asked, sets_timeout=by_user)


def _as_permitted(order: Order, permit: Decision) -> Order:
    """The file that was judged, by the name that the rule knows, in the directory that was looked at."""
    if permit.place is not None:
        order = order._replace(cwd=permit.cwd, inside=permit.place)
    order = order._replace(between=between_of(permit))
    if not permit.program:
        return order
    called = [permit.called.encode(), *order.argv[1:]]
    return order._replace(argv=called, program=os.fsencode(permit.program))


def is_own_program(claim: Claim) -> bool:
    """Whether this is a call of a webhook or alert exactly as queuectl stores them. It runs our own program, so no policy is asked.

    A row of the database is not proof of that: its writer may have chosen options, another database, or variables that load
    code. So all of it is compared with what queuectl writes, and anything else is a job like any other.
    """
    return (
        claim.queue == WEBHOOK_QUEUE
        and claim.argv is not None
        and claim.argv[0] == DELIVER_PROGRAM
        and is_delivery(claim.argv[1:], claim.env or {})
        and not claim.secrets
    )


def words(claim: Claim) -> Sequence[bytes]:
    if claim.argv is not None and is_own_program(claim):
        # Of this host, whatever the one is that wrote the job. -P: not what lies in its directory by the name of a module.
        return [
            os.fsencode(sys.executable),
            b"-P",
            b"-m",
            b"queuectl",
            b"deliver",
            *(word.encode() for word in claim.argv[1:]),
        ]
    if claim.argv is not None:
        return [word.encode() for word in claim.argv]
    return [word.encode() for word in shell_words(claim.command or "")]
