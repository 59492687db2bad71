"""queuectl doctor"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.exits import DONE, REFUSED
from queuectl.cli.jobs import plural
from queuectl.cli.printable import printable
from queuectl.cli.result import Result, Sheet
from queuectl.patient import patient
from queuectl.upkeep.doctor.checks import Checked, Fixed, count, examine, report
from queuectl.upkeep.doctor.checks import fix as do_fix
from queuectl.upkeep.doctor.finding import Severity

_MARKS: Final = {"ok": ("✓", "green"), "note": ("!", "yellow"), "problem": ("✗", "bold red"), "skipped": ("-", "dim")}
_WIDTH: Final = 12


@command(
    "doctor",
    examples="""
        queuectl doctor
        # permissions, leftovers, the jobs of dead workers: what is safe to put right
        queuectl doctor --fix
        # in a crontab: words only if there is a problem
        queuectl doctor > /tmp/doctor.txt || cat /tmp/doctor.txt
    """,
    any_environment=True,
    any_home=True,
)
@click.option(
    "--fix", is_flag=True, help="Put right what is safe to, and look again. Jobs and settings stay as they are."
)
def doctor(app: App, fix: bool) -> Result:
    """What is wrong with the home, the store and the workers, and what to do about it.

    Exit 1 if there is a problem; notes are worth knowing and nothing more. Looks only, unless told to --fix: then our files
    are closed to others, files of dead workers removed and their jobs taken back. Nothing is made in a home that does not
    exist.
    """
    look = partial(patient, app.home, lambda: app.db, environ=app.environ, clock=app.clock, on_wait=app.on_locked)
    with look() as found:
        checked = examine(found)
        fixed = do_fix(checked) if fix else []
    if fixed:
        with look() as found:
            checked = examine(found)
    counts = count(checked)
    return Sheet(
        report(found, checked, fixed),
        people=lambda: _lines(app, checked, fixed, counts),
        exit_code=REFUSED if counts[Severity.PROBLEM] else DONE,
    )


def _lines(app: App, checked: Sequence[Checked], fixed: Sequence[Fixed], counts: dict[Severity, int]) -> Iterator[str]:
    for one in fixed:
        words = f"fixed: {one.message}" if one.done else f"could not be fixed: {one.message}"
        yield app.paint(f"{'✓' if one.done else '✗'} {one.check:<{_WIDTH}} {printable(words)}", "cyan")
    for check in checked:
        if not check.findings:
            yield _line(app, check.status, check.name, check.fine or "not looked at: there is no store to ask")
        for number, finding in enumerate(check.findings):
            yield _line(app, finding.severity, "" if number else check.name, finding.message)
            yield f"  {'':<{_WIDTH}} {app.paint(f'→ {printable(finding.hint)}', 'dim')}"
    problems, notes = counts[Severity.PROBLEM], counts[Severity.NOTE]
    yield ""
    summary = f"{plural(problems, 'problem')}, {plural(notes, 'note')}" if problems or notes else "nothing is wrong"
    yield app.paint(summary, "bold red" if problems else "bold green")


def _line(app: App, status: str, name: str, words: str) -> str:
    mark, style = _MARKS[status]
    return f"{app.paint(mark, style)} {name:<{_WIDTH}} {printable(words)}"
