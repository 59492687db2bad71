"""queuectl audit"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.jobs import plural
from queuectl.cli.numbers import integer
from queuectl.cli.result import Column, Result, Sheet, Table
from queuectl.cli.style import age
from queuectl.errors import JobNotFound, UnknownName, UsageError
from queuectl.job.nearest import nearest
from queuectl.queue import audit as use
from queuectl.queue.audit import Recorded, Verdict
from queuectl.store.protocol import Reads

SHOWN: Final = 50
NAMED: Final = 3
VERIFY: Final = "verify"


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [VERIFY] if VERIFY.startswith(incomplete) else []


@command(
    "audit",
    examples="""
        queuectl audit --since 1d
        queuectl audit --id 7f3a
        queuectl audit --who alice --json
        # whether anything was changed since; note down the last line elsewhere
        queuectl audit verify
    """,
)
@click.argument("verify", required=False, metavar="[verify]", shell_complete=_complete)
@click.option("--since", metavar="WHEN", help="Only since then: 90m or 2d ago, or 2026-11-15 20:30.")
@click.option(
    "--id",
    "subject",
    metavar="ID",
    shell_complete=complete_jobs,
    help="Only of this job, queue, schedule, worker or setting.",
)
@click.option("--who", metavar="WHO", help="Only by this user, uid, host, program or token.")
@click.option("--limit", type=integer, default=SHOWN, metavar="N", help=f"At most so many; {SHOWN} unless told.")
@click.option("--head", metavar="SEQ:HASH", help="With verify: a place of the chain that was noted before.")
def audit(app: App, verify: str | None, head: str | None, limit: int, **options: Any) -> Result:
    """Who changed what, newest first; `verify` tells whether these records are as they were written."""
    if verify is not None:
        if verify != VERIFY:
            raise UnknownName("command", verify, nearest=nearest(verify, [VERIFY]), known=[VERIFY])
        if given := [name for name, value in options.items() if value is not None]:
            hint = "queuectl audit verify, or queuectl audit with what you look for"
            raise UsageError(f"verify looks at all records: no --{given[0].replace('subject', 'id')}", hint=hint)
        noted = None if head is None else use.parse_link(head, subject="--head")
        found = use.verify(app.open_reads(), noted)
        return Sheet(found.to_dict(), people=lambda: _verdict(app, found), exit_code=0 if found.is_whole else 1)
    if head is not None:
        raise UsageError("--head is for verify", hint="queuectl audit verify --head SEQ:HASH")
    reads = app.open_reads()
    options["subject"] = _subject(reads, options["subject"])
    rows = use.records(reads, **options, limit=limit, now_ms=reads.now_ms, dashes="--")
    return Table(
        rows,
        _columns(reads.now_ms()),
        to_json=Recorded.to_dict,
        to_id=lambda one: str(one.seq),
        empty="nothing was recorded",
    )


def _subject(reads: Reads, ref: str | None) -> str | None:
    """In full, if it is the beginning of the id of a job that is there; else as it is: it may have been removed."""
    if ref is None:
        return None
    try:
        return reads.resolve(ref)
    except JobNotFound:
        return ref


def _verdict(app: App, found: Verdict) -> Iterator[str]:
    for fault in found.faults:
        yield app.paint(fault.what, "red")
    words = (
        "as they were written; the last is" if found.is_whole else "not all as they were written; the last should be"
    )
    yield f"{plural(found.records, 'record')}, {words} {found.ends.head.seq}:{found.ends.head.hash}"


def _columns(now_ms: int) -> list[Column[Recorded]]:
    return [
        Column("SEQ", lambda one: str(one.seq), right=True),
        Column("AGE", lambda one: age(one.at, now_ms), right=True),
        Column("WHO", lambda one: one.by),
        Column("WHAT", lambda one: one.what),
        Column("OF", _subjects),
        Column("CHANGE", _change, flexible=True, optional=True),
    ]


def _subjects(one: Recorded) -> str:
    named, more = " ".join(one.subjects[:NAMED]), len(one.subjects) - NAMED
    return f"{named} and {more:,} more" if more > 0 else named


def _change(one: Recorded) -> str:
    before, after = one.before or {}, one.after or {}
    return ", ".join(_step(name, before, after) for name in {**before, **after})


def _step(name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    """What was nothing before is not told; what becomes nothing is."""
    if name not in after:
        return f"{name} {_words(before[name])}"
    was = before.get(name)
    return f"{name} {_words(after[name])}" if was is None else f"{name} {_words(was)} → {_words(after[name])}"


def _words(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list() if len(value) == 1:
            return _words(value[0])
        case dict() if "command" in value:
            return str(value["command"])
        case dict():
            return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
        case list():
            return "; ".join(map(_words, value))
        case _:
            return str(value)
