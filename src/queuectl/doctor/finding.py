"""What a check examines, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from queuectl.clock import Clock
from queuectl.config import Here, load_settings
from queuectl.errors import QueuectlError, UsageError
from queuectl.jobs.states import State
from queuectl.settings import Settings
from queuectl.store.store import Store
from queuectl.store.types import Filter, Health

RUNNING: Final = Filter(states=frozenset({State.PROCESSING}))


class Severity(StrEnum):
    PROBLEM = "problem"  # something does not work, or will not
    NOTE = "note"  # worth knowing, nothing is broken


class Finding(NamedTuple):
    """`fix` repairs what is safe to repair and returns what it did; None if a person has to decide."""

    code: str
    severity: Severity
    message: str
    hint: str
    fix: Callable[[], str] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "fixable": self.fix is not None,
        }


# What a check has found, or what it reports if it found nothing.
CheckResult = Sequence[Finding] | str


@dataclass
class Target:
    """The data directory and database to examine. `store` is None if there is none, or `trouble` keeps it from being opened.

    `store_file`: of a SQLite database, also if it does not exist. `address`: of the database, without passwords.
    """

    home: str
    db: str | None  # as in the environment of its jobs
    address: str
    store_file: str | None
    store: Store | None
    trouble: QueuectlError | None
    here: Here
    environ: Mapping[str, str]
    clock: Clock
    user: int

    @cached_property
    def opened(self) -> Store:
        """The store, for a check that needs one."""
        assert self.store is not None, "checks.py asks before it calls"
        return self.store

    @cached_property
    def health(self) -> Health:
        return self.opened.examine()

    @cached_property
    def settings(self) -> Settings:
        """The current settings; the defaults if those are invalid."""
        stored = {} if self.store is None else self.store.config()
        try:
            return load_settings(stored, self.environ)
        except UsageError:
            return load_settings({}, {})


def problem(code: str, message: str, hint: str, fix: Callable[[], str] | None = None) -> Finding:
    return Finding(code, Severity.PROBLEM, message, hint, fix)


def note(code: str, message: str, hint: str, fix: Callable[[], str] | None = None) -> Finding:
    return Finding(code, Severity.NOTE, message, hint, fix)


def reported(error: QueuectlError) -> Finding:
    return problem(error.code, error.message, error.hint)
