"""A client with a supervisor of its own, for one test."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from queuectl.filelock import take_lock
from queuectl.process import tree
from queuectl.process.adopted import UnknownExit
from queuectl.process.client import RunExit, Started, StartRequest, SupervisorClient
from queuectl.process.journal import Entries, Journal, read_journal
from queuectl.process.model import Child, Identity
from queuectl.process.spawn import CannotSpawn
from tests.wait import wait_until

BASE: Final = {b"A": b"b"}
PATH: Final = b"/bin:/usr/bin"
LIMIT: Final = 64 * 1024


@contextlib.contextmanager
def open_client(folder: Path) -> Iterator[SupervisorClient]:
    """The journal is `runs`, the lock is `lock`."""
    Journal(str(folder / "runs")).close()
    lock = take_lock(str(folder / "lock"))
    assert lock is not None
    client = SupervisorClient()
    client.open(str(folder / "runs"), lock=lock.fileno(), environment=dict(os.environ))
    client.limit_logs(LIMIT)
    yield client
    client.close()
    lock.release()


def request(argv: Sequence[bytes], log: Path | str, *, place: int = 0, **fields: Any) -> StartRequest:
    given = {
        "cwd": "/",
        "base": BASE,
        "env": {b"PATH": PATH},
        "worker": "w",
        "run": 2,
        "token": f"token-{place}",
    }
    return StartRequest(argv, log=str(log), place=place, **{**given, **fields})


def shell(command: str) -> list[bytes]:
    return [b"/bin/sh", b"-c", command.encode()]


def answers(client: SupervisorClient, count: int) -> list[Started]:
    found: list[Started] = []

    def are_all() -> bool:
        found.extend(client.started())
        return len(found) >= count

    wait_until(are_all, what=f"{count} answers")
    return found


def start_all(client: SupervisorClient, *requests: StartRequest) -> list[Child | CannotSpawn]:
    client.start(requests)
    return [answer.child for answer in answers(client, len(requests))]


def start(client: SupervisorClient, argv: Sequence[bytes], log: Path | str, **fields: Any) -> Child:
    (child,) = start_all(client, request(argv, log, **fields))
    if isinstance(child, CannotSpawn):
        raise child
    return child


def exit_of(client: SupervisorClient, child: Child) -> RunExit:
    """Wait for it."""

    def ended() -> RunExit | UnknownExit | None:
        client.started()
        return client.poll(child)

    found = wait_until(ended, what="the run to end")
    assert isinstance(found, RunExit)
    return found


def record(client: SupervisorClient, child: Child) -> None:
    """Wait for its end, and say that it is recorded."""
    exit_of(client, child)
    client.recorded(child)
    client.flush()


def journal(folder: Path) -> Entries:
    return read_journal(str(folder / "runs"))


def supervisor(folder: Path) -> Identity:
    found = journal(folder).supervisor
    assert found is not None
    return found


def wait_until_gone(process: Identity | Child) -> None:
    wait_until(lambda: not tree.is_running(process), what=f"process {process.pid} to end")


def is_readable(client: SupervisorClient) -> bool:
    watch = select.poll()
    watch.register(client.fileno(), select.POLLIN)
    return bool(watch.poll(0))


def printed(log: Path) -> bytes:
    """What is in a log without our lines."""
    return b"".join(line for line in log.read_bytes().splitlines(keepends=True) if not line.startswith(b"--- "))
