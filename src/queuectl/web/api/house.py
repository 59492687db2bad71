"""Keeping house: what is wrong here, and removing what has ended."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from queuectl.config import environ
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.retention import retention
from queuectl.patient import patient
from queuectl.queue.filters import able_only
from queuectl.upkeep import prune as use
from queuectl.upkeep.doctor.checks import examine, fix, report
from queuectl.web.api.operation import Call, Operation, Room
from queuectl.web.api.schemas import COUNT, DURATION, FLAG, exactly, optional, ref
from queuectl.web.api.words import WHERE_SCHEMA, a_flag, an_object, where_of
from queuectl.web.desk import Desk


def doctor(desk: Desk, call: Call) -> Any:
    return _examine(desk, to_fix=False)


def doctor_fix(desk: Desk, call: Call) -> Any:
    return _examine(desk, to_fix=True)


def _examine(desk: Desk, *, to_fix: bool) -> dict[str, Any]:
    look = partial(patient, desk.home, lambda: desk.db, environ=environ(), clock=desk.clock)
    with look() as found:
        checked = examine(found)
        fixed = fix(checked) if to_fix else []
    if fixed:
        with look() as found:
            checked = examine(found)
    return report(found, checked, fixed)


def prune(desk: Desk, call: Call) -> Any:
    """As the command: without `older_than` by the settings, of those that match."""
    said = an_object(call.body, "body", known=["older_than", "where", "dry_run"])
    dry_run = a_flag(said, "dry_run")
    older = said.get("older_than")
    age = None if older is None else parse_duration_ms(older, subject="older_than")
    where = able_only(where_of(said.get("where"), desk.reads), FINAL, done="pruned", subject="state")
    only = None
    if not where.names_states_only:
        only = frozenset(job.id for job in desk.reads.choose(where))
    ages = retention(desk.settings) if age is None else dict.fromkeys(FINAL, age)
    ages = {state: ages[state] for state in State if state in where.states}
    plan = use.Plan.by_age(ages, now_ms=desk.reads.now_ms(), only=only)
    # Nothing is made to say that there is nothing.
    is_empty = not any(use.count(desk.reads, plan).values())
    done = use.foresee(desk.reads, plan) if dry_run or is_empty else desk.prune(plan)
    jobs = {state.value: done.jobs.get(state, 0) for state in State if state in FINAL}
    return {"dry_run": dry_run, "jobs": jobs, "logs": done.logs._asdict()}


_PRUNED: Final = exactly(
    dry_run=FLAG,
    jobs=exactly(**{state.value: COUNT for state in State if state in FINAL}),
    logs=exactly(files=COUNT, bytes=COUNT, elsewhere=COUNT),
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/doctor",
        doctor,
        "What is wrong here, and what to do about it.",
        ref("Checkup"),
        tag="house",
        room=Room.WAIT,
    ),
    Operation(
        "POST",
        "/doctor/fix",
        doctor_fix,
        "Put right what is safe to, and look again.",
        ref("Checkup"),
        tag="house",
        room=Room.WAIT,
    ),
    Operation(
        "POST",
        "/prune",
        prune,
        "Remove ended jobs with history and logs, by age; `dry_run` only counts them.",
        _PRUNED,
        body={
            "type": "object",
            "additionalProperties": False,
            "properties": optional(older_than=DURATION, where=WHERE_SCHEMA, dry_run=FLAG),
        },
        tag="house",
        room=Room.WAIT,
    ),
)
