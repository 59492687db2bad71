"""Which queues a worker asks for: those it was given, in their order or by weight, else all."""

from __future__ import annotations

from queuectl import paths as places
from queuectl.jobs.queue_limits import split_slots
from queuectl.store.types import ClaimRequest
from queuectl.worker.plan import Plan


class Shares:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._credits = [0] * len(plan.weights or ())

    def request(self, slots: int, calls: int = 0) -> ClaimRequest | None:
        """What to ask for when so many slots are free, and so many calls may be made beside. Weights decide who goes first; no slot
        stays empty for them."""
        if not (slots or calls):
            return None
        plan = self._plan
        shares = None
        if plan.weights is not None and slots:
            shares = tuple(split_slots(plan.weights, self._credits, slots))
        return ClaimRequest(slots, plan.queues, plan.host, places.logs(plan.home), shares, calls)
