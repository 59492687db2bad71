"""Taking in what export wrote, or another tool: all of it is read and found right first, then all of it is stored or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.config import change_settings, resolve_key
from queuectl.errors import DuplicateId, InvalidInput, JobDiffers, UnknownName, UsageError
from queuectl.job.model import Job
from queuectl.job.past import read_record
from queuectl.job.record import difference, unpack
from queuectl.job.shown import shown
from queuectl.job.spec import Defaults
from queuectl.queue.enqueue import Advance
from queuectl.queue.portable import KIND, Portable, leave_out_known, read_portable
from queuectl.queue.records import Records
from queuectl.queue.schedules import begin
from queuectl.store.porting import Door, Said
from queuectl.store.protocol import Filter, Reads, Store
from queuectl.store.stage import Stage

Present = Callable[[Sequence[str]], Mapping[str, Job]]
NOTHING: Final = Portable.empty()


class Imported(NamedTuple):
    imported: int
    skipped: int  # were there already
    given_back: int  # of those imported, jobs that ran when they were exported: they wait again
    settings: dict[str, str]
    ignored: list[str]  # what the source held and we have nothing like
    queues: list[str]  # about which something is said now
    schedules: list[str]
    alerts: list[str]
    batches: list[str]  # of which it is said now what runs when all of it has ended


def import_jobs(
    source: Records,
    defaults: Defaults,
    *,
    reads: Callable[[], Reads],
    open_store: Callable[[], Store],
    dry_run: bool,
    rules: bool,
    advance: Advance,
    chance: Callable[[], float] = lambda: 0.5,
) -> Imported:
    """Raises before anything is made or written if something of it is wrong, or cannot be in this store.

    `dry_run`: all but the writing. `rules`: also take in what an operator decides: queues, schedules, alerts, ends of batches.
    """
    with Stage() as stage:
        said = _read(source, defaults, stage, rules=rules, advance=advance, now_ms=reads().now_ms())
        settings, unknown = _settings(source.settings, reads=reads)
        ignored = [*source.ignored, *unknown]
        _leave_out_known(source, stage, lambda ids: _look(reads(), ids))
        if hidden := stage.hidden():
            raise source.blame(hidden[0], _left_out(hidden[1]))
        said = _leave_out_said(said, reads())
        if not dry_run and (stage.left()[0] or settings or said != NOTHING):
            with open_store().importing(settings, rules=said != NOTHING) as door:
                # Once more, now that nobody can add one of them: most likely all is as it was.
                _leave_out_known(source, stage, door.present)
                said = _leave_out_said(said, door)
                _say(said, door, defaults, chance=chance)
                _add(stage, door, advance=advance)
        new, given_back = stage.left()
        names = (sorted(of_a_kind) for of_a_kind in said)
        return Imported(new, stage.size - new, given_back, settings, ignored, *names)


def _leave_out_said(said: Portable, there: Said) -> Portable:
    if said == NOTHING:
        return said
    return leave_out_known(said, there)


def _say(said: Portable, door: Door, defaults: Defaults, *, chance: Callable[[], float]) -> None:
    for queue, rules in said.queues.items():
        door.set_rules(queue, rules)
    for one in said.schedules.values():
        door.add_schedule(begin(one, defaults, now_ms=door.now_ms(), chance=chance))
    for alert in said.alerts.values():
        door.add_alert(alert)
    for batch, job in said.batches.items():
        door.complete_with(batch, job)


def _read(source: Records, defaults: Defaults, stage: Stage, *, rules: bool, advance: Advance, now_ms: int) -> Portable:
    said = Portable.empty()
    for number, fields in source:
        try:
            if KIND in fields:
                if not rules:
                    # An alert runs commands, and webhooks of alerts and queues may lead to private addresses: whoever wrote the
                    # file must not decide that by the way.
                    problem = f"the file has more than jobs: {shown(fields[KIND])}"
                    raise InvalidInput(KIND, problem, hint="if you trust all of it: queuectl import --rules FILE")
                read_portable(fields, said, defaults, now_ms=now_ms)
                continue
            record = read_record(fields, defaults)
        except UsageError as error:
            raise source.blame(number, error) from error
        if not stage.add(number, record):
            raise DuplicateId(record.id, where=f"{source.noun} {number}", twice=True)
        advance(number, None)
    return said


def _look(store: Reads, ids: Sequence[str]) -> dict[str, Job]:
    return {job.id: job for job in store.jobs(Filter(ids=tuple(ids)))}


def _leave_out_known(source: Records, stage: Stage, present: Present) -> None:
    """What is there already is left out, and what has the id of another job refused."""
    for page in stage.pages():
        there = present([id_ for _, id_, _ in page])
        for number, id_, packed in page:
            if id_ in there and (field := difference(unpack(packed), there[id_])):
                raise JobDiffers(id_, field, where=f"{source.noun} {number}")
        if there:
            stage.leave_out(list(there))


def _add(stage: Stage, door: Door, *, advance: Advance) -> None:
    done, total = 0, stage.left()[0]
    for page in stage.by_age():
        door.add(page)
        done += len(page)
        advance(done, total)
    for page in stage.by_age():  # now that the parents of each are there, in whatever order they came
        if waiting := [record for record in page if record.depends_on]:
            door.link(waiting)


def _left_out(variable: str) -> InvalidInput:
    hint = "values of the environment are only in a file that export itself has made: queuectl export FILE"
    return InvalidInput(f"env.{variable}", "its value was left out of this export", hint=hint)


def _settings(found: Mapping[str, object], *, reads: Callable[[], Reads]) -> tuple[dict[str, str], list[str]]:
    """What to store, in canonical form, and what we have no key for."""
    wanted: dict[str, str | None] = {}
    unknown = []
    for name, value in found.items():
        try:
            key = resolve_key(name).name
        except UnknownName:
            unknown.append(f"setting {name}")
            continue
        if key.startswith("webhook-"):
            hint = f"queuectl config set {key} …"
            raise InvalidInput(name, "decides what this host calls, so no file sets it", hint=hint)
        if value is not None:
            wanted[key] = _text(value, name)
    if not wanted:
        return {}, unknown
    changes = change_settings(reads().config(), wanted)
    return {key: text for key, text in changes.items() if text is not None}, unknown


def _text(value: object, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise InvalidInput(name, "expected a number, a text, true or false", hint="config list shows what each key takes")
