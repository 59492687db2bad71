"""Read the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from queuectl.cron.schedule import format_time
from queuectl.jobs.audit import Entry
from queuectl.operations.query import parse_count, parse_since
from queuectl.store.reads import Reads


class Recorded(NamedTuple):
    """An entry as commands and the HTTP API show it."""

    seq: int
    at: int
    who: dict[str, Any]
    what: str
    subjects: list[str]
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @classmethod
    def of(cls, entry: Entry) -> Recorded:
        before, after = (None if text is None else json.loads(text) for text in (entry.before, entry.after))
        return cls(entry.seq, entry.at, json.loads(entry.actor), entry.action, json.loads(entry.targets), before, after)

    @property
    def by(self) -> str:
        token = self.who.get("token")
        name = f"{self.who.get('user') or self.who.get('uid')}@{self.who.get('host')}"
        return f"{name} ({token})" if token else name

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "at": format_time(self.at)}


def records(
    reads: Reads,
    *,
    since: object = None,
    subject: str | None = None,
    who: str | None = None,
    before: int | None = None,
    limit: int | str | None = None,
    now_ms: Callable[[], int],
    dashes: str = "",
) -> Iterator[Recorded]:
    """The newest first. `subject`: of this job, queue, schedule, worker or setting. `who`: a user, uid, host, program or token.
    `before`: only those older than the entry with this number."""
    since_ms = 0 if since is None else parse_since(since, subject=f"{dashes}since", now_ms=now_ms)
    has = None if subject is None else json.dumps(subject, ensure_ascii=False)
    found = map(Recorded.of, reads.audit.entries(since_ms=since_ms, has=has, newest=True, behind=before))
    chosen = (
        one
        for one in found
        if (subject is None or subject in one.subjects)
        and (who is None or who in {*map(str, one.who.values()), one.by})
    )
    return islice(chosen, parse_count(limit, subject=f"{dashes}limit"))
