"""Errors of PostgreSQL and its driver, translated into those of queuectl: one line, a next step, never a password."""

from __future__ import annotations

from typing import Final

import psycopg

from queuectl import errors
from queuectl.store.conflicts import TransactionConflict

GRANTS: Final = "let the owner of the schema queuectl grant it to this role"
_OWNER: Final = "only the owner of the tables may do that: use its role in the address"
# Before there is a session, errors of the server have no code in libpq, only text; and so have those of libpq about an address.
# The first that is found counts. None: the hint of the class.
_REFUSALS: Final[tuple[tuple[str, str | None], ...]] = (
    (
        "no password supplied",
        "put it in ~/.pgpass (chmod 600), or into the address in queuectl.toml of the data directory",
    ),
    ("authentication failed", "check user and password: of the address, of ~/.pgpass or of the service file"),
    ("no pg_hba.conf entry", "let pg_hba.conf of the server admit this role from here, or check sslmode"),
    ("server does not support SSL", "switch SSL on at the server, or say another sslmode in the address"),
    ("certificate", "check sslmode and sslrootcert of the address, and the certificate of the server"),
    ("definition of service", "check the name of the service and its file, ~/.pg_service.conf"),
    ("service file", "check the name of the service and its file, ~/.pg_service.conf"),
    ("invalid", "check the parameters of the address"),
    ("SSL", "check sslmode of the address, and whether the server speaks SSL"),
    ("does not exist", None),
    ("permission denied for database", None),
    ("is not permitted to log in", "ask the administrator of the server for: alter role … login"),
)
# Reasons why a running server is unreachable.
_ABSENCES: Final[tuple[tuple[str, str], ...]] = (
    ("too many c", "the server runs, and takes no more connections: try again later, or raise its limit"),
    (
        "remaining connection slots",
        "the server runs, and takes no more connections: try again later, or raise its limit",
    ),
    ("resolve host", "check the name of the host in the address"),
    ("translate host", "check the name of the host in the address"),
)


class UniqueViolation(errors.StoreFailed):
    """A row with this key exists. Callers that know which one raise their own error."""


class ConnectionLost(errors.StoreUnreachable):
    """The connection broke during a transaction: whether it was committed is not known."""


def translate(exc: psycopg.Error, shown: str) -> errors.QueuectlError:
    """An error of a session. `shown` is the address without its password."""
    problem = first_line(exc)
    state = exc.sqlstate or ""
    match state:
        case "40001" | "40P01" | "26000" | "42P05":
            return TransactionConflict(shown, 0)
        case "55P03" | "57014":
            return errors.StoreBusy(
                shown, 0, hint="another session holds a lock, or the server is overloaded; try again"
            )
        case "25006":
            return read_only(shown)
        case "53100":
            return errors.StoreFull(shown)
        case "42501":
            return errors.StoreRefused(shown, problem, hint=_OWNER if problem.endswith("table meta") else GRANTS)
        case "23505":
            return UniqueViolation(shown, problem)
        case "42P06" | "42P07":
            return errors.StoreForeign(shown)
        case "3F000" | "42P01":
            return errors.StoreGone(shown)
        case "XX001" | "XX002":
            return errors.StoreDamaged(shown, problem)
        case _:
            return _by_class(exc, state[:2], shown, problem)


def read_only(shown: str) -> errors.StoreReadOnly:
    hint = "this server is a replica or read-only: name the primary, or add target_session_attrs=read-write"
    return errors.StoreReadOnly(shown, hint=hint)


def _by_class(exc: psycopg.Error, kind: str, shown: str, problem: str) -> errors.QueuectlError:
    if kind in {"08", "57"} or exc.sqlstate == "25P03" or (not kind and isinstance(exc, psycopg.OperationalError)):
        return ConnectionLost(shown, problem)
    if kind in {"28", "3D"}:
        return errors.StoreRefused(shown, problem)
    return errors.StoreFailed(shown, problem, hint="see the server's log")


def translate_refusal(exc: psycopg.Error, shown: str) -> errors.QueuectlError:
    """An error of connecting."""
    problem = first_line(exc)
    for words, absence in _ABSENCES:
        if words in problem:
            return errors.StoreUnreachable(shown, problem, hint=absence)
    for words, hint in _REFUSALS:
        if words in problem:
            return (
                errors.StoreRefused(shown, problem) if hint is None else errors.StoreRefused(shown, problem, hint=hint)
            )
    return errors.StoreUnreachable(shown, problem)


def first_line(exc: psycopg.Error) -> str:
    primary = exc.diag.message_primary
    text = primary or str(exc).strip() or type(exc).__name__
    line = text.splitlines()[0]
    for prefix in ("connection failed: ", "consuming input failed: "):
        line = line.removeprefix(prefix)
    return line
