"""The one query that is put together at run time: a list of jobs by whatever a person asks for.

Every piece is a constant of this module and every value a parameter.
"""

from __future__ import annotations

from typing import Any, Final

from queuectl.store.protocol import Filter

_WORDS: Final = (
    "select string_agg(word, ' ' order by place)"
    " from json_array_elements_text(argv::json) with ordinality as words (word, place)"
)


def where(filters: Filter, behind: tuple[str, list[Any]] | None = None) -> tuple[str, list[Any]]:
    """A where clause and its parameters. `behind`: one more condition, and its values."""
    clauses: list[str] = []
    values: list[Any] = []
    for column, wanted in (
        ("state", filters.states),
        ("queue", filters.queues),
        ("id", filters.ids),
        ("batch", filters.batches),
    ):
        if wanted:
            clauses.append(f"{column} = any(%s::text[])")
            values.append(sorted(map(_bindable, wanted)))
    if not filters.calls:
        clauses.append("queue <> 'queuectl.webhooks'")
    for tag in sorted(filters.tags):
        clauses.append("seq in (select job from queuectl.job_tags where tag = %s)")
        values.append(_bindable(tag))
    if filters.since_ms is not None:
        clauses.append("created_at >= %s")
        values.append(filters.since_ms)
    if filters.match is not None:
        clauses.append(f"strpos(coalesce(command, ({_WORDS})), %s) > 0")
        values.append(filters.match)
    if behind is not None:
        clauses.append(behind[0])
        values.extend(behind[1])
    return (f" where {' and '.join(clauses)}" if clauses else ""), values


def _bindable(word: str) -> str:
    """A word of the command line may hold bytes that PostgreSQL does not take. It matches nothing, and neither does "?"."""
    return word.encode(errors="replace").decode().replace("\0", "?")
