"""In which order jobs are listed: the same words in every dialect."""

from __future__ import annotations

from typing import Any, Final

from queuectl.job.lifecycle import FINAL
from queuectl.store.protocol import After, Filter, Sort

_KEYS: Final = {
    Sort.CREATED: "seq",
    Sort.PRIORITY: "priority",
    Sort.STATE: "state",
    Sort.QUEUE: "queue",
    Sort.RUN_AT: "run_at",
    Sort.FINISHED: "finished_at",
    Sort.DURATION: "duration_ms",
}


class Order:
    """By the key, what has none last, and ties in the order of enqueue, the newest first."""

    def __init__(self, sort: Sort, where: Filter, *, descending: bool) -> None:
        self._key = _KEYS[sort]
        self._descending = descending
        # Not asked where it cannot be: no index has it.
        self._may_be_null = sort is Sort.DURATION or (sort is Sort.FINISHED and not _have_ended(where))

    @property
    def clause(self) -> str:
        way = "desc" if self._descending else "asc"
        if self._key == "seq":
            return f" order by seq {way}"
        nulls = f"{self._key} is null, " if self._may_be_null else ""
        return f" order by {nulls}{self._key} {way}, seq desc"

    def behind(self, after: After, mark: str) -> tuple[str, list[Any]]:
        """The condition that holds for all behind this place, and its values. `mark` stands for one in a statement.

        The key is compared twice, so that an index on it can be entered at the place.
        """
        than = "<" if self._descending else ">"
        if self._key == "seq":
            return f"seq {than} {mark}", [after.seq]
        if after.value is None:
            return f"({self._key} is null and seq < {mark})", [after.seq]
        here = f"({self._key} {than}= {mark} and ({self._key} {than} {mark} or seq < {mark}))"
        values = [after.value, after.value, after.seq]
        return (f"({self._key} is null or {here})" if self._may_be_null else here), values


def _have_ended(where: Filter) -> bool:
    return bool(where.states) and where.states <= FINAL
