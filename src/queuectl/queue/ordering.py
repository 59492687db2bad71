"""Which orders a list can be asked for over HTTP: those that an index has, and others while they are of few enough jobs.

To keep an index for each order would make every run of every job dearer, for lists that few look at. Whoever needs one of them all
has `queuectl list`, which keeps nobody else waiting.
"""

from __future__ import annotations

from typing import Final

from queuectl.errors import InvalidInput
from queuectl.job.lifecycle import FINAL
from queuectl.store.protocol import Filter, Reads, Sort

MOST_SORTED: Final = 50_000  # jobs that are looked at for it: some 100 ms


def check_order(store: Reads, where: Filter, sort: Sort, *, most: int = MOST_SORTED) -> None:
    """Raises InvalidInput for an order in which too many jobs would have to be put first."""
    if is_sortable(store, where, sort, most=most):
        return
    problem = f"more than {most:,} jobs are too many to be put in the order of {sort.value}"
    hint = "choose fewer, by state, tag or batch, or sort by created; queuectl list sorts any number"
    raise InvalidInput("sort", problem, hint=hint)


def is_sortable(store: Reads, where: Filter, sort: Sort, *, most: int = MOST_SORTED) -> bool:
    if sort is Sort.CREATED or (sort is Sort.FINISHED and len(where.states) == 1 and where.states <= FINAL):
        return True
    # What is chosen by queue, time or text has to be looked for among all the others: they count as well.
    if store.count(Filter(where.states)) <= most:
        return True
    if not (where.ids or where.tags or where.batches):
        return False
    named = Filter(where.states, tags=where.tags, ids=where.ids, batches=where.batches)
    return not any(store.jobs(named, limit=1, offset=most))
