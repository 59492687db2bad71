"""Secrets of this host for who may know them: a person with the rights of the user of its workers."""

from __future__ import annotations

import select
from collections.abc import Mapping

from queuectl.clock import Clock
from queuectl.errors import QueuectlError, SecretNotFound, SecretUnusable
from queuectl.job.secrets import LARGEST
from queuectl.process.asking import Asking, Question, Unanswered
from queuectl.secrets.files import checked, read
from queuectl.secrets.teller import teller_of

LOOK_EVERY_MS = 100


class KnownSecrets:
    """Found as a worker finds them, each once."""

    def __init__(self, home: str, *, user: int, environment: Mapping[str, str], clock: Clock) -> None:
        self._home = home
        self._user = user
        self._environment = environment
        self._clock = clock
        self._found: dict[str, bytes | None] = {}
        self.problems: dict[str, str] = {}  # by name

    def find(self, name: str) -> bytes:
        """Raises SecretNotFound, SecretUnusable, or what is wrong with secrets.toml. Waits for the command that is asked."""
        value = read(self._home, name, user=self._user)
        if value is not None:
            return value
        teller = teller_of(self._home, name, user=self._user)
        if teller is None:
            raise SecretNotFound(name)
        answer = self._ask(Question(teller.words(name), teller.timeout_ms / 1000, LARGEST + 1))
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

    def _ask(self, question: Question) -> bytes | Unanswered:
        asking = Asking(environment=self._environment, cwd=self._home)
        try:
            asking.ask("", question, now=self._clock.monotonic())
            watch = select.poll()
            watch.register(asking, select.POLLIN)
            while not (answers := asking.answers(self._clock.monotonic())):
                watch.poll(LOOK_EVERY_MS)
            return answers[""]
        finally:
            asking.close()
