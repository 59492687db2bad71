"""What a check finds, and whom it looks at."""

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
from queuectl.store.protocol import Store
from queuectl.store.types import Filter, Health

NAMED: Final = 5  # things that a sentence names
RUNNING: Final = Filter(states=frozenset({State.PROCESSING}))


class Severity(StrEnum):
    PROBLEM = "problem"  # something does not work, or will not
    NOTE = "note"  # worth knowing, nothing is broken


class Finding(NamedTuple):
    """`fix` does what is safe to do about it and says what it did; None if that is for a person to decide."""

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


class Seen(NamedTuple):
    """What a check saw: `fine` are its words if it found nothing."""

    fine: str
    findings: Sequence[Finding] = ()


@dataclass
class Patient:
    """Who is looked at. `store` is None where there is none, and where `trouble` keeps it from being opened.

    `store_file` is the file of a store that is one, also if it is not there; `address` names the store without passwords.
    """

    home: str
    db: str | None  # what runs of this store are told of it: see process/table.told
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
        """What is in force; the defaults if that cannot be."""
        stored = {} if self.store is None else self.store.config()
        try:
            return load_settings(stored, self.environ)
        except UsageError:
            return load_settings({}, {})


def problem(code: str, message: str, hint: str, fix: Callable[[], str] | None = None) -> Finding:
    return Finding(code, Severity.PROBLEM, message, hint, fix)


def note(code: str, message: str, hint: str, fix: Callable[[], str] | None = None) -> Finding:
    return Finding(code, Severity.NOTE, message, hint, fix)


def count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def named(names: Sequence[str]) -> str:
    """Some of them, and how many more."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
