"""The page of the audit log: who changed what and when, with the values before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from queuectl.operations.inspect import Recorded, audit_records
from queuectl.operations.pages import encode_cursor
from queuectl.store_threads import WebSession
from queuectl.text import is_valid_id
from queuectl.units import format_duration, format_size, from_ms
from queuectl.web.api.operation import read_cursor
from queuectl.web.pages.jobs import SINCE
from queuectl.web.pages.render import PageRequest, View, exact, part, with_query

PAGE_SIZE: Final = 50
MAX_TARGETS: Final = 4
MAX_CHANGES: Final = 8
MAX_VALUE_LENGTH: Final = 160
FILTERS: Final = ("who", "id", "what", "since")

# The page of the targets of an action, by its group; other targets are jobs.
_PAGES: Final = {"alert": "/alerts/", "cron": "/cron/", "queue": "/queues/", "worker": "/workers/"}
_OF_JOBS: Final = frozenset({"queue move", "cron run"})
_TRANSPARENT: Final = frozenset({"fields", "limits"})  # groups of fields without a meaning of their own
_TIMES: Final = frozenset({"run_at", "until_ms"})
_NOT_SHOWN: Final = frozenset({"name", "anchor_ms"})  # the target itself, and a detail of `every`
_WITHOUT_PAGE: Final = frozenset({"audit", "copy", "import", "reset", "restore"})


class Change(NamedTuple):
    """A changed value. `before` is None for something new, `after` for something removed."""

    name: str
    before: str | None
    after: str | None


def show(session: WebSession, ask: PageRequest) -> View:
    given = {name: text for name in FILTERS if (text := ask.query.one(name)) is not None}
    cursor, before = ask.query.one("cursor"), None
    if cursor is not None:
        (before,) = read_cursor(cursor, int)
    reads = session.reads
    found = list(
        audit_records(
            reads,
            since=given.get("since"),
            subject=given.get("id"),
            who=given.get("who"),
            what=given.get("what"),
            before=before,
            limit=PAGE_SIZE + 1,  # one more than shown, to know whether there is another page
            now_ms=reads.now_ms,
        )
    )
    entries, here = found[:PAGE_SIZE], list(given.items())
    next_url = None
    if len(found) > len(entries):
        next_url = with_query("/audit", [*here, ("cursor", encode_cursor([entries[-1].seq]))])
    values: dict[str, Any] = {
        "entries": [_row(one) for one in entries],
        "given": {name: given.get(name) for name in FILTERS},
        "is_filtered": bool(given),
        "since_choices": SINCE,
        "next_url": next_url,
        "first_url": with_query("/audit", here) if cursor is not None else None,
        "only": lambda **more: with_query("/audit", [*(pair for pair in here if pair[0] not in more), *more.items()]),
    }
    return View("audit.html", "Audit log", values)


def _row(one: Recorded) -> dict[str, Any]:
    changes = diff(one.before, one.after)
    return {
        "seq": one.seq,
        "at": from_ms(one.at),
        "by": one.by,
        "program": one.who.get("program"),
        "what": one.what,
        "targets": [(target, target_url(one.what, target)) for target in one.subjects[:MAX_TARGETS]],
        "more_targets": max(0, len(one.subjects) - MAX_TARGETS),
        "changes": changes[:MAX_CHANGES],
        "more_changes": max(0, len(changes) - MAX_CHANGES),
    }


def target_url(action: str, target: str) -> str | None:
    """The page of what was changed; it may have been removed since."""
    group, _, _ = action.partition(" ")
    if group == "config":
        return f"/settings#s-{target}"
    if group in _PAGES and action not in _OF_JOBS:
        return _PAGES[group] + part(target)
    return f"/jobs/{part(target)}" if group not in _WITHOUT_PAGE and is_valid_id(target) else None


def diff(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Change]:
    """The changed values, those of nested objects by their path; values that did not change are omitted."""
    was, now = dict(_flat(before or {})), dict(_flat(after or {}))
    names = dict.fromkeys([*was, *now])
    return [Change(name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        match value:
            case None:
                continue
            case Mapping() if value:
                yield from _flat(value, prefix if name in _TRANSPARENT else f"{prefix}{name}.")
            case [Mapping() as only]:
                yield from _flat(only, prefix)
            case [Mapping(), *_]:
                for number, one in enumerate(value, 1):
                    yield from _flat(one, f"{prefix}{number}.")
            case _:
                if name not in _NOT_SHOWN:
                    yield _text(f"{prefix}{name}", value)


def _text(name: str, value: Any) -> tuple[str, str]:
    """Times and sizes are stored as numbers."""
    last = name.rpartition(".")[2]
    if isinstance(value, int) and last in _TIMES:
        return name.removesuffix("_ms"), exact(from_ms(value))
    if isinstance(value, int) and not isinstance(value, bool) and last.endswith("_ms"):
        return name.removesuffix("_ms"), format_duration(value)
    if isinstance(value, int) and last in ("memory", "file_size"):
        return name, format_size(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return name, text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 1] + "…"
