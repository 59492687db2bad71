"""Secrets of this host for who may know them: a person with the rights of the user of its workers."""

from __future__ import annotations

from queuectl.clock import Clock
from queuectl.errors import QueuectlError, SecretNotFound, SecretUnusable
from queuectl.gate import Gate
from queuectl.process.asking import Unanswered, ask_now
from queuectl.secrets.files import checked, read
from queuectl.secrets.teller import provider_command, teller_of


class KnownSecrets:
    """Found as a worker finds them, each once."""

    def __init__(self, home: str, *, user: int, gate: Gate, clock: Clock) -> None:
        self._home = home
        self._user = user
        self._gate = gate
        self._clock = clock
        self._found: dict[str, bytes | None] = {}
        self.problems: dict[str, str] = {}  # by name

    def find(self, name: str) -> bytes:
        """Raises SecretNotFound, SecretUnusable, or what is wrong with secrets.toml. Waits for the provider."""
        value = read(self._home, name, user=self._user)
        if value is not None:
            return value
        teller = teller_of(self._home, name, user=self._user)
        if teller is None:
            raise SecretNotFound(name)
        answer = ask_now(provider_command(teller, name, home=self._home, gate=self._gate), self._clock)
        if isinstance(answer, Unanswered):
            raise SecretUnusable(name, answer.problem, hint=f"try it by hand: {' '.join(teller.words(name))}")
        return checked(name, answer)

    def value(self, entry: str) -> bytes | None:
        if entry not in self._found:
            self._found[entry] = None
            try:
                self._found[entry] = self.find(entry)
            except QueuectlError as error:
                self.problems[entry] = error.message
        return self._found[entry]

    def differs(self, entry: str) -> None:
        self.problems[entry] = f"the secret {entry!r} is another one now"
