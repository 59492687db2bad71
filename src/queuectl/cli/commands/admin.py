"""Administration: settings, prune, reset, doctor, audit."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, group, integer
from queuectl.cli.commands.control import BulkAction, apply_to_ids
from queuectl.cli.completion import complete_jobs, complete_keys
from queuectl.cli.errors import DONE, REFUSED, confirm, yes_option
from queuectl.cli.filters import Selection, ids_and_filters
from queuectl.cli.render import Details, Lines, Result, Table, progress
from queuectl.cli.tables import Column
from queuectl.config import change_settings
from queuectl.doctor import CheckReport, Repair, count, report, run_doctor
from queuectl.doctor.finding import Severity
from queuectl.errors import InvalidInput, JobNotFound, QueuectlError, UsageError
from queuectl.jobs.model import BulkResult
from queuectl.jobs.states import FINAL, State
from queuectl.maintenance import pruner
from queuectl.operations.backup import count_kept, require_no_workers, reset_store
from queuectl.operations.bulk import apply_to_each, find_jobs, find_refusals, resolve_ids
from queuectl.operations.inspect import Recorded, audit_records
from queuectl.settings import KEYS, SettingEntry, resolve_key, retention
from queuectl.store.open import store_exists
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.text import escape_control, plural
from queuectl.units import humanize_size, humanize_time, parse_duration_ms

_NOT_ENDED: Final = "completed, dead, cancelled; queuectl cancel cancels a job that waits or runs"


@command("prune")
@ids_and_filters()
@click.option("--older-than", metavar="TIME", help="Minimum time since the end of the job: 7d, 12h.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, remove nothing.")
@yes_option
def prune(
    app: App, ids: tuple[str, ...], older_than: str | None, selection: Selection, dry_run: bool, yes: bool
) -> Result:
    """Remove finished jobs with their history, output and logs, and shrink the database.

    Without --older-than, the settings retain-completed (also for cancelled jobs) and retain-dead apply, as for workers.
    Jobs that you name by ID are removed at any age. Waiting and running jobs are never removed.

    Examples:
        # by the settings retain-completed and retain-dead
        queuectl db prune
        # only count
        queuectl db prune --older-than 7d --dry-run
        queuectl db prune --older-than 90d --state dead --yes
        queuectl db prune --older-than 1d --queue thumbnails
        queuectl db prune 7f3a
    """
    age = None if older_than is None else parse_duration_ms(older_than, subject="--older-than")
    if ids:
        if selection or older_than is not None or dry_run:
            raise UsageError(
                "ids cannot be combined with filters, --older-than or --dry-run", hint="use one or the other"
            )
        return _prune_named(app, ids, yes=yes)
    where = selection.where(app)
    wanted = _ended_states(where.states)
    reads = app.open_reads()
    only = None
    if not where.names_states_only:
        only = frozenset(job.id for job in reads.choose(where._replace(states=wanted)))
    ages = retention(app.settings) if age is None else dict.fromkeys(FINAL, age)
    ages = {state: ages[state] for state in State if state in wanted}
    plan = pruner.Plan.by_age(ages, now_ms=reads.now_ms(), only=only)
    if dry_run:
        return _pruned_result(app, pruner.foresee(reads, plan), verb="would remove", dry_run=True)
    found = pruner.count(reads, plan)
    total = sum(found.values())
    if only and not total and age is None:
        app.say(app.paint(f"{plural(len(only), 'matching job')} kept for longer: --older-than 0s removes any", "dim"))
    if total:
        confirm(app, f"Remove {_jobs_text(found)} with history and logs?", yes=yes)
    if not store_exists(app.home, app.db):
        return _pruned_result(app, pruner.foresee(reads, plan), verb="removed", dry_run=False)
    with progress(app, "pruning", total=total) as advance:
        done = _carry_out(app, plan, advance=lambda jobs: advance(jobs, max(total, jobs)))
    return _pruned_result(app, done, verb="removed", dry_run=False, effect=f"removed {_jobs_text(done.jobs)}")


def _carry_out(app: App, plan: pruner.Plan, *, advance: Callable[[int], None]) -> pruner.Pruned:
    remover = pruner.Pruner(app.open_store(), home=app.home, writer=f"prune-{os.getpid()}", rows=pruner.MAX_ROWS)
    return pruner.prune(remover, plan, clock=app.clock, advance=advance)


def _prune_named(app: App, ids: tuple[str, ...], *, yes: bool) -> Result:
    def remove(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> BulkResult:
        def remove_some(some: Sequence[str]) -> Mapping[str, QueuectlError]:
            plan = pruner.Plan(dict.fromkeys(FINAL, store.now_ms()), frozenset(some))
            _carry_out(app, plan, advance=lambda _: None)
            left = {job.id: job.state for job in find_jobs(store, some).values()}
            return find_refusals(left, left, able=(), verb="prune", hint=lambda _: _NOT_ENDED)

        return apply_to_each(store, refs, remove_some, exact=exact)

    ended = [
        job
        for job in find_jobs(app.open_reads(), resolve_ids(app.open_reads(), ids).done).values()
        if job.state in FINAL
    ]
    if ended:
        counts = Counter(job.state for job in ended)
        confirm(app, f"Remove {_jobs_text(counts)} with history and logs?", yes=yes)
    return apply_to_ids(app, BulkAction(remove, "prune", "removed", FINAL), ids)


def _ended_states(given: frozenset[State]) -> frozenset[State]:
    for state in sorted(given - FINAL):
        raise InvalidInput("--state", f"{state} jobs have not ended and are never pruned", hint=_NOT_ENDED)
    return given or FINAL


def _pruned_result(app: App, done: pruner.Pruned, *, verb: str, dry_run: bool, effect: str | None = None) -> Details:
    jobs = {state.value: done.jobs.get(state, 0) for state in State if state in FINAL}
    value = {"dry_run": dry_run, "jobs": jobs, "logs": done.logs._asdict()}
    return Details(value, text=lambda: _pruned_lines(done, verb), effect=effect)


def _pruned_lines(done: pruner.Pruned, verb: str) -> Iterator[str]:
    logs = done.logs
    if not any(done.jobs.values()) and not logs.files:
        yield "nothing to remove"
        return
    files = f"{logs.files:,} {'log' if logs.files == 1 else 'logs'}, {humanize_size(logs.bytes)}"
    yield f"{verb} {_jobs_text(done.jobs)}; {files}"
    if logs.elsewhere:
        which = "1 log is" if logs.elsewhere == 1 else f"{logs.elsewhere:,} logs are"
        yield f"{which} not on this host, or already removed"


def _jobs_text(jobs: Mapping[State, int]) -> str:
    """`3 completed jobs`, `3 completed and 1 dead jobs`."""
    counts = [f"{number:,} {state}" for state, number in jobs.items() if number]
    if not counts:
        return "no jobs"
    listed = counts[0] if len(counts) == 1 else f"{', '.join(counts[:-1])} and {counts[-1]}"
    return f"{listed} {'job' if sum(jobs.values()) == 1 else 'jobs'}"


@command("reset", examples="queuectl db reset --yes")
@yes_option
def reset(app: App, yes: bool) -> Result:
    """Remove all jobs, their history and logs. Settings, schedules, alerts and queue settings are kept.

    A copy of the database is saved in backups/ in the data directory. The command is refused while a worker is alive. With
    a shared database, logs on other hosts are not removed.
    """
    reads = app.open_reads()
    jobs = reads.count()
    require_no_workers(reads, verb="reset", home=app.home, is_alive=app.is_alive)
    confirm(app, f"Remove {plural(jobs, 'job')} with history and logs?", yes=yes)
    if not jobs:
        nothing = {"jobs": 0, "backup": None, **count_kept(reads)}
        return Details(nothing, text=lambda: ["there are no jobs: nothing to remove"])
    store = app.open_store()
    app.rescue(spare=False)
    done = reset_store(store, app.clock, home=app.home, is_alive=app.is_alive)
    lines = [f"removed {plural(done.jobs, 'job')}; backup: {escape_control(done.backup)}"]
    named = ((done.schedules, "schedule"), (done.alerts, "alert"), (done.queues, "queue"))
    if stays := [plural(many, what) for many, what in named if many]:
        lines.append(f"kept: the settings, {', '.join(stays)}" + (" with rules" if done.queues else ""))
    if store.is_shared:
        lines.append("logs of this data directory are removed; those of other hosts and data directories stay")
    return Details(done._asdict(), text=lambda: lines)


_MARKS: Final = {"ok": ("✓", "green"), "note": ("!", "yellow"), "problem": ("✗", "bold red"), "skipped": ("-", "dim")}
_WIDTH: Final = 12


@command("doctor", any_environment=True, any_home=True)
@click.option("--fix", is_flag=True, help="Fix what is safe to fix, then check again.")
def doctor(app: App, fix: bool) -> Result:
    """Check the data directory, the database and the workers, and print problems with hints.

    If there is a problem, the exit status is 1. Notes do not change the exit status. With --fix, the command restricts the
    permissions of files, removes files of dead workers and rescues their jobs. Otherwise it changes nothing.

    Examples:
        queuectl doctor
        # fix permissions, files and jobs of dead workers
        queuectl doctor --fix
        # in a crontab: output only if there is a problem
        queuectl doctor > /tmp/doctor.txt || cat /tmp/doctor.txt
    """
    surroundings: dict[str, Any] = {"environ": app.environ, "clock": app.clock, "on_wait": app.on_locked}
    found, checked, fixed = run_doctor(app.home, lambda: app.db, to_fix=fix, **surroundings)
    counts = count(checked)
    return Details(
        report(found, checked, fixed),
        text=lambda: _doctor_lines(app, checked, fixed, counts),
        exit_code=REFUSED if counts[Severity.PROBLEM] else DONE,
    )


def _doctor_lines(
    app: App, checked: Sequence[CheckReport], fixed: Sequence[Repair], counts: dict[Severity, int]
) -> Iterator[str]:
    for one in fixed:
        message = f"fixed: {one.message}" if one.done else f"could not be fixed: {one.message}"
        yield app.paint(f"{'✓' if one.done else '✗'} {one.check:<{_WIDTH}} {escape_control(message)}", "cyan")
    for check in checked:
        if not check.findings:
            yield _doctor_line(app, check.status, check.name, check.fine or "skipped: there is no database")
        for number, finding in enumerate(check.findings):
            yield _doctor_line(app, finding.severity, "" if number else check.name, finding.message)
            yield f"  {'':<{_WIDTH}} {app.paint(f'→ {escape_control(finding.hint)}', 'dim')}"
    problems, notes = counts[Severity.PROBLEM], counts[Severity.NOTE]
    yield ""
    summary = f"{plural(problems, 'problem')}, {plural(notes, 'note')}" if problems or notes else "no problems found"
    yield app.paint(summary, "bold red" if problems else "bold green")


def _doctor_line(app: App, status: str, name: str, message: str) -> str:
    mark, style = _MARKS[status]
    return f"{app.paint(mark, style)} {name:<{_WIDTH}} {escape_control(message)}"


DEFAULT_AUDIT_LIMIT: Final = 50
MAX_LISTED_SUBJECTS: Final = 3


@command("audit")
@click.option("--since", metavar="WHEN", help="Filter by time: 90m, 2d, 2026-11-15 20:30.")
@click.option(
    "--id",
    "subject",
    metavar="ID",
    shell_complete=complete_jobs,
    help="Filter by job, queue, schedule, worker or setting.",
)
@click.option("--who", metavar="WHO", help="Filter by user, uid, host, program or token.")
@click.option("--what", metavar="ACTION", help="Filter by action, or by its group: queue pause, queue.")
@click.option(
    "--limit",
    type=integer,
    default=str(DEFAULT_AUDIT_LIMIT),
    metavar="N",
    help=f"Maximum number of records (default: {DEFAULT_AUDIT_LIMIT}).",
)
def audit(app: App, limit: int | str, **options: Any) -> Result:
    """List changes by users, newest first.

    Examples:
        queuectl audit --since 1d
        queuectl audit --id 7f3a
        queuectl audit --who alice --json
        queuectl audit --what 'queue pause'
    """
    reads = app.open_reads()
    options["subject"] = _subject(reads, options["subject"])
    rows = audit_records(reads, **options, limit=limit, now_ms=reads.now_ms, dashes="--")
    return Table(
        rows,
        _audit_columns(reads.now_ms()),
        to_json=Recorded.to_dict,
        to_id=lambda one: str(one.seq),
        empty="No changes.",
    )


def _subject(reads: Reads, ref: str | None) -> str | None:
    """The full id, if it is the prefix of the id of a job; otherwise unchanged, as the job may have been removed."""
    if ref is None:
        return None
    try:
        return reads.resolve(ref)
    except JobNotFound:
        return ref


def _audit_columns(now_ms: int) -> list[Column[Recorded]]:
    return [
        Column("SEQ", lambda one: str(one.seq), right=True),
        Column("AGE", lambda one: humanize_time(one.at, now_ms), right=True),
        Column("WHO", lambda one: one.by),
        Column("WHAT", lambda one: one.what),
        Column("OF", _subjects),
        Column("CHANGE", _change, flexible=True, optional=True),
    ]


def _subjects(one: Recorded) -> str:
    named, more = " ".join(one.subjects[:MAX_LISTED_SUBJECTS]), len(one.subjects) - MAX_LISTED_SUBJECTS
    return f"{named} and {more:,} more" if more > 0 else named


def _change(one: Recorded) -> str:
    before, after = one.before or {}, one.after or {}
    return ", ".join(_step(name, before, after) for name in {**before, **after})


def _step(name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    """`name old → new`; without an old value that was none."""
    if name not in after:
        return f"{name} {_value_text(before[name])}"
    was = before.get(name)
    return (
        f"{name} {_value_text(after[name])}"
        if was is None
        else f"{name} {_value_text(was)} → {_value_text(after[name])}"
    )


def _value_text(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list() if len(value) == 1:
            return _value_text(value[0])
        case dict() if "command" in value:
            return str(value["command"])
        case dict():
            return ", ".join(f"{name} {_value_text(part)}" for name, part in value.items())
        case list():
            return "; ".join(map(_value_text, value))
        case _:
            return str(value)


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_VALUE_BYTES: Final = 16 * 1024  # read from stdin


config = group(
    "config",
    "Show and change settings. A flag overrides QUEUECTL_<KEY> in the environment, which overrides the stored value.",
    examples="""
        queuectl config list
        queuectl config set max-retries 5
        queuectl config get max-retries
    """,
)


_key_argument = click.argument("key", shell_complete=complete_keys)
_optional_key_argument = click.argument("key", required=False, shell_complete=complete_keys)


@config.subcommand("list", "List settings with values and sources.", alias="show")
def config_list(app: App) -> Result:
    """List settings: value, default, and the source of the value.

    Examples:
        queuectl config list
        queuectl config list --json | jq '.[] | select(.source != "default")'
    """
    return _settings_table(app)


def _settings_table(app: App) -> Result:
    entries = app.settings.entries()
    if not app.stdout_is_terminal:
        return Lines([f"{entry.key} = {entry.text}" for entry in entries], [entry.to_dict() for entry in entries])
    about = {key.name: key for key in KEYS}
    return Table(
        entries,
        columns=[
            Column("KEY", lambda entry: entry.key),
            Column("VALUE", lambda entry: entry.text, style=lambda entry: _SOURCE_STYLE[entry.source]),
            Column(
                "FROM", lambda entry: entry.source, style=lambda entry: _SOURCE_STYLE[entry.source] or "dim", spare=1
            ),
            Column("DEFAULT", lambda entry: about[entry.key].text(about[entry.key].default), style="dim", spare=2),
            Column("DESCRIPTION", lambda entry: about[entry.key].about, style="dim", flexible=True, spare=3),
        ],
        to_json=SettingEntry.to_dict,
        footer=app.store_line,
    )


_SOURCE_STYLE = {"env": "cyan", "stored": "green", "default": None}


@config.subcommand("get", "Print a setting.")
@_optional_key_argument
def config_get(app: App, key: str | None) -> Result:
    """Print the current value of a setting. Without a key, list all settings.

    Examples:
        queuectl config get backoff-base
        queuectl config get max_retries
    """
    if key is None:
        return _settings_table(app)
    resolve_key(key)  # before the data directory is opened
    entry = app.settings.entry(key)
    return Lines([entry.text], entry.to_dict())


@config.subcommand("set", "Store a setting, for all users of this database.", signed_arguments=True)
@_key_argument
@click.argument("value")
def config_set(app: App, key: str, value: str) -> Result:
    """Store a setting. Running workers apply it at their next heartbeat. Enqueued jobs keep their values.

    If the value is -, it is read from stdin. Use this for secrets, because arguments are visible in the list of processes
    and in the shell history.

    Examples:
        queuectl config set max-retries 5
        queuectl config set timeout 1h30m
        queuectl config set priority -5
        # from stdin: arguments are visible in the list of processes
        openssl rand -hex 32 | queuectl config set webhook-secret -
    """
    if value == "-":
        value = app.stdin_bytes.read(MAX_VALUE_BYTES).decode("utf-8", "replace")
    return _change_setting(app, key, value)


@config.subcommand(
    "unset", "Restore the default of a setting.", alias="delete", examples="queuectl config unset max-retries"
)
@_key_argument
def config_unset(app: App, key: str) -> Result:
    """Remove the stored value of a setting, so that its default applies again."""
    return _change_setting(app, key, None)


@config.subcommand("reset", "Restore all defaults.", examples="queuectl config reset")
def config_reset(app: App) -> Result:
    """Remove all stored settings, so that all defaults apply again. Jobs are not affected."""
    if keys := list(app.open_reads().config()):
        app.open_store().set_config(dict.fromkeys(keys))
    return Lines([f"{key} reset to its default" for key in keys] or ["no settings are stored"], {"unset": keys})


def _change_setting(app: App, key: str, value: str | None) -> Result:
    # Validated before the database is opened: an invalid value creates no data directory.
    changed = change_settings(app.open_reads().config(), {key: value})
    app.open_store().set_config(changed)
    (name,) = changed
    entry, key_info, written = app.settings.entry(name), resolve_key(name), changed[name]
    if entry.source == "env":
        app.say(f"overridden by the environment here: {name} = {entry.text}")
    # The written value, which the environment may override, redacted if it is secret.
    text = None if written is None else key_info.redacted(key_info.parse(written, subject=name))
    return Details(entry.to_dict(), text=lambda: [f"{name} = {text or entry.text}"], id=name)
