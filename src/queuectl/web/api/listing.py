"""The form of every list of the API: some of it, and where the rest begins. Here for those that are read whole: queues, workers,
schedules. Lists of jobs page in the store, see queue/cursor.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from queuectl.queue.cursor import not_ours, pack, unpack
from queuectl.web.api.operation import Call, Param
from queuectl.web.api.schemas import Schema, array, exactly, maybe
from queuectl.web.api.words import CURSOR

MOST: Final = 1000
# More than people have of these: most callers never see a second page.
_LIMIT: Final = Param("limit", "How many at most.", {"type": "integer", "minimum": 1, "maximum": MOST, "default": MOST})
PAGING: Final = (_LIMIT, CURSOR)


def listing(of: Schema) -> Schema:
    return exactly(items=array(of), next_cursor=maybe("string"))


def page(call: Call, rows: Sequence[Mapping[str, Any]], *, name: str) -> dict[str, Any]:
    """`name`: the field by which one is told from the others."""
    begin = 0 if call.query["cursor"] is None else _place(call.query["cursor"], [row[name] for row in rows])
    end = begin + call.query["limit"]
    last = pack([end - 1, rows[end - 1][name]]) if end < len(rows) else None
    return {"items": rows[begin:end], "next_cursor": last}


def read_cursor(text: str, *kinds: type) -> list[Any]:
    """Fields of these kinds. Raises InvalidInput unless it is one that was made of such."""
    try:
        fields = unpack(text)
        # What we would write otherwise, we have not written.
        if [type(field) for field in fields] != [*kinds] or pack(fields) != text:
            raise ValueError
    except (ValueError, TypeError, RecursionError) as exc:
        raise not_ours() from exc
    return fields


def _place(cursor: str, names: Sequence[str]) -> int:
    """Behind the one that was last, wherever it is now; if it has gone, the one behind it has come into its place."""
    place, last = read_cursor(cursor, int, str)
    return names.index(last) + 1 if last in names else max(0, min(place, len(names)))
