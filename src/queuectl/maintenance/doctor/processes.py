"""Processes that jobs have left behind."""

from __future__ import annotations

from typing import Final

from queuectl.maintenance.doctor.finding import RUNNING, Patient, Seen, named, note
from queuectl.process.table import MARK, command, entries, started, told
from queuectl.store.address import without_secrets

WORDS: Final = 40  # of a command, as much as helps to know it


def processes(patient: Patient) -> Seen:
    """Those that carry the mark of a run of this store that is not under way.

    Not ended by --fix: what a job leaves in the background on purpose is left alone when it ends.
    """
    # The processes first: who is started after that is not among them, and who was started has a token that the store knows.
    marked = [(entry, told(entry.pid)) for entry in entries()]
    ours = [(entry, it) for entry, it in marked if MARK in it and _is_of(it, patient)]
    under_way = _tokens(patient) if ours else set()
    left = [
        f"{entry.pid} of {it.get('QUEUECTL_JOB_ID', '?')} ({command(entry.pid)[:WORDS]})"
        for entry, it in ours
        if it[MARK] not in under_way and started(entry.pid) == entry.started
    ]
    if not left:
        return Seen("none that outlives its run")
    be = "outlives the run that started it" if len(left) == 1 else "outlive the runs that started them"
    message = f"{len(left):,} {'process' if len(left) == 1 else 'processes'} {be}: {named(left)}"
    return Seen("", [note("orphans", message, "jobs may leave some on purpose; if nobody needs it: kill PID")])


def _is_of(it: dict[str, str], patient: Patient) -> bool:
    # Other users are told no passwords.
    known = (patient.db, None if patient.db is None else without_secrets(patient.db))
    return it.get("QUEUECTL_HOME") == patient.home and it.get("QUEUECTL_DB") in known


def _tokens(patient: Patient) -> set[str]:
    names = {worker.id for worker in patient.opened.workers()} | {
        job.worker for job in patient.opened.jobs(RUNNING) if job.worker
    }
    return {claim.token for name in names for claim in patient.opened.running(name)}
