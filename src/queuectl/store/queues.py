"""The rules of queues: pause, concurrency and rate limits, and defaults for their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queuectl.jobs.priority import Ageing, ByTime, format_ageing
from queuectl.jobs.queue_limits import QueueLoad, QueueSettings
from queuectl.store import audit
from queuectl.store.admission import change_rules, read_limit, read_rules, rules_row
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.rows import by_key
from queuectl.store.transactions import Transactions


class Queues:
    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    def rules(self) -> dict[str, QueueSettings]:
        """The rules of all queues that have some."""
        return {name: read_rules(tuple(row)) for name, *row in self._tx.all("rules")}

    def loads(self) -> dict[str, QueueLoad]:
        """For each queue that is paused or limited: how its limits stand."""
        now = self._tx.clock.now_ms()
        return {limit.queue: limit.brake(now) for limit in map(read_limit, self._tx.all("limits", {"now": now}))}

    def running_keys(self) -> dict[tuple[str, str], list[str]]:
        """By queue and concurrency key, the IDs of running jobs, in queues that limit keys."""
        return by_key(self._tx.all("running_keys"))

    def rates(self) -> dict[str, int]:
        """For each queue with a rate limit: the starts in the current window."""
        return dict(self._tx.all("recent_starts", {"now": self._tx.clock.now_ms()}))

    def count_due(self, queue: str, *, most: int) -> tuple[int, int]:
        """The due jobs that wait in a queue, and those of them whose concurrency key has a free slot; at most `most` each."""
        due, free = self._tx.all("count_due", {"queue": queue, "most": most})[0]
        return due, free

    @retry_conflicts
    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> QueueSettings:
        """Change rules of a queue, by the names of Rules; None removes one. Returns all rules of the queue.

        From then on no claim exceeds them; running jobs continue.
        """
        # Exclusive: a concurrent claim has not seen the new rules, and its jobs are not visible here.
        with self._tx.write("change_ageing", notify=True):
            before = self.lock_rules(queue)
            rules = change_rules(before, changes)
            self.write_rules(queue, before, rules)
            if rules != before:
                self._tx.record(audit.ruled(queue, before, rules))
        return rules

    def lock_rules(self, queue: str) -> QueueSettings:
        """Within a transaction: the rules of a queue, which no other transaction changes or claims by until the end of this one."""
        row = self._tx.one("take_rules", {"name": queue})
        return QueueSettings() if row is None else read_rules(row)

    def write_rules(self, queue: str, before: QueueSettings, rules: QueueSettings) -> None:
        """Within a transaction that holds `change_ageing`, after `lock_rules`."""
        if rules == QueueSettings():
            self._tx.execute("unset_rules", {"name": queue})
        else:
            self._tx.execute("set_rules", rules_row(queue, rules))
        if rules.rate is None:
            self._tx.execute("forget_starts", {"queue": queue})
        if rules.per_key != before.per_key:
            self._tx.execute("mark_key_blocked", {"queue": queue, "per_key": rules.per_key})


def ageing_values(ageing: Ageing) -> dict[str, str | int]:
    """The parameters of `set_ageing` and `rerank`."""
    if isinstance(ageing, ByTime):
        return {"ageing": "time", "step_ms": ageing.step_ms}
    return {"ageing": format_ageing(ageing), "step_ms": 0}


def update_key_limits(tx: Transactions) -> None:
    """Within a transaction that has changed the rank of jobs: decide again which may be claimed, in all queues that limit keys."""
    per_key = dict.fromkeys((queue for (queue,) in tx.all("queues_with_key_limits")), None)
    per_key |= dict(tx.all("per_key"))
    for queue, limit in per_key.items():
        tx.execute("mark_key_blocked", {"queue": queue, "per_key": limit})
