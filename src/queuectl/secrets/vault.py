"""What a worker knows of the secrets of its jobs, from when one is about to begin until it has begun; and nobody else.

They are looked for in files, which is quick, and asked for of the command that the host has for it, which may take a while: so
that goes on beside the worker's loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from queuectl.errors import QueuectlError, SecretNotFound, SecretUnusable
from queuectl.gate import Gate
from queuectl.job.secrets import LARGEST, Wanted, wanted
from queuectl.process.asking import Asking, Unanswered
from queuectl.secrets.files import checked, read
from queuectl.secrets.teller import provider_command, teller_of


class Secret(NamedTuple):
    variable: str
    entry: str
    value: bytes

    def __repr__(self) -> str:
        """Without what nobody may see, wherever somebody prints it."""
        return f"Secret({self.variable!r}, {self.entry!r})"


class Unresolved(NamedTuple):
    """One line, for the owner of the job and for whoever looks after the host."""

    problem: str


class _Case:
    """One job that is about to begin."""

    def __init__(self, asked: Sequence[Wanted]) -> None:
        self.wanted = asked
        self.values: dict[str, bytes] = {}
        self.open: set[str] = set()
        self.problem: Unresolved | None = None

    def fail(self, error: QueuectlError) -> None:
        self.problem = self.problem or Unresolved(f"{error.message}: {error.hint}")


class Vault:
    def __init__(self, home: str, *, user: int, asking: Asking, gate: Gate) -> None:
        self._home = home
        self._user = user
        self._gate = gate
        self._asking = asking
        self._cases: dict[str, _Case] = {}  # by token

    def fileno(self) -> int:
        return self._asking.fileno()

    def close(self) -> None:
        self._cases.clear()
        self._asking.close()

    def begin(self, token: str, secrets: Sequence[str], *, now: float) -> None:
        """Find out what these are."""
        case = self._cases[token] = _Case(wanted(secrets))
        for entry in dict.fromkeys(one.entry for one in case.wanted):
            try:
                self._find(token, case, entry, now)
            except QueuectlError as error:
                case.fail(error)

    def turn(self, now: float) -> None:
        """Take in what has been answered."""
        for key, answer in self._asking.answers(now).items():
            token, entry = key if isinstance(key, tuple) else ("", "")
            if (case := self._cases.get(token)) is None:
                continue
            case.open.discard(entry)
            try:
                if isinstance(answer, Unanswered):
                    raise SecretUnusable(entry, answer.problem, hint=f"queuectl secret check {entry} on that host")
                case.values[entry] = checked(entry, answer)
            except SecretUnusable as error:
                case.fail(error)

    def is_known(self, token: str) -> bool:
        """Whether there is nothing to wait for."""
        case = self._cases[token]
        return case.problem is not None or not case.open

    def take(self, token: str) -> list[Secret] | Unresolved:
        """What was found out, once."""
        case = self._cases.get(token)
        if case is None:  # the policy was against it when it was asked
            return Unresolved("its secrets were not asked for: the policy has changed meanwhile")
        self.drop(token)
        if case.problem is not None:
            return case.problem
        found = [Secret(one.variable, one.entry, case.values[one.entry]) for one in case.wanted]
        total = sum(len(one.value) for one in found)
        if total > LARGEST:
            return Unresolved(f"its secrets are longer than {LARGEST:,} bytes together: let it read a file instead")
        return found

    def drop(self, token: str) -> None:
        if (case := self._cases.pop(token, None)) is not None:
            for entry in case.open:
                self._asking.drop((token, entry))

    def wake_times(self) -> Iterator[float]:
        return self._asking.wake_times()

    def _find(self, token: str, case: _Case, entry: str, now: float) -> None:
        """Raises one of our errors."""
        value = read(self._home, entry, user=self._user)
        if value is not None:
            case.values[entry] = value
            return
        teller = teller_of(self._home, entry, user=self._user)
        if teller is None:
            raise SecretNotFound(entry)
        command = provider_command(teller, entry, home=self._home, gate=self._gate)
        case.open.add(entry)
        self._asking.ask((token, entry), command, now=now)
