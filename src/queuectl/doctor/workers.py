"""Workers and their jobs: dead and silent workers, jobs without a worker, and processes that jobs have left behind."""

from __future__ import annotations

from functools import partial
from typing import Final

from queuectl.doctor.finding import RUNNING, CheckResult, Finding, Target, note, problem
from queuectl.events import Event, JobRescued
from queuectl.jobs.model import Worker
from queuectl.maintenance.adoption import adoptable
from queuectl.maintenance.liveness import is_alive, is_stopped
from queuectl.maintenance.lock_breaker import hint_for, lock_holder
from queuectl.maintenance.rescuer import rescue_dead, rescue_unknown
from queuectl.paths import worker_log
from queuectl.process import tree
from queuectl.process.model import TOKEN_VARIABLE
from queuectl.process.system import system
from queuectl.store.address import without_secrets
from queuectl.text import WEBHOOK_QUEUE, plural, shortened
from queuectl.units import format_duration, to_ms

MAX_COMMAND_CHARACTERS: Final = 40  # as much as helps to recognize a process


def workers(target: Target) -> CheckResult:
    known = target.opened.workers()
    gone = [worker for worker in known if not is_alive(worker, here=target.here)]
    findings: list[Finding] = []
    if gone:
        names = shortened([_with_jobs(worker, target) for worker in gone])
        message = f"{plural(len(gone), 'worker')} on this host died without deregistering: {names}"
        if all(_can_be_adopted(worker, target) for worker in gone):
            hint = "the next worker of this data directory continues with what they run: queuectl worker start"
            findings.append(note("worker-gone", message, hint))
        else:
            hint = "queuectl doctor --fix, or the next worker that is started, takes back what they ran"
            findings.append(note("worker-gone", message, hint, partial(_rescue, target)))
    there = [worker for worker in known if worker not in gone]
    findings += [_silent(one, ms, target) for one in there if (ms := _silent_ms(one, target)) is not None]
    return findings or (f"{plural(len(there), 'worker')} alive" if there else "none alive: queuectl worker start")


def _with_jobs(worker: Worker, target: Target) -> str:
    """Its name and the IDs of the jobs that it had claimed."""
    ids = [claim.id for claim in target.opened.running(worker.id)]
    return f"{worker.id} (running {shortened(ids)})" if ids else worker.id


def _can_be_adopted(worker: Worker, target: Target) -> bool:
    """Whether all its runs continue: there is nothing to rescue."""
    claims, cancelled = target.opened.running(worker.id), target.opened.claims.orders(worker.id).cancels
    return bool(claims) and len(adoptable(worker, claims).keys() - cancelled) == len(claims)


def _silent_ms(worker: Worker, target: Target) -> int | None:
    """The age of its last heartbeat, if it is older than the lease."""
    silent_ms = target.opened.now_ms() - to_ms(worker.heartbeat_at)
    return silent_ms if silent_ms > target.settings.lease_ms else None


def _silent(worker: Worker, silent_ms: int, target: Target) -> Finding:
    since = f"has had no heartbeat for {format_duration(silent_ms - silent_ms % 1000)}"
    if is_stopped(worker, here=target.here):
        message = f"worker {worker.id} {since}: its process {worker.pid} is stopped"
        hint = f"resume it with kill -CONT {worker.pid}, or end it with queuectl worker stop --now {worker.id}"
        # Inside a transaction it keeps the database locked: `worker stop` would have to wait for it.
        holder = None if target.store_file is None else lock_holder(target.store_file)
        if holder is not None and holder.process.pid == worker.pid:
            hint = hint_for(holder)
        return problem("worker-stopped", message, hint)
    if worker.machine == target.here.machine:  # by its lock it is alive
        message = f"worker {worker.id} {since}: its process {worker.pid} lives, but does not reach the database"
        return problem("worker-silent", message, f"its log says why: {worker_log(worker.home, worker.id)}, if detached")
    message = f"worker {worker.id} at {worker.host} {since}, longer than the lease"
    hint = "if its machine is gone, a worker anywhere takes its jobs: queuectl worker start"
    return problem("worker-silent", message, hint)


def jobs(target: Target) -> CheckResult:
    """Whether each job in state `processing` has a worker."""
    store = target.opened
    running = [job.worker for job in store.jobs(RUNNING) if job.worker is not None]
    # The workers after their jobs: a worker with a job has registered before.
    known = {worker.id: worker for worker in store.workers()}
    findings = []
    for name in dict.fromkeys(running):
        worker = known.get(name)
        if worker is not None and is_alive(worker, here=target.here):
            continue
        # Asked again: it may have finished and exited in between, or another worker has rescued them.
        if not (claims := store.running(name)):
            continue
        if worker is None:
            findings.append(_unknown(name, [claim.id for claim in claims], target))
            continue
        continuing = adoptable(worker, claims)
        if fine := [claim.id for claim in claims if claim.token in continuing]:
            be = "runs" if len(fine) == 1 else "run"
            message = f"{plural(len(fine), 'job')} ({shortened(fine)}) {be} on without worker {name}, which is dead"
            hint = "the next worker of this data directory adopts them: queuectl worker start"
            findings.append(note("job-unattended", message, hint))
        if ids := [claim.id for claim in claims if claim.token not in continuing]:
            message = f"{_stuck(ids)} worker {name}, which is dead"
            hint = "queuectl doctor --fix, or the next worker that is started, takes them back"
            findings.append(problem("job-stuck", message, hint))  # repaired with the worker
    findings += _unserved(target, [worker for worker in known.values() if is_alive(worker, here=target.here)])
    return findings or (f"{plural(len(running), 'job')} running, each with a worker" if running else "none is running")


def _unserved(target: Target, alive: list[Worker]) -> list[Finding]:
    """Queues with jobs that are due and no live worker. Not if no worker is alive at all: `workers` reports that."""
    serving = [worker for worker in alive if worker.state == "running"]
    if not serving or any(worker.queues is None for worker in serving):
        return []
    served = {WEBHOOK_QUEUE, *(queue for worker in serving for queue in worker.queues or ())}
    waiting = sorted(target.opened.oldest_waiting_ms().keys() - served)
    hint = f"queuectl worker start --queue {waiting[0]}" if waiting else ""
    message = f"jobs wait in {shortened(waiting)}, and no live worker serves {'it' if len(waiting) == 1 else 'them'}"
    return [note("queue-not-served", message, hint)] if waiting else []


def _unknown(name: str, ids: list[str], target: Target) -> Finding:
    message = f"{_stuck(ids)} worker {name}, which the database does not know"
    here = all(target.opened.history(job_id)[-1].host == target.here.host for job_id in ids)
    if not here:
        return problem("job-stuck", message, "run queuectl doctor --fix on the machine where they ran")
    return problem(
        "job-stuck", message, "queuectl doctor --fix gives them back", partial(_rescue_from_unknown, target, name)
    )


def _stuck(ids: list[str]) -> str:
    return f"{plural(len(ids), 'job')} ({shortened(ids)}) {'waits' if len(ids) == 1 else 'wait'} for"


# ── what can be done ────────────────────────────────────────────────────────────────────────────────────────────────


def _rescue(target: Target) -> str:
    events: list[Event] = []
    names = rescue_dead(
        target.opened, here=target.here, clock=target.clock, settings=target.settings, spare=True, emit=events.append
    )
    if not names:
        return "nothing: another worker was faster"
    return f"took {_rescued(events)} back from {shortened(names)}"


def _rescue_from_unknown(target: Target, name: str) -> str:
    events: list[Event] = []
    rescue_unknown(
        target.opened,
        name,
        home=target.home,
        here=target.here,
        clock=target.clock,
        settings=target.settings,
        emit=events.append,
    )
    return f"took {_rescued(events)} back from {name}"


def _rescued(events: list[Event]) -> str:
    return plural(sum(isinstance(event, JobRescued) for event in events), "job")


# ── processes that jobs have left behind ─────────────────────────────────────────────────────────────────────────────


def processes(target: Target) -> CheckResult:
    """Processes with the token of a run of this store that has ended.

    Not repaired by --fix: what a job leaves in the background on purpose is left alone when it ends.
    """
    # The processes first: one that is started later is not among them, and the token of one that was started is in the store.
    marked = [(process, system.environ(process.pid)) for process in system.processes()]
    ours = [(process, env) for process, env in marked if TOKEN_VARIABLE in env and _is_of(env, target)]
    running = _tokens(target) if ours else set()
    left = [
        f"{process.pid} of {env.get('QUEUECTL_JOB_ID', '?')} ({system.command_line(process.pid)[:MAX_COMMAND_CHARACTERS]})"
        for process, env in ours
        if env[TOKEN_VARIABLE] not in running and tree.started(process.pid) == process.started
    ]
    if not left:
        return "none left over from ended runs"
    be = "outlives the run that started it" if len(left) == 1 else "outlive the runs that started them"
    message = f"{len(left):,} {'process' if len(left) == 1 else 'processes'} {be}: {shortened(left)}"
    return [note("orphans", message, "jobs may leave some on purpose; if they are not needed: kill PID")]


def _is_of(env: dict[str, str], target: Target) -> bool:
    # Jobs of other users do not get the password of the database.
    known = (target.db, None if target.db is None else without_secrets(target.db))
    return env.get("QUEUECTL_HOME") == target.home and env.get("QUEUECTL_DB") in known


def _tokens(target: Target) -> set[str]:
    names = {worker.id for worker in target.opened.workers()} | {
        job.worker for job in target.opened.jobs(RUNNING) if job.worker
    }
    return {claim.token for name in names for claim in target.opened.running(name)}
