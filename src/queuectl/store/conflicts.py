"""Transactions that are run again because they conflicted with another one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from queuectl import errors

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

ATTEMPTS: Final = 5


class TransactionConflict(errors.StoreBusy):
    """Two transactions could not both commit, or a pooler lost a prepared statement. Nothing was written: run it again. Only
    PostgreSQL raises it; SQLite has one writer."""


def retry_conflicts(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For a method that is one transaction."""

    @functools.wraps(method)
    def retry(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(ATTEMPTS - 1):
            try:
                return method(self, *args, **kwargs)
            except TransactionConflict:
                continue
        return method(self, *args, **kwargs)

    return retry
