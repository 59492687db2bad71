"""The workers and their jobs: who is gone, who is silent, and what nobody looks after."""

from __future__ import annotations

from collections.abc import Callable

from queuectl.events import Event, JobRescued
from queuectl.jobs.model import Worker
from queuectl.maintenance.adoption import adoptable
from queuectl.maintenance.doctor.finding import RUNNING, Finding, Patient, Seen, count, named, note, problem
from queuectl.maintenance.liveness import is_alive
from queuectl.maintenance.lock_breaker import hint_for, lock_holder
from queuectl.maintenance.rescue import rescue_dead, rescue_unknown
from queuectl.maintenance.stopped import is_stopped
from queuectl.paths import worker_log
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import format_duration, to_ms


def workers(patient: Patient) -> Seen:
    known = patient.opened.workers()
    gone = [worker for worker in known if not is_alive(worker, here=patient.here)]
    findings: list[Finding] = []
    if gone:
        names = named([_with_jobs(worker, patient) for worker in gone])
        message = f"{count(len(gone), 'worker')} on this host died without deregistering: {names}"
        if all(_goes_on(worker, patient) for worker in gone):
            hint = "the next worker of this home goes on with what they run: queuectl worker start"
            findings.append(note("worker-gone", message, hint))
        else:
            hint = "queuectl doctor --fix, or the next worker that is started, takes back what they ran"
            findings.append(note("worker-gone", message, hint, _rescuer(patient)))
    there = [worker for worker in known if worker not in gone]
    findings += [_silent(one, ms, patient) for one in there if (ms := _silent_ms(one, patient)) is not None]
    return Seen(f"{count(len(there), 'worker')} alive" if there else "none alive: queuectl worker start", findings)


def _with_jobs(worker: Worker, patient: Patient) -> str:
    """Its name and the IDs of the jobs that it had claimed."""
    ids = [claim.id for claim in patient.opened.running(worker.id)]
    return f"{worker.id} (running {named(ids)})" if ids else worker.id


def _goes_on(worker: Worker, patient: Patient) -> bool:
    """Whether it has left something running, and nothing else: there is nothing to take back."""
    claims, called_off = patient.opened.running(worker.id), patient.opened.orders(worker.id).cancels
    return bool(claims) and len(adoptable(worker, claims).keys() - called_off) == len(claims)


def _silent_ms(worker: Worker, patient: Patient) -> int | None:
    """For how long it gave no sign, if that is longer than the lease."""
    silent_ms = patient.opened.now_ms() - to_ms(worker.heartbeat_at)
    return silent_ms if silent_ms > patient.settings.lease_ms else None


def _silent(worker: Worker, silent_ms: int, patient: Patient) -> Finding:
    since = f"gave no sign for {format_duration(silent_ms - silent_ms % 1000)}"
    if is_stopped(worker, here=patient.here):
        message = f"worker {worker.id} {since}: its process {worker.pid} is stopped"
        hint = f"resume it with kill -CONT {worker.pid}, or end it with queuectl worker stop --now {worker.id}"
        # Inside a transaction it keeps the database locked: `worker stop` would have to wait for it.
        holder = None if patient.store_file is None else lock_holder(patient.store_file)
        if holder is not None and holder.process.pid == worker.pid:
            hint = hint_for(holder)
        return problem("worker-stopped", message, hint)
    if worker.machine == patient.here.machine:  # by its lock it lives, or it would be gone
        message = f"worker {worker.id} {since}: its process {worker.pid} lives, but does not reach the store"
        return problem("worker-silent", message, f"its log says why: {worker_log(worker.home, worker.id)}, if detached")
    message = f"worker {worker.id} at {worker.host} {since}, longer than the lease"
    hint = "if its machine is gone, a worker anywhere takes its jobs: queuectl worker start"
    return problem("worker-silent", message, hint)


def jobs(patient: Patient) -> Seen:
    """Those that are said to run: does anybody run them?"""
    store = patient.opened
    running = [job.worker for job in store.jobs(RUNNING) if job.worker is not None]
    # The workers after their jobs: who holds one has registered before.
    known = {worker.id: worker for worker in store.workers()}
    findings = []
    for name in dict.fromkeys(running):
        worker = known.get(name)
        if worker is not None and is_alive(worker, here=patient.here):
            continue
        # Asked again: it may have finished and left between the two questions, or somebody has taken them back.
        if not (claims := store.running(name)):
            continue
        if worker is None:
            findings.append(_unknown(name, [claim.id for claim in claims], patient))
            continue
        going_on = adoptable(worker, claims)
        if fine := [claim.id for claim in claims if claim.token in going_on]:
            be = "runs" if len(fine) == 1 else "run"
            message = f"{count(len(fine), 'job')} ({named(fine)}) {be} on without worker {name}, which is gone"
            hint = "the next worker of this home looks after them: queuectl worker start"
            findings.append(note("job-unattended", message, hint))
        if ids := [claim.id for claim in claims if claim.token not in going_on]:
            message = f"{_stuck(ids)} worker {name}, which is gone"
            hint = "queuectl doctor --fix, or the next worker that is started, takes them back"
            findings.append(problem("job-stuck", message, hint))  # what to do is done for the worker
    findings += _unserved(patient, [worker for worker in known.values() if is_alive(worker, here=patient.here)])
    return Seen(f"{count(len(running), 'job')} running, each in good hands" if running else "none is running", findings)


def _unserved(patient: Patient, alive: list[Worker]) -> list[Finding]:
    """Queues with jobs that are due, where nobody alive looks. Not if nobody is alive at all: that is said of the workers."""
    serving = [worker for worker in alive if worker.state == "running"]
    if not serving or any(worker.queues is None for worker in serving):
        return []
    served = {WEBHOOK_QUEUE, *(queue for worker in serving for queue in worker.queues or ())}
    waiting = sorted(patient.opened.oldest_waiting_ms().keys() - served)
    hint = f"queuectl worker start --queue {waiting[0]}" if waiting else ""
    message = f"jobs wait in {named(waiting)}, and no live worker serves {'it' if len(waiting) == 1 else 'them'}"
    return [note("queue-not-served", message, hint)] if waiting else []


def _unknown(name: str, ids: list[str], patient: Patient) -> Finding:
    message = f"{_stuck(ids)} worker {name}, which the database does not know"
    here = all(patient.opened.history(job_id)[-1].host == patient.here.host for job_id in ids)
    if not here:
        return problem("job-stuck", message, "run queuectl doctor --fix on the machine where they ran")
    return problem("job-stuck", message, "queuectl doctor --fix gives them back", _giver(patient, name))


def _stuck(ids: list[str]) -> str:
    return f"{count(len(ids), 'job')} ({named(ids)}) {'waits' if len(ids) == 1 else 'wait'} for"


# ── what can be done ────────────────────────────────────────────────────────────────────────────────────────────────


def _rescuer(patient: Patient) -> Callable[[], str]:
    def rescue() -> str:
        back = _Rescued()
        names = rescue_dead(
            patient.opened, here=patient.here, clock=patient.clock, settings=patient.settings, spare=True, emit=back
        )
        return f"took {back.words} back from {named(names)}" if names else "nothing: another worker was faster"

    return rescue


def _giver(patient: Patient, name: str) -> Callable[[], str]:
    def give() -> str:
        back = _Rescued()
        rescue_unknown(
            patient.opened,
            name,
            home=patient.home,
            here=patient.here,
            clock=patient.clock,
            settings=patient.settings,
            emit=back,
        )
        return f"took {back.words} back from {name}"

    return give


class _Rescued:
    """How many jobs came back."""

    def __init__(self) -> None:
        self._jobs = 0

    def __call__(self, event: Event) -> None:
        self._jobs += isinstance(event, JobRescued)

    @property
    def words(self) -> str:
        return count(self._jobs, "job")
