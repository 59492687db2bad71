"""From a claim to a running process: its words, its environment, its log."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.job.model import Claim
from queuectl.output.files import begin_log
from queuectl.process.ledger import Footprint, Ledger
from queuectl.process.spawn import CannotSpawn, Processes
from queuectl.process.table import MARK
from queuectl.worker.running import Running

SHELL = b"/bin/sh"


class Ready(NamedTuple):
    """All that a process needs, its log included."""

    claim: Claim
    slot: int
    argv: Sequence[bytes]
    env: Mapping[bytes, bytes]
    out: int
    log_from: int


_ONLY_THIS_LOG: Final = frozenset({errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL, errno.ENAMETOOLONG})


class Unstarted(NamedTuple):
    """There is no process, and why."""

    claim: Claim
    problem: str
    began: float
    log_from: int


class BadLog(Exception):
    """Something that is no log of ours lies in this job's place: its own failure, and nobody else's."""


class NoLog(Exception):
    """The log of a job cannot be written. That is our trouble, not the job's failure."""


class Launcher:
    def __init__(
        self,
        processes: Processes,
        *,
        worker: str,
        home: str,
        db: str | None,
        base_environment: Mapping[str, str],
        ledger: Ledger,
    ) -> None:
        self._processes = processes
        self._worker = worker
        self._ledger = ledger
        ours = {"QUEUECTL_HOME": home, "QUEUECTL_WORKER": worker, **({"QUEUECTL_DB": db} if db else {})}
        self._ours = _encoded(ours)
        # Encoded once: doing it for every job would cost as much as all the rest of the spawning.
        self._base = _encoded({**base_environment, **ours})

    def prepare(self, claim: Claim, *, slot: int, now_ms: int) -> Ready:
        """Everything up to the process, which `launch` starts: until then a descriptor is open. Raises NoLog."""
        env = self._environment(claim, slot)
        try:
            out, log_from = begin_log(claim, worker=self._worker, now_ms=now_ms)
        except OSError as exc:
            if exc.errno in _ONLY_THIS_LOG:
                raise BadLog(f"its log {claim.log} cannot be written: {exc.strerror}") from exc
            raise NoLog(f"cannot write {claim.log}: {exc.strerror}") from exc
        return Ready(claim, slot, words(claim), env, out, log_from)

    def launch(self, ready: Ready, *, now: float) -> Running | Unstarted:
        """Start the process."""
        claim, slot, argv, env, out, log_from = ready
        try:
            child = self._processes.spawn(argv, cwd=claim.cwd, env=env, out=out)
        except CannotSpawn as exc:
            return Unstarted(claim, str(exc), now, log_from)
        return Running(
            claim=claim,
            slot=slot,
            child=child,
            began=now,
            log_from=log_from,
            deadline=None if claim.timeout_ms is None else now + claim.timeout_ms / 1000,
        )

    def conclude(self, ready: Sequence[Ready], begun: Sequence[Running | Unstarted]) -> None:
        """What is left to do after a row of starts: if we die before, the mark tells whose the processes are."""
        self._processes.rest()
        for one in ready:
            os.close(one.out)
        for run in begun:
            if isinstance(run, Running):
                footprint = Footprint(run.child.pid, run.child.started, run.log_from)
                with contextlib.suppress(OSError):  # a full disk: then, too, there is the mark
                    self._ledger.write(run.slot, run.claim.token, footprint)

    def _environment(self, claim: Claim, slot: int) -> dict[bytes, bytes]:
        environment = dict(self._base)
        if claim.env:
            # Text of the job, not of this process: UTF-8, whatever the locale of the worker is.
            environment |= {name.encode(): value.encode() for name, value in claim.env.items()}
            environment |= self._ours
        environment |= {
            b"QUEUECTL_JOB_ID": claim.id.encode(),
            b"QUEUECTL_RUN": b"%d" % claim.run,
            b"QUEUECTL_ATTEMPT": b"%d" % (claim.attempts + 1),
            b"QUEUECTL_QUEUE": claim.queue.encode(),
            b"QUEUECTL_SLOT": b"%d" % slot,
            MARK.encode(): claim.token.encode(),
        }
        return environment


def words(claim: Claim) -> Sequence[bytes]:
    if claim.argv is not None:
        return [word.encode() for word in claim.argv]
    command = (claim.command or "").encode()
    # A shell would take a command that begins with one of these for options of its own.
    guard = [b"--"] if command[:1] in (b"-", b"+") else []
    return [SHELL, b"-c", *guard, command]


def _encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
