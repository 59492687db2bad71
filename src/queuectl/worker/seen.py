"""What jobs see of the environment of their worker, and what they are told by it.

Put together once for many of them: doing it for every job would cost as much as all the rest of preparing it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from queuectl.policy.rules import Account, Rules
from queuectl.process.libc import Words
from queuectl.process.table import MARK
from queuectl.store.address import without_secrets

# What each run is told of itself, in this order: see launch.py.
OF_A_RUN: Final = (
    b"QUEUECTL_JOB_ID",
    b"QUEUECTL_RUN",
    b"QUEUECTL_ATTEMPT",
    b"QUEUECTL_QUEUE",
    b"QUEUECTL_SLOT",
    MARK.encode(),
)
# A worker that is itself started by a job has these of that job, and not for those that it runs.
_OF_ITS_JOB: Final = frozenset(
    {
        "QUEUECTL_ARRAY_INDEX",
        "QUEUECTL_BATCH",
        *(f"QUEUECTL_BATCH_{word}" for word in ("JOBS", "COMPLETED", "DEAD", "CANCELLED")),
    }
)
# Only of one that has waited for others.
PARENTS: Final = b"QUEUECTL_PARENTS"
PARENT_LOGS: Final = b"QUEUECTL_PARENT_LOGS"
_OF_EACH: Final = frozenset({*OF_A_RUN, PARENTS, PARENT_LOGS})


class Seen(NamedTuple):
    """An environment that many jobs share: `ours` win over what a job brings along."""

    variables: Mapping[bytes, bytes]
    ours: Mapping[bytes, bytes]
    joined: Words


class Environments:
    def __init__(self, inherited: Mapping[str, str], *, home: str, worker: str, db: str | None) -> None:
        self._inherited = {name: value for name, value in inherited.items() if name not in _OF_ITS_JOB}
        self._ours = {"QUEUECTL_HOME": home, "QUEUECTL_WORKER": worker}
        self._db = db
        self.base = self._put_together(self._inherited, db)
        self._listed: dict[tuple[tuple[str, ...] | None, Account | None], Seen] = {}

    def of(self, rules: Rules, account: Account | None) -> Seen:
        """Of our environment, what the jobs of a queue see."""
        if rules.environment is None and account is None:
            return self.base
        key = rules.environment, account
        found = self._listed.get(key)
        if found is None:
            # What opens the store for us is nobody else's.
            db = self._db if account is None or self._db is None else without_secrets(self._db)
            found = self._listed[key] = self._put_together(rules.seen(self._inherited, account), db)
        return found

    def _put_together(self, variables: Mapping[str, str], db: str | None) -> Seen:
        ours = _encoded({**self._ours, **({"QUEUECTL_DB": db} if db else {})})
        seen = {**_encoded({name: value for name, value in variables.items() if name != "QUEUECTL_DB"}), **ours}
        return Seen(seen, ours, joined(seen))


def joined(variables: Mapping[bytes, bytes]) -> Words:
    """Without what each run is told for itself."""
    return Words([b"%b=%b" % item for item in variables.items() if item[0] not in _OF_EACH])


def _encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
