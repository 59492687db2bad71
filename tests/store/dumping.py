"""Makes dumps/: what each earlier level of the schema has left, by the program of that time, out of the history.

python -m tests.store.dumping           # those that are missing
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from queuectl.store import postgres as of_postgres
from queuectl.store import sqlite as of_sqlite
from queuectl.store.migrate import migrations_of
from tests import postgres

ROOT: Final = Path(__file__).parent.parent.parent
FOLDER: Final = Path(__file__).parent / "dumps"
PACKAGES: Final = {"sqlite": of_sqlite, "postgres": of_postgres}
HOME: Final = "/tmp/queuectl/home"  # as it stands in a dump

Say = Callable[..., None]


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def commit_of(dialect: str, level: int) -> str:
    """The last one before the migration after this level."""
    after = next(one for one in migrations_of(str(PACKAGES[dialect].__file__)) if one.version == level + 1)
    return git("log", "--format=%H", "--diff-filter=A", "--", after.path).decode().split()[-1] + "^"


def fill(say: Say, level: int) -> None:
    """A little of all that there was at this level. tests/store/test_earlier_levels.py looks for it."""
    say("config", "set", "max-retries", "5")
    say("enqueue", "--id", "done", "--tag", "old", "--env", "A=b", "echo hello")
    say("enqueue", "--id", "bad", "--max-retries", "1", "--queue", "other", "exit 3")
    say("enqueue", "--id", "again", "--priority", "5", "--backoff-base", "1000", "exit 4")
    if level >= 8:
        say("enqueue", "--id", "child", "--after", "done", "true")
    say("worker", "start", "--name", "old", "--count", "2", "--idle-timeout", "1s", "--quiet")
    say("enqueue", "--id", "later", "--delay", "520w", "true")
    say("enqueue", "--id", "words", "--", "printf", "%s", "a b")
    if level >= 3:
        say("enqueue", "--id", "only", "--unique", "k1", "--delay", "520w", "true")
    if level >= 4:
        say("enqueue", "--id", "batched", "--batch", "b1", "true")
    if level >= 5:
        say("cron", "add", "nightly", "0 2 * * *", "true")
    if level >= 6:
        say("queue", "set", "other", "--concurrency", "2")
    if level >= 7:
        say("enqueue", "--id", "keyed", "--queue", "other", "--key", "c7", "true")
    if level >= 8:
        say("enqueue", "--id", "blocked", "--after", "later", "true")


def text_of_sqlite(home: Path) -> str:
    with closing(sqlite3.connect(home / "queue.db")) as db:
        facts = {name: db.execute(f"pragma {name}").fetchone()[0] for name in ("application_id", "user_version")}
        lines = ["pragma auto_vacuum = 2;", *db.iterdump()]
    return "\n".join([*lines, *(f"pragma {name} = {value};" for name, value in facts.items())]) + "\n"


def text_of_postgres(url: str) -> str:
    programs = postgres._programs()
    assert programs is not None
    found = next(path for path in (programs / "pg_dump", programs / "bin" / "pg_dump") if path.exists())
    words = [str(found), "--no-owner", "--no-privileges", "--inserts", url]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    # Without remarks, and without the commands of psql that newer ones put around it.
    return "".join(f"{line}\n" for line in text.splitlines() if line.strip() and not line.startswith(("--", "\\")))


def dump(dialect: str, level: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = git("archive", commit_of(dialect, level), "src")
        subprocess.run(["tar", "x", "-C", name], input=archive, check=True)
        env = {key: value for key, value in os.environ.items() if not key.startswith("QUEUECTL_")}
        env |= {"PYTHONPATH": str(folder / "src"), "QUEUECTL_HOME": str(folder / "home"), "QUEUECTL_HOST": "earlier"}
        database = postgres.server().create() if dialect == "postgres" else None
        if database is not None:
            env["QUEUECTL_DB"] = postgres.server().database(database)

        def say(*words: str) -> None:
            subprocess.run(
                [sys.executable, "-m", "queuectl", *words], env=env, cwd="/", check=True, capture_output=True
            )

        fill(say, level)
        text = text_of_sqlite(folder / "home") if database is None else text_of_postgres(env["QUEUECTL_DB"])
        return text.replace(str(folder / "home"), HOME)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for dialect, package in PACKAGES.items():
        for level in [one.version for one in migrations_of(str(package.__file__))][:-1]:
            path = FOLDER / f"{dialect}-{level:02}.sql"
            if not path.exists():
                path.write_text(dump(dialect, level), "utf-8")


if __name__ == "__main__":
    try:
        main()
    finally:
        postgres.stop_server()
