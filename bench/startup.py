"""One `enqueue` from the shell, compared with a minimal program: click and one SQLite row."""

from __future__ import annotations

import sys
from pathlib import Path

from _bench import Figure, Lab, Report, main, median, paired, rounds, run, time_command

ROUNDS, SECONDS = 60, 60.0
TARGET = 1.25

# A module and a stub, as pip installs them, so that both programs are compiled beforehand.
BARE = '''
import sqlite3

import click


@click.command()
@click.option("--priority", type=int, default=0)
@click.argument("command")
def main(command, priority):
    """Add a job."""
    db = sqlite3.connect("bare.db", isolation_level=None)
    db.execute("pragma synchronous = full")
    row = db.execute("insert into jobs (command, priority) values (?, ?)", (command, priority))
    click.echo(row.lastrowid)
    db.close()
'''
STUB = """#!{python}
import sys
from bare import main
if __name__ == "__main__":
    sys.exit(main())
"""
TABLE = """
import sqlite3
db = sqlite3.connect({path!r})
db.execute("pragma journal_mode = wal")
db.execute("create table jobs (id integer primary key, command text not null, priority integer not null)")
"""


def bare_program(place: Path) -> list[str]:
    place.mkdir()
    (place / "bare.py").write_text(BARE.replace("bare.db", str(place / "bare.db")), encoding="utf-8")
    stub = place / "bare"
    stub.write_text(STUB.format(python=sys.executable), encoding="utf-8")
    stub.chmod(0o755)
    run([sys.executable, "-c", TABLE.format(path=str(place / "bare.db"))])
    return [str(stub)]


def startup(lab: Lab) -> Report:
    home, env = lab.new_home(), lab.environment()
    bare = bare_program(lab.path / "peer")
    samples = rounds(
        {
            "enqueue": lambda: lab.time("enqueue", "true", "--priority", "5", home=home),
            "bare": lambda: time_command([*bare, "true", "--priority", "5"], env=env),
            "--version": lambda: lab.time("--version", home=home),
            "pass": lambda: time_command([sys.executable, "-c", "pass"], env=env),
        },
        count=ROUNDS,
        seconds=SECONDS,
        warm_up=3,
    )
    report = Report("one command from the shell")
    names = {
        "enqueue": "queuectl enqueue true",
        "bare": "click and one row into SQLite",
        "--version": "queuectl --version",
        "pass": "python -c pass",
    }
    for name, words in names.items():
        report.row(words, f"{median(samples[name]) * 1000:.1f} ms", f"{paired(samples, name, 'bare'):.2f}")
    report.figure(Figure("enqueue / bare program", paired(samples, "enqueue", "bare"), TARGET))
    return report


if __name__ == "__main__":
    main(startup, __doc__)
