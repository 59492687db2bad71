"""Who changed what: reading the audit, and finding out whether it is as it was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, StoreBusy
from queuectl.job.audit import FORGET, NOTHING, Ends, Entry, Fault, Link, faults
from queuectl.job.cron.model import moment
from queuectl.job.shown import shown
from queuectl.queue.filters import parse_count, parse_since
from queuectl.store.auditing import AuditReads

FAULTS_TOLD: Final = 20
ATTEMPTS: Final = 5  # at a chain whose beginning was forgotten meanwhile


class Recorded(NamedTuple):
    """A record for people and programs."""

    seq: int
    at: int
    who: dict[str, Any]
    what: str
    subjects: list[str]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    hash: str

    @classmethod
    def of(cls, entry: Entry) -> Recorded:
        """Whatever stands there: one that was changed by hand may be anything."""
        try:
            said = json.loads(entry.record)
            return cls(
                entry.seq,
                entry.at,
                dict(said["who"]),
                str(said["what"]),
                [str(one) for one in said["subjects"]],
                said["before"],
                said["after"],
                entry.hash,
            )
        except (ValueError, KeyError, TypeError):
            return cls(entry.seq, entry.at, {}, "unreadable", [], None, {"record": entry.record}, entry.hash)

    @property
    def by(self) -> str:
        token = self.who.get("token")
        name = f"{self.who.get('user') or self.who.get('uid')}@{self.who.get('host')}"
        return f"{name} ({token})" if token else name

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "at": moment(self.at)}


def records(
    reads: AuditReads,
    *,
    since: object = None,
    subject: str | None = None,
    who: str | None = None,
    before: int | None = None,
    limit: int | None = None,
    now_ms: Callable[[], int],
    dashes: str = "",
) -> Iterator[Recorded]:
    """The newest first. `subject`: of this job, queue, schedule, worker or setting. `who`: a user, uid, host, program or token.
    `before`: only those in front of this one."""
    since_ms = 0 if since is None else parse_since(since, subject=f"{dashes}since", now_ms=now_ms)
    has = None if subject is None else json.dumps(subject, ensure_ascii=False)
    found = map(Recorded.of, reads.audit(since_ms=since_ms, has=has, newest=True, behind=before))
    chosen = (
        one
        for one in found
        if (subject is None or subject in one.subjects)
        and (who is None or who in {*map(str, one.who.values()), one.by})
    )
    return islice(chosen, parse_count(limit, subject=f"{dashes}limit"))


class Verdict(NamedTuple):
    records: int
    ends: Ends
    faults: list[Fault]

    @property
    def is_whole(self) -> bool:
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        return {
            "whole": self.is_whole,
            "records": self.records,
            "base": self.ends.base._asdict(),
            "head": self.ends.head._asdict(),
            "faults": [fault._asdict() for fault in self.faults],
        }


def verify(reads: AuditReads, noted: Link | None = None) -> Verdict:
    """Whether nothing was changed, removed or put elsewhere. `noted`: a place of the chain that somebody wrote down before."""
    for _ in range(ATTEMPTS):
        ends = reads.audit_ends()
        verdict = _verdict(reads, ends, noted)
        if reads.audit_ends().base == ends.base:
            return verdict
    raise StoreBusy("the audit", 0)


def parse_link(text: str, *, subject: str) -> Link:
    """SEQ:HASH, as `verify` prints it."""
    seq, colon, digest = text.strip().partition(":")
    is_number = seq.isascii() and seq.isdecimal() and len(seq) < 19
    if not colon or not is_number or len(digest) != len(NOTHING) or set(digest) - set("0123456789abcdef"):
        raise InvalidInput(
            subject, f"not a place in the chain: {shown(text)}", hint="as audit verify prints it: SEQ:HASH"
        )
    return Link(int(seq), digest)


def _verdict(reads: AuditReads, ends: Ends, noted: Link | None) -> Verdict:
    count, said_base, is_there = 0, Link(0, NOTHING), noted in ends

    def told() -> Iterator[Entry]:
        nonlocal count, said_base, is_there
        for entry in reads.audit():
            if entry.seq > ends.head.seq:
                return  # it came meanwhile
            count += 1
            if f'"{FORGET}"' in entry.record and (one := Recorded.of(entry)).what == FORGET and one.after:
                said_base = Link(int(one.after["seq"]), str(one.after["hash"]))
            is_there = is_there or (entry.seq, entry.hash) == noted
            yield entry

    found = list(islice(faults(told(), ends), FAULTS_TOLD))
    if said_base != ends.base:
        found.append(Fault(ends.base.seq, "the oldest records were removed, and not by retention"))
    if noted is not None and not is_there:
        gone = "has been forgotten by retention" if noted.seq < ends.base.seq else "is not in this chain"
        found.append(Fault(noted.seq, f"the place that was noted, {noted.seq}, {gone}"))
    return Verdict(count, ends, found)
