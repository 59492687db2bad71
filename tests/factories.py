"""Values for tests, with defaults for all that a test does not care about."""

from __future__ import annotations

from typing import Any, Final

from queuectl.gate import Gate
from queuectl.job.model import Claim, NewJob
from queuectl.job.outcome import Exited, Outcome
from queuectl.job.retry import RetryPolicy
from queuectl.job.settle import Settlement, settle
from queuectl.policy.force import Force

NO_POLICY: Final = Gate(Force(None), {})
POLICY: Final = RetryPolicy(max_ms=3_600_000, jitter=0)

_PLAIN: Final[dict[str, Any]] = {
    "command": "true",
    "argv": None,
    "id": None,
    "queue": "default",
    "priority": 0,
    "max_retries": 3,
    "first_is_free": False,
    "backoff_base": 2.0,
    "timeout_ms": None,
    "run_at_ms": None,
    "delay_ms": None,
    "cwd": "/",
    "env": None,
    "tags": (),
}


def new_job(job_id: str | None = None, **fields: Any) -> NewJob:
    return NewJob(**{**_PLAIN, "id": job_id, **fields})


def settlement(claim: Claim, outcome: Outcome = Exited(0)) -> Settlement:
    """The rules' answer to `outcome`, without jitter."""
    return settle(claim, outcome, policy=POLICY, chance=0.5)


def unknown_claim(job_id: str, *, seq: int = 1, token: str = "never-given") -> Claim:
    """A claim that no store has handed out."""
    return Claim(
        seq=seq,
        id=job_id,
        token=token,
        run=1,
        command="true",
        argv=None,
        queue="default",
        attempts=0,
        crashes=0,
        max_retries=3,
        first_is_free=False,
        backoff_base=2.0,
        timeout_ms=None,
        cwd="/",
        env=None,
        log="/nowhere/x.log",
    )
