"""What a worker says, for programs: one JSON object a line. The fields are documented in docs/reference/json.md."""

from __future__ import annotations

from typing import Any, Final, assert_never

from queuectl import events
from queuectl.job.lifecycle import State
from queuectl.job.model import Claim
from queuectl.job.settle import Settlement

_INFO: Final = "info"
_WARNING: Final = "warning"
_ERROR: Final = "error"


def facts_of(event: events.Event) -> tuple[str, dict[str, Any]]:
    """How grave it is, and what there is to know of it beside the words."""
    match event:
        case events.JobStarted(claim, pid):
            return _INFO, {**_job(claim), "pid": pid}
        case events.JobEnded(claim, settlement, duration):
            return _gravity(settlement), {
                **_job(claim),
                **_end(settlement),
                "duration_ms": round(duration * 1000),
            }
        case events.JobAdopted(claim, worker):
            return _INFO, {**_job(claim), "from": worker}
        case events.JobRescued(claim, settlement, worker):
            return _WARNING, {**_job(claim), **_end(settlement), "from": worker}
        case events.JobLost(claim):
            return _WARNING, _job(claim)
        case events.WorkerStarted(_, pid, slots, queues):
            return _INFO, {"pid": pid, "slots": slots, "queues": None if queues is None else list(queues)}
        case events.WorkerStopping(running, now, unwritten):
            return _INFO, {"running": running, "now": now, "unwritten": unwritten}
        case events.WorkerRestarting(running):
            return _INFO, {"running": running}
        case events.WorkerStopped(jobs_done, unwritten):
            return (_WARNING if unwritten else _INFO), {"jobs_done": jobs_done, "unwritten": unwritten}
        case events.WorkerResized(slots):
            return _INFO, {"slots": slots}
        case events.DeclaredLost(runs):
            return _ERROR, {"running": runs}
        case events.ScheduleFired(schedule, job, reason):
            return _INFO, {"schedule": schedule, "job": job, "reason": reason}
        case events.AlertTold(alert, word, text):
            return (_INFO if word == "over" else _WARNING), {"alert": alert, "word": word, "text": text}
        case events.PolicyInForce(path):
            return _INFO, {"policy": path}
        case events.WakeUpSilent(why):
            return _WARNING, {"error": why}
        case events.StoreTrouble(problem, _):
            return _ERROR, {"error": problem}
        case events.StoreRecovered():
            return _INFO, {}
        case events.StoppedProcessKilled(pid, _):
            return _WARNING, {"pid": pid}
        case unreachable:
            assert_never(unreachable)


def _job(claim: Claim) -> dict[str, Any]:
    return {"job": claim.id, "queue": claim.queue, "run": claim.run}


def _end(settlement: Settlement) -> dict[str, Any]:
    return {
        "state": settlement.state.value,
        "attempts": settlement.attempts,
        "exit_code": settlement.exit_code,
        "signal": settlement.signal,
        "error": settlement.error,
    }


def _gravity(settlement: Settlement) -> str:
    if settlement.state is State.DEAD:
        return _ERROR
    return _WARNING if settlement.state is State.FAILED else _INFO
