"""Values for tests, with defaults for everything that a test does not specify."""

from __future__ import annotations

from typing import Any, Final

from queuectl.jobs.model import Claim, NewJob
from queuectl.jobs.outcome import Exited, Outcome, Settlement, settle
from queuectl.jobs.retry import RetryPolicy
from queuectl.policy.gate import Gate, PolicyLoader

NO_POLICY: Final = Gate(PolicyLoader(None), {})
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
    """Return the settlement for `outcome`, without jitter."""
    return settle(claim, outcome, policy=POLICY, chance=0.5)


def unknown_claim(job_id: str, *, seq: int = 1, token: str = "never-given") -> Claim:
    """Return a claim that no store has made."""
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
