"""Beginning anew: all jobs, their history and their logs go; the settings stay, and so does a copy of the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from queuectl import home as places
from queuectl.clock import Clock
from queuectl.errors import WorkersAlive
from queuectl.job.model import Worker
from queuectl.output.bounds import BESIDE
from queuectl.output.parents import FOLDER, SUFFIX, remove_folders
from queuectl.queue.backup import new_backup_path
from queuectl.store.protocol import Reads, Store


class Reset(NamedTuple):
    jobs: int  # how many there were
    backup: str
    schedules: int  # that stay
    queues: int  # with rules, that stay
    alerts: int  # that stay


def reset(store: Store, clock: Clock, *, home: str, is_alive: Callable[[Worker], bool]) -> Reset:
    """Raises WorkersAlive, with nothing changed, while somebody may run a job."""
    refuse_while_alive(store, verb="reset", home=home, is_alive=is_alive)
    copy = new_backup_path(home, clock, before="reset")
    store.backup(copy)
    jobs = store.reset()
    _remove_logs(home)
    return Reset(jobs, copy, **staying(store))


def staying(store: Reads) -> dict[str, int]:
    """How much a reset leaves of what is not about jobs."""
    return {"schedules": len(store.schedules()), "queues": len(store.rules()), "alerts": len(store.alerts())}


def refuse_while_alive(store: Reads, *, verb: str, home: str, is_alive: Callable[[Worker], bool]) -> None:
    if alive := [worker for worker in store.workers() if is_alive(worker)]:
        are_ours = all(worker.home == home for worker in alive)
        hint = "queuectl worker stop" if are_ours else "queuectl worker stop --all"
        raise WorkersAlive(verb, [worker.id for worker in alive], hint=hint)


def _remove_logs(home: str) -> None:
    # By the folder, not by the jobs: a million paths need not be held, and logs of jobs long purged go too.
    if not os.path.isdir(places.logs(home)):
        return  # of a store that others work on: nothing ever ran here
    with os.scandir(places.logs(home)) as logs:
        for entry in logs:
            if entry.name.endswith((".log", ".log" + BESIDE)) and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
            elif entry.name.endswith(FOLDER):
                remove_folders(entry.path.removesuffix(FOLDER) + SUFFIX)
