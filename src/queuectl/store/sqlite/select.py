"""The one query that is put together at run time: a list of jobs by whatever a person asks for.

Every piece is a constant of this module and every value a parameter. A fixed statement with "or :x is null" for each
condition would keep SQLite from using an index for any of them.
"""

from __future__ import annotations

from typing import Any, Final

from queuectl.job.lifecycle import State
from queuectl.store.protocol import Filter, Sort

_WORDS: Final = "select group_concat(value, ' ') from (select value from json_each(argv) order by key)"


# Who has ended in one state, in the order of their ends.
_BY_END: Final = {State.COMPLETED: "jobs_completed", State.DEAD: "jobs_ended", State.CANCELLED: "jobs_ended"}


def index(filters: Filter, sort: Sort) -> str:
    """Which index has jobs in the order asked for, where SQLite would take another one and sort them all."""
    if sort is Sort.FINISHED and len(filters.states) == 1 and not filters.ids and not filters.tags:
        name = _BY_END.get(next(iter(filters.states)))
        return "" if name is None else f" indexed by {name}"
    return ""


def where(filters: Filter, behind: tuple[str, list[Any]] | None = None) -> tuple[str, list[Any]]:
    """A where clause and its parameters. `behind`: one more condition, and its values."""
    clauses: list[str] = []
    values: list[Any] = []
    if filters.states:
        # As the two indexes have it that hold states: SQLite uses one only if its condition stands in the query too.
        settled = sorted(filters.states - {State.PROCESSING})
        # And it compares words with words only, not with what will be given.
        words = f"= '{settled[0]}'" if len(settled) == 1 else f"in ({', '.join(map(repr, map(str, settled)))})"
        either = [f"(state {words} and state <> 'processing')"] if settled else []
        if State.PROCESSING in filters.states:
            either.append("seq in (select seq from jobs indexed by jobs_running where state = 'processing')")
        clauses.append(f"({' or '.join(either)})")
    for column, wanted in (("queue", filters.queues), ("id", filters.ids), ("batch", filters.batches)):
        if wanted:
            clauses.append(f"{column} in ({', '.join('?' * len(wanted))})")
            values.extend(sorted(map(_bindable, wanted)))
    if not filters.calls:
        clauses.append("queue <> 'queuectl.webhooks'")
    for tag in sorted(filters.tags):
        clauses.append("seq in (select job from job_tags where tag = ?)")
        values.append(_bindable(tag))
    if filters.since_ms is not None:
        clauses.append("created_at >= ?")
        values.append(filters.since_ms)
    if filters.match is not None:
        # Not like: it takes % and _ for more than they are, and a for A.
        clauses.append(f"instr(coalesce(command, ({_WORDS})), ?) > 0")
        values.append(filters.match)
    if behind is not None:
        clauses.append(behind[0])
        values.extend(behind[1])
    return (f" where {' and '.join(clauses)}" if clauses else ""), values


def _bindable(word: str) -> str:
    """A word of the command line may hold bytes that SQLite does not take. It matches nothing, and neither does "?"."""
    return word.encode(errors="replace").decode()
