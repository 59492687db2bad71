"""The store: is it there, is it ours, is it sound, and does it go by the same time as we do?"""

from __future__ import annotations

import os
from itertools import islice
from typing import Final

from queuectl.errors import StoreGone, StoreReadOnly
from queuectl.filelock import is_held
from queuectl.maintenance.doctor.finding import Finding, Patient, Seen, count, note, problem
from queuectl.maintenance.lock_breaker import hint_for, lock_holder
from queuectl.paths import lock_file
from queuectl.units import format_duration, to_ms

TOLERANCE_MS: Final = 2_000
MOST_PROBLEMS: Final = 10


def store(patient: Patient) -> Seen:
    if (trouble := patient.trouble) is not None:
        return Seen("", [problem(trouble.code, trouble.message, trouble.hint)])
    if patient.store is None:
        if patient.store_file and (name := _worker_in(patient.home)):
            gone = StoreGone(patient.store_file, worker=name)
            return Seen("", [problem(gone.code, gone.message, gone.hint)])
        return Seen(f"there is none at {patient.address} yet: the first job makes it")
    health = patient.health
    findings = [
        problem("store-damaged", f"{patient.address}: {words}", "stop the workers, keep a copy of it, restore a backup")
        for words in health.problems[:MOST_PROBLEMS]
    ]
    findings += [problem(found.code, found.message, found.hint) for found in health.hindrances]
    findings += [note(*caution) for caution in health.cautions]
    if patient.store_file is not None and (holder := lock_holder(patient.store_file)) and holder.is_stopped:
        message = f"{patient.address} is locked by process {holder.process.pid} ({holder.program}), which is stopped"
        findings.append(problem("store-locked", message, hint_for(holder)))
    if patient.store_file is not None and not os.access(patient.store_file, os.W_OK):
        fixed = StoreReadOnly(patient.store_file)
        findings.append(problem(fixed.code, fixed.message, fixed.hint))
    return Seen(f"sound, {health.engine}, {count(patient.opened.count(), 'job')}, {patient.address}", findings)


def _worker_in(home: str) -> str | None:
    """A worker of this home that lives: then a store was there."""
    folder = os.path.dirname(lock_file(home, ""))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    held = (name for name in names if name.endswith(".lock") and is_held(os.path.join(folder, name)))
    return next((name.removesuffix(".lock") for name in held), None)


def schema(patient: Patient) -> Seen:
    health = patient.health
    if health.schema == health.known:
        return Seen(f"version {health.schema}, the one of this queuectl")
    message = f"the store has schema version {health.schema}, this queuectl knows {health.known}"
    return Seen("", [problem("schema-version", message, "use one version of queuectl on all machines")])


def clock(patient: Patient) -> Seen:
    return _against_server(patient) if patient.opened.is_shared else _against_times(patient)


def _against_server(patient: Patient) -> Seen:
    skew_ms = patient.clock.now_ms() - patient.opened.now_ms()
    if abs(skew_ms) <= TOLERANCE_MS:
        return Seen("agrees with the database")
    way = "ahead of" if skew_ms > 0 else "behind"
    message = f"the clock of this machine is {format_duration(abs(skew_ms))} {way} the database's, by which all jobs go"
    return Seen("", [note("clock-differs", message, "set it by NTP; jobs run on time all the same")])


def _against_times(patient: Patient) -> Seen:
    """A file has no clock. But what it holds cannot have happened later than now."""
    now_ms = patient.clock.now_ms()
    newest = [to_ms(job.updated_at) for job in islice(patient.opened.jobs(limit=1), 1)]
    newest += [to_ms(worker.heartbeat_at) for worker in patient.opened.workers()]
    ahead_ms = max(newest, default=now_ms) - now_ms
    findings: list[Finding] = []
    if ahead_ms > TOLERANCE_MS:
        message = f"the store holds times that are {format_duration(ahead_ms)} ahead of the clock: it was set back"
        hint = "set the clock right; until then retries and delayed jobs wait that much longer"
        findings.append(problem("clock-went-back", message, hint))
    return Seen("not behind what the store holds", findings)
