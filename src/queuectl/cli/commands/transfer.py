"""Commands that move data: backup, restore, copy, export, import."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BufferedReader
from itertools import chain
from typing import Any, Final, cast

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, group
from queuectl.cli.commands import DATABASE_COMMANDS
from queuectl.cli.errors import confirm, yes_option
from queuectl.cli.filters import Selection, filter_options
from queuectl.cli.job_options import reading
from queuectl.cli.render import Details, Raw, Result, progress, table_lines
from queuectl.cli.tables import Column
from queuectl.config import actor, working_directory
from queuectl.errors import Conflict, InvalidInput, QueuectlError, StoreDamaged, StoreForeign, StoreNotFound
from queuectl.operations import backup as backups
from queuectl.operations import export as exporter
from queuectl.operations import import_jobs as importer
from queuectl.operations.enqueue import job_defaults
from queuectl.paths import make_home, store_file
from queuectl.store import open as stores
from queuectl.store.address import parse_address, shown
from queuectl.store.store import Store
from queuectl.text import escape_control, escape_json, plural
from queuectl.units import humanize_size

db = group(
    "db",
    "Back up, restore, copy, export, import, prune and reset the database.",
    DATABASE_COMMANDS,
    examples="""
        queuectl db backup /backup/queue.db
        queuectl db prune --older-than 30d
        queuectl db copy --from ~/.queuectl/queue.db --to postgresql:///work
    """,
)

BACKUP_HINT: Final = "name a file that queuectl db backup made; for a file of export, use queuectl db import FILE"


class FileInUse(Conflict):
    code = "file-in-use"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is the database itself", hint="name a backup of it: queuectl db backup FILE creates one"
        )


@command("backup", examples="queuectl db backup /backup/queue-$(date +%F).db")
@click.argument("file", metavar="FILE")
def backup(app: App, file: str) -> Result:
    """Copy the database into a new file, as a consistent snapshot. Workers keep running.

    The copy is a SQLite file, even for PostgreSQL. queuectl db restore restores the file, and --db FILE reads it. It does
    not contain logs. An existing file is never replaced.
    """
    path = os.path.abspath(file)
    if not stores.store_exists(app.home, app.db):
        raise StoreNotFound(shown(stores.store_path(app.home, app.db)), hint="there is nothing to back up")
    size = backups.create_backup(app.open_reads(), path)
    value = {"file": path, "bytes": size}
    return Details(
        value,
        text=lambda: [f"backed up to {escape_control(path)}, {humanize_size(size)}"],
        effect=f"backed up to {path}",
    )


@command("restore", examples="queuectl db restore /backup/queue-2026-11-16.db --yes")
@click.argument("file", metavar="FILE")
@yes_option
def restore(app: App, file: str, yes: bool) -> Result:
    """Replace the database with a backup: jobs, history, settings and counters, all or nothing.

    The replaced database is kept in backups/ in the data directory. Jobs that were running at the time of the backup become
    pending, which does not count as an attempt. The command is refused while a worker is alive. Logs are not changed.
    """
    path, own = os.path.abspath(file), stores.store_file_of(app.home, app.db)
    if own is not None and os.path.exists(own) and os.path.exists(path) and os.path.samefile(own, path):
        raise FileInUse(path)

    def reopen() -> Store:
        app.close()  # the file may have been replaced
        return app.open_store()

    unusable = _unusable_store_errors(app)
    # If the database is unreadable, the locks of the data directory are checked later.
    with contextlib.suppress(*unusable):
        backups.require_no_workers(app.open_reads(), verb="restore", home=app.home, is_alive=app.is_alive)
    with _open_backup_file(app, path) as source:
        with source.transfers.dump() as dump:
            found = dump.counts()["jobs"]
        place = "the database" if own is None else escape_control(own)
        confirm(app, f"Replace {place} by a backup with {plural(found, 'job')}?", yes=yes)
        with contextlib.suppress(*unusable):
            if stores.store_exists(app.home, app.db):
                app.rescue(spare=False)  # stop runs of dead workers: their jobs, restored, will run again
        with progress(app, "restoring") as advance:
            where = backups.RestoreTarget(
                app.home,
                own,
                unusable=unusable,
                is_there=lambda: stores.store_exists(app.home, app.db),
                open=reopen,
                refuse_while_locked=lambda: stores.refuse_while_locked(app.home, "restore"),
            )
            done = backups.restore_backup(source, path, where, clock=app.clock, is_alive=app.is_alive, advance=advance)
    counts = {count.what.replace(" ", "_"): count.target for count in done.copied.counts}
    value = {"file": path, "counts": counts, "given_back": done.copied.given_back, "kept": done.kept}
    return Details(value, text=lambda: _restored_lines(done), effect=f"restored {path}")


@contextlib.contextmanager
def _open_backup_file(app: App, path: str) -> Iterator[Store]:
    """Open a temporary copy of the backup."""
    scratch: list[str] = []

    def place_for_copy() -> str:
        make_home(app.home)
        scratch.append(backups.new_backup_path(app.home, app.clock, before="restoring"))
        return scratch[0]

    try:
        try:
            store = stores.open_backup(path, place_for_copy, app.clock)
        except StoreForeign as exc:
            raise StoreForeign(path, hint=BACKUP_HINT) from exc
        if store is None:
            raise StoreNotFound(path, hint="check the name of the backup")
        with closing(store):
            yield store
    finally:
        for made in scratch:
            for beside in backups.SQLITE_SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(made + beside)


def _unusable_store_errors(app: App) -> tuple[type[QueuectlError], ...]:
    """The errors of a database that cannot be used and may be replaced.

    In the data directory also StoreForeign: a file with a destroyed header looks like a foreign one. Elsewhere it may be the
    file of another program.
    """
    is_at_home = stores.store_file_of(app.home, app.db) == store_file(app.home)
    return (StoreDamaged, StoreForeign) if is_at_home else (StoreDamaged,)


def _restored_lines(done: backups.RestoreResult) -> Iterator[str]:
    counts = {count.what: count.target for count in done.copied.counts}
    yield f"restored {plural(counts['jobs'], 'job')} with {plural(counts['runs'], 'run')}"
    if done.copied.given_back:
        yield _given_back_text(done.copied.given_back)
    if done.kept is not None:
        yield f"the replaced database is kept: {escape_control(done.kept)}"


def _given_back_text(jobs: int) -> str:
    return f"{plural(jobs, 'running job')} returned to pending, without an attempt counted"


@command("copy", any_home=True)
@click.option("--from", "source", required=True, metavar="ADDRESS", help="Database to copy: a path or a URL.")
@click.option(
    "--to", "target", required=True, metavar="ADDRESS", help="Empty target database; created if it does not exist."
)
@click.option("--force", is_flag=True, help="Copy while workers run; running jobs become pending.")
def copy(app: App, source: str, target: str, force: bool) -> Result:
    """Copy a whole database to another one. Both can be SQLite or PostgreSQL.

    The copy contains jobs, history, settings, counters and stored output, all or nothing. It does not contain logs. The
    command is refused if the target is not empty, or if the source has live workers or running jobs.

    Examples:
        # with the password in ~/.pgpass: others can read arguments
        queuectl db copy --from ~/.queuectl/queue.db --to postgresql://queue@db.example.org/work
        queuectl db copy --from postgresql:///work --to /backup/work.db
    """
    shown = {name: parse_address(address).shown() for name, address in (("from", source), ("to", target))}
    for address in () if app.flags.trust_home else (source, target):
        stores.check_trusted_address(address)
    opened = stores.open_at(source, app.clock, create=False, on_wait=app.on_locked)
    if opened is None:
        raise StoreNotFound(shown["from"])

    def open_target() -> Store:
        made = stores.open_at(target, app.clock, create=True, on_wait=app.on_locked)
        assert made is not None
        made.actor = actor(app.environ)
        return made

    with closing(opened), progress(app, "copying") as advance:
        done = backups.copy_store(
            opened, open_target, clock=app.clock, is_alive=app.is_alive, force=force, advance=advance
        )
    counts = {count.what.replace(" ", "_"): {"source": count.source, "target": count.target} for count in done.counts}
    value = {**shown, "counts": counts, "given_back": done.given_back, "seconds": round(done.seconds, 3)}
    return Details(value, text=lambda: _copied_lines(app, done, shown["to"]), effect=f"copied to {shown['to']}")


def _copied_lines(app: App, done: backups.CopyResult, target: str) -> Iterator[str]:
    yield from table_lines(app, done.counts, _COUNT_COLUMNS)
    jobs = done.counts[0].target
    rate = f", {jobs / done.seconds:,.0f} jobs a second" if done.seconds > 0.5 else ""
    yield f"copied to {escape_control(target)} in {done.seconds:.1f} s{rate}"
    if done.given_back:
        yield f"{_given_back_text(done.given_back)} in the copy"
    yield "logs are files, and were not copied"


_COUNT_COLUMNS: list[Column[backups.TableCount]] = [
    Column("WHAT", lambda count: count.what),
    Column("SOURCE", lambda count: f"{count.source:,}", right=True),
    Column("TARGET", lambda count: f"{count.target:,}", right=True),
]


@command("export")
@click.argument("file", required=False, metavar="[FILE]")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in exporter.ExportFormat]),
    help="Format (default: by the suffix of FILE, otherwise json).",
)
@click.option("--history", is_flag=True, help="Include all runs of each job.")
@click.option("--rules", is_flag=True, help="Include queue settings, schedules, alerts, batch commands.")
@filter_options()
def export(app: App, file: str | None, form: str | None, history: bool, rules: bool, selection: Selection) -> Result:
    """Write jobs as JSON, in the order of enqueue, for import and other programs.

    The jobs are written to stdout, or to a new FILE that only you can read. Only a FILE contains values of environment
    variables. Job output is not included.

    Examples:
        # with the history
        queuectl db export --history jobs.json
        # one job per line, for other programs; without values of environment variables
        queuectl db export --format jsonl | jq -r .command
        queuectl db export --state dead --queue mail dead.jsonl
        # everything for a new data directory
        queuectl db export --history --rules all.json
    """
    if file == "":
        raise InvalidInput("FILE", "the name is empty", hint="give the name of a new file, or omit it for stdout")
    where = selection.where(app)
    chosen = exporter.ExportFormat(form or ("jsonl" if file and file.endswith(".jsonl") else "json"))
    store = app.open_reads()
    if file is None or file == "-":
        jobs = exporter.export_jobs(store, where, history=history, show_env=False)
        pieces = exporter.format_records(
            chain(exporter.export_config(store, show_env=False) if rules else (), jobs), chosen
        )
        return Raw(exporter.spool(escape_json(piece).encode() for piece in pieces))
    done = 0
    beside: list[dict[str, object]] = list(exporter.export_config(store, show_env=True)) if rules else []

    with progress(app, "exporting") as advance:

        def count(number: int, of: int | None) -> None:
            nonlocal done
            done = number
            advance(number, of)

        values = exporter.export_jobs(store, where, history=history, show_env=True, advance=count)
        exporter.write_new_file(file, exporter.format_records(chain(beside, values), chosen))
    kinds = Counter(str(value["kind"]) for value in beside)
    counts = [plural(done, "job"), *(_count_text(kind, kinds[kind]) for kind in KINDS if kinds[kind])]
    value = {"file": file, "format": chosen.value, "history": history, "jobs": done}
    value |= {many: kinds[kind] for kind, many in KINDS.items()} if rules else {}
    return Details(
        value, text=lambda: [f"exported {', '.join(counts)} to {escape_control(file)}"], effect=f"exported to {file}"
    )


@command("import")
@click.argument("file", metavar="FILE")
@click.option("--rules", is_flag=True, help="Import queue settings, schedules, alerts, batch commands.")
@click.option("--dry-run", is_flag=True, help="Print what would be imported, change nothing.")
def import_jobs(app: App, file: str, rules: bool, dry_run: bool) -> Result:
    """Import jobs with their history from a file of export or of some other tools. - reads from stdin.

    An import is all or nothing. Identical jobs that exist already are skipped. If a different job has the same ID, the
    import is refused. Running jobs become pending. With --rules, the file can also contain queues, schedules, alerts and
    batch commands, so use --rules only for files that you trust.

    Examples:
        queuectl db import jobs.json
        # only check
        queuectl db import --dry-run jobs.json
        # everything that `export --rules` wrote
        queuectl db import --rules all.json
        # the database of another tool
        queuectl db import ~/old/queue.db
        ssh build.example.org queuectl db export --format jsonl | queuectl db import -
    """
    if file == "":
        raise InvalidInput("FILE", "the name is empty", hint="give the name of a file, or - for stdin")
    with _open_import_file(app, file) as opened, progress(app, "importing") as advance:
        done = importer.import_jobs(
            importer.open_records(file, opened),
            job_defaults(app.open_reads(), app.environ, cwd=working_directory()),
            reads=app.open_reads,
            open_store=app.open_store,
            dry_run=dry_run,
            rules=rules,
            advance=advance,
        )
    effect = None if dry_run else f"imported {plural(done.imported, 'job')}"
    return Details(
        {**done._asdict(), "dry_run": dry_run}, text=lambda: _imported_lines(done, dry_run=dry_run), effect=effect
    )


@contextmanager
def _open_import_file(app: App, path: str) -> Iterator[BufferedReader]:
    """Open the file. Read errors, also later ones, become FileUnreadable."""
    with reading(path):
        if path == "-":
            yield cast(Any, app.stdin_bytes)
        else:
            with open(path, "rb") as file:
                yield file


def _imported_lines(done: importer.ImportResult, *, dry_run: bool) -> Iterator[str]:
    beside = [_count_text(kind, len(names)) for kind, many in KINDS.items() if (names := getattr(done, many))]
    yield f"{'would import' if dry_run else 'imported'} {', '.join([plural(done.imported, 'job'), *beside])}"
    if done.skipped:
        yield f"{plural(done.skipped, 'job')} skipped: already present"
    if done.given_back:
        yield _given_back_text(done.given_back)
    for key, value in done.settings.items():
        yield f"{key} = {escape_control(value)}"
    if done.ignored:
        yield f"ignored, without an equivalent here: {escape_control(', '.join(done.ignored))}"


# Kind of a record -> key of its number in the result.
KINDS: Final = {"queue": "queues", "schedule": "schedules", "alert": "alerts", "batch": "batches"}
_BATCH_NOUNS: Final = ("end of a batch", "ends of batches")  # a batch itself is created by its jobs


def _count_text(kind: str, count: int) -> str:
    one, many = _BATCH_NOUNS if kind == "batch" else (kind, KINDS[kind])
    return f"{count:,} {one if count == 1 else many}"
