"""Which policy is in force, also when its file changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from queuectl.errors import QueuectlError
from queuectl.policy.file import Loaded, Stamp, place_of, read_policy, stamp_of
from queuectl.policy.guard import NOTHING, Guard


class Force:
    """`guard` decides; None: there is no policy, and everything may run."""

    def __init__(self, path: str | None, *, user: int = 0, environment: Mapping[str, str] = NOTHING) -> None:
        """`environment`: that of this process, from which the PATH of a program may come."""
        self.guard: Guard | None = None
        self.path = path
        self._user = user
        self._environment = environment
        self._stamp: Stamp | None = None

    def load(self) -> None:
        """Raises PolicyUnusable or UsageError; then what was in force stays so."""
        assert self.path is not None
        found: Loaded = read_policy(self.path, user=self._user)
        self.guard = Guard(found.policy, user=self._user, accounts=found.accounts, environment=self._environment)
        self._stamp = found.stamp

    def follow(self, on_change: Callable[[str], None], on_trouble: Callable[[str], None]) -> None:
        """Take over what was written since. A file that is gone, or cannot be relied on, changes nothing: said once."""
        if self.path is None:
            return
        stamp = stamp_of(self.path)
        if stamp == self._stamp:
            return
        try:
            self.load()
        except QueuectlError as error:
            self._stamp = stamp
            on_trouble(f"{error.message}; the policy that was in force stays so")
        else:
            on_change(self.path)


def open_policy(home: str, given: str | None, *, user: int, environment: Mapping[str, str] = NOTHING) -> Force:
    """The policy of this host: the file `given`, else policy.toml of the data directory, if there is one. Raises as `load` does."""
    force = Force(place_of(home) if given is None else given, user=user, environment=environment)
    # Also a link that leads nowhere: somebody meant there to be one.
    if given is not None or os.path.lexists(place_of(home)):
        force.load()
    return force
