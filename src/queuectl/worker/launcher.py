"""From a claim to a request to start it: its command, its environment, what the policy allows. And what the worker writes into the journal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import NotStarted, Refused
from queuectl.logs.parent_logs import folder_of, share_logs
from queuectl.policy.evaluator import Decision, Request
from queuectl.policy.gate import Gate, child_setup, shell_words
from queuectl.policy.rules import Account, Refusal, Rules, is_delivery
from queuectl.process.adopted import Adoption
from queuectl.process.client import Environment, StartRequest
from queuectl.process.journal import Journal, Record, Termination, append_terminations
from queuectl.process.model import TOKEN_VARIABLE
from queuectl.process.spawn import with_limits
from queuectl.process.system import system
from queuectl.secrets.resolver import Secret, Unresolved
from queuectl.secrets.rules import parse_stored
from queuectl.store.address import without_secrets
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import DELIVER_PROGRAM

TakeSecrets = Callable[[Claim], Sequence[Secret] | Unresolved]

# In the environment of each run, in this order, see `_run_environment`. The supervisor adds the slot.
_RUN_VARIABLES: Final = (
    b"QUEUECTL_JOB_ID",
    b"QUEUECTL_RUN",
    b"QUEUECTL_ATTEMPT",
    b"QUEUECTL_QUEUE",
    TOKEN_VARIABLE.encode(),
)
_PARENTS: Final = b"QUEUECTL_PARENTS"
_PARENT_LOGS: Final = b"QUEUECTL_PARENT_LOGS"
_OWN_VARIABLES: Final = frozenset({*_RUN_VARIABLES, b"QUEUECTL_SLOT", _PARENTS, _PARENT_LOGS})
# A worker that was itself started by a job has these of that job; they are not for the jobs that it runs.
_BATCH_VARIABLES: Final = frozenset(
    {
        "QUEUECTL_ARRAY_INDEX",
        "QUEUECTL_BATCH",
        *(f"QUEUECTL_BATCH_{word}" for word in ("JOBS", "COMPLETED", "DEAD", "CANCELLED")),
    }
)


class Prepared(NamedTuple):
    """A run that can be started."""

    claim: Claim
    request: StartRequest


class _Environments:
    """Environments that many runs share. Each exists once: the supervisor gets the first only once."""

    def __init__(self, inherited: Mapping[str, str], *, home: str, worker: str, db: str | None) -> None:
        self._inherited = {name: value for name, value in inherited.items() if name not in _BATCH_VARIABLES}
        self._fixed = {"QUEUECTL_HOME": home, "QUEUECTL_WORKER": worker}
        self._db = db
        self.base = self._encoded(self._inherited, db)
        self._by_rules: dict[tuple[tuple[str, ...] | None, Account | None], Environment] = {}

    @property
    def fixed_names(self) -> Collection[bytes]:
        """What a job cannot set to other values."""
        return {*(name.encode() for name in self._fixed), *_OWN_VARIABLES, *([b"QUEUECTL_DB"] if self._db else [])}

    def of(self, rules: Rules, account: Account | None) -> Environment:
        """What the jobs of a queue get of the environment of the worker."""
        if rules.environment is None and account is None:
            return self.base
        key = rules.environment, account
        if key not in self._by_rules:
            # Another user does not get the password of the database.
            db = self._db if account is None or self._db is None else without_secrets(self._db)
            self._by_rules[key] = self._encoded(rules.seen(self._inherited, account), db)
        return self._by_rules[key]

    def _encoded(self, variables: Mapping[str, str], db: str | None) -> Environment:
        inherited = {name: value for name, value in variables.items() if name != "QUEUECTL_DB"}
        both = {**inherited, **self._fixed, **({"QUEUECTL_DB": db} if db else {})}
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in both.items()}
        return {name: value for name, value in encoded.items() if name not in _OWN_VARIABLES}


class Launcher:
    def __init__(self, *, worker: str, home: str, db: str | None, journal: Journal, gate: Gate) -> None:
        self.worker = worker
        self._journal = journal
        self._environments = _Environments(gate.environment, home=home, worker=worker, db=db)
        self._fixed_names = self._environments.fixed_names
        self._gate = gate

    # ── preparing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def may_have(self, claim: Claim) -> bool:
        """Whether the policy lets it have its secrets."""
        evaluator = self._gate.policy.evaluator
        return evaluator is None or evaluator.of(claim.queue).against_secrets(parse_stored(claim.secrets)) is None

    def prepare_all(
        self, placed: Sequence[tuple[Claim, int | None, int]], *, secrets: TakeSecrets = lambda _: ()
    ) -> tuple[list[Prepared], list[tuple[Claim, Refused | NotStarted]]]:
        """Claims, each with its slot, if it has a fixed one, and its place in the journal: those that can start, and those that the policy
        refuses or that lack something. `secrets` returns those of a claim, once."""
        prepared: list[Prepared] = []
        refused: list[tuple[Claim, Refused | NotStarted]] = []
        for claim, slot, place in placed:
            one = self._prepare(claim, slot=slot, place=place, secrets=secrets)
            if isinstance(one, Prepared):
                prepared.append(one)
            else:
                refused.append((claim, one))
        return prepared, refused

    def _prepare(
        self, claim: Claim, *, slot: int | None, place: int, secrets: TakeSecrets
    ) -> Prepared | Refused | NotStarted:
        evaluator, decision, base = self._gate.policy.evaluator, None, self._environments.base
        if evaluator is not None and not is_own_program(claim):
            request = _request(claim)
            if (mount := evaluator.silent_mount(request)) is not None:
                return NotStarted(f"{mount} does not answer")
            judged = self._gate.admit(request)
            if isinstance(judged, Refusal):
                return Refused(*judged)
            base = self._environments.of(evaluator.of(claim.queue), judged.account)
            decision, claim = judged, claim._replace(timeout_ms=judged.timeout_ms, limits=judged.limits)
        known = secrets(claim) if claim.secrets else ()
        if isinstance(known, Unresolved):
            return NotStarted(known.problem)
        start = StartRequest(
            command_words(claim),
            claim.cwd,
            base,
            self._run_environment(claim, known),
            claim.log,
            self.worker,
            claim.run,
            place=place,
            token=claim.token,
            slot=slot,
            shell=None if claim.command is None else claim.command.encode(),
            secrets=[(secret.entry, secret.value) for secret in known],
        )
        if decision is not None:
            if decision.account is not None and claim.parents:
                share_logs(claim.log, claim.run, claim.parents, reader=decision.account.uid)
            start = _permitted(start, decision)
        setup = with_limits(start.setup, claim.limits)
        return Prepared(claim, start._replace(setup=setup))

    def _run_environment(self, claim: Claim, secrets: Sequence[Secret]) -> Environment:
        # Text of the job: UTF-8, whatever the locale of the worker is.
        own = {name.encode(): value.encode() for name, value in (claim.env or {}).items()}
        variables = {name: value for name, value in own.items() if name not in self._fixed_names}
        values = (
            claim.id.encode(),
            b"%d" % claim.run,
            b"%d" % (claim.attempts + 1),
            claim.queue.encode(),
            claim.token.encode(),
        )
        variables.update(zip(_RUN_VARIABLES, values, strict=True))
        if claim.parents:
            variables[_PARENTS] = " ".join(claim.parents).encode()
            variables[_PARENT_LOGS] = os.fsencode(folder_of(claim.log, claim.run))
        return variables | {secret.variable.encode(): secret.value for secret in secrets}

    # ── the journal ─────────────────────────────────────────────────────────────────────────────────────────────────

    def adopt(self, adoption: Adoption, *, place: int) -> Claim:
        """Write a run of a dead worker into our journal, for the worker that finds us dead. Returns its claim, with the limits of our
        policy."""
        claim, record = adoption.claim, adoption.record
        with contextlib.suppress(OSError):  # a full disk: then the token in its environment identifies it
            note = Record(record.pid, record.started, record.log_from, journal=os.path.basename(adoption.journal))
            self._journal.write(place, claim.token, note)
        if (evaluator := self._gate.policy.evaluator) is None:
            return claim
        rules = evaluator.of(claim.queue)
        return claim._replace(timeout_ms=rules.capped(claim.timeout_ms), limits=rules.capped_limits(claim.limits))

    def note_termination(self, place: int, token: str, reason: str, journal: str | None) -> None:
        """We are about to terminate a run: its end is our doing, also for the worker that finds us dead. `journal`: of an adopted run, whose
        supervisor reads there how to call its end."""
        termination = Termination(reason, system.now_ticks())
        self.write_termination(place, token, termination)
        if journal is not None:
            with contextlib.suppress(OSError):
                append_terminations(journal, [token], termination, create=False)

    def write_termination(self, place: int, token: str, termination: Termination) -> None:
        """Into our own journal only."""
        with contextlib.suppress(OSError):  # a full disk: then it counts as ended by itself
            self._journal.write_termination(place, token, termination)

    def begun(self) -> set[str] | None:
        """The tokens of the runs that a supervisor has started, or was about to start; None: unknown."""
        with contextlib.suppress(OSError):
            return self._journal.begun()
        return None


def _request(claim: Claim) -> Request:
    limits = (claim.timeout_ms, claim.limits, claim.secrets)
    # The reserved queue has webhook deliveries and alert commands: queuectl chose their time limit.
    by_user = claim.queue != WEBHOOK_QUEUE
    return Request(claim.queue, claim.command, claim.argv, claim.cwd, claim.env or {}, *limits, sets_timeout=by_user)


def _permitted(request: StartRequest, decision: Decision) -> StartRequest:
    """The file that was evaluated, by the name in the rule, in the directory that was checked."""
    request = request._replace(setup=child_setup(decision))
    if decision.place is not None:
        request = request._replace(cwd=decision.cwd)
    if not decision.program:
        return request
    argv = [decision.called.encode(), *request.argv[1:]]
    return request._replace(argv=argv, program=os.fsencode(decision.program))


def is_own_program(claim: Claim) -> bool:
    """Whether this is a delivery of a webhook or alert exactly as queuectl stores them. It runs our own program, so no policy is asked.

    A row of the database is not proof of that: its writer may have chosen options, another database, or variables that load code. So all
    of it is compared with what queuectl writes, and anything else is a job like any other.
    """
    return (
        claim.queue == WEBHOOK_QUEUE
        and claim.argv is not None
        and claim.argv[0] == DELIVER_PROGRAM
        and is_delivery(claim.argv[1:], claim.env or {})
        and not claim.secrets
    )


def command_words(claim: Claim) -> Sequence[bytes]:
    if claim.argv is not None and is_own_program(claim):
        # Of this host, whichever host wrote the job. -P: no module of that name in the working directory.
        program = [os.fsencode(sys.executable), b"-P", b"-m", b"queuectl", b"deliver"]
        return [*program, *(word.encode() for word in claim.argv[1:])]
    if claim.argv is not None:
        return [word.encode() for word in claim.argv]
    return [word.encode() for word in shell_words(claim.command or "")]
