"""Stores of every earlier level of the schema, as the program of that time has left them: each opens, and works on.

The dumps are kept as text in dumps/. They were made by the programs themselves, see dumping.py: whoever adds a migration adds
the dump of the level before.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.store import postgres as of_postgres
from queuectl.store import sqlite as of_sqlite
from queuectl.store.migrate import migrations_of
from tests.program import Program

DUMPS = sorted((Path(__file__).parent / "dumps").glob("*.sql"))
PACKAGES = {"sqlite": of_sqlite, "postgres": of_postgres}


def level(path: Path) -> int:
    return int(path.stem.partition("-")[2])


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
def earlier(request: pytest.FixtureRequest, queuectl: Program) -> Iterator[tuple[int, Program]]:
    """The program of now on a store of then."""
    path: Path = request.param
    text = path.read_text("utf-8")
    if path.stem.startswith("sqlite"):
        (queuectl.home / "logs").mkdir(parents=True)
        (queuectl.home / "workers").mkdir()
        with closing(sqlite3.connect(queuectl.home / "queue.db")) as db:
            db.executescript(text)
        for place in (queuectl.home, *queuectl.home.iterdir()):
            place.chmod(0o700 if place.is_dir() else 0o600)
        yield level(path), queuectl
        return
    import psycopg

    from tests.postgres import server

    name = server().create()
    try:
        url = server().database(name)
        with psycopg.connect(url, autocommit=True) as db:
            # Written by the dump of PostgreSQL 18; servers before 17 do not know it.
            db.execute(text.replace("SET transaction_timeout = 0;", "").encode())
        queuectl.env["QUEUECTL_DB"] = url
        yield level(path), queuectl
    finally:
        server().drop(name)


@pytest.mark.parametrize("dialect", PACKAGES)
def test_every_level_but_the_latest_has_its_dump(dialect: str) -> None:
    levels = [one.version for one in migrations_of(str(PACKAGES[dialect].__file__))]
    kept = {level(path) for path in DUMPS if path.stem.startswith(dialect)}
    assert set(levels[:-1]) <= kept, "python -m tests.store.dumping makes those that are missing"


def test_a_store_of_an_earlier_level_keeps_what_it_knew_and_works_on(earlier: tuple[int, Program]) -> None:
    at, queuectl = earlier
    done = queuectl("show", "done", "--json", check=0).json
    assert (done["state"], done["exit_code"], done["tags"], done["runs"]) == ("completed", 0, ["old"], 1)
    assert [run["outcome"] for run in done["history"]] == ["completed"]
    bad = queuectl("show", "bad", "--json", check=0).json
    assert (bad["state"], bad["queue"], bad["attempts"], bad["exit_code"]) == ("dead", "other", 1, 3)
    again = queuectl("show", "again", "--json", check=0).json
    assert (again["state"], again["priority"], again["attempts"], again["max_retries"]) == ("failed", 5, 1, 5)
    assert queuectl("config", "get", "max-retries", check=0).out == "5\n"
    # What was then waiting runs now, beside what is added now; what failed for good gets another chance.
    queuectl("enqueue", "--id", "new", "--after", "words", "true", check=0)
    queuectl("dlq", "retry", "bad", check=0)
    queuectl("run-now", "later", check=0)
    queuectl("cancel", "again", check=0)  # or its next time would be waited for
    queuectl("worker", "start", "--drain", "--quiet", "--count", "2", check=0, env={"QUEUECTL_MAX_RETRIES": None})
    states = {job["id"]: job["state"] for job in queuectl("list", "--json", check=0).json}
    assert {states[name] for name in ("done", "words", "new", "later")} == {"completed"}
    assert states["bad"] == "dead"
    if at >= 3:
        refused = queuectl("enqueue", "--unique", "k1", "--if-exists", "error", "true")
        assert (refused.code, "only" in refused.err) == (1, True)
    if at >= 4:
        assert states["batched"] == "completed"
        assert queuectl("batch", "show", "b1", "--json", check=0).json["name"] == "b1"
    if at >= 5:
        assert [one["name"] for one in queuectl("cron", "list", "--json", check=0).json] == ["nightly"]
    if at >= 6:
        rules = {one["name"]: one for one in queuectl("queue", "list", "--json", check=0).json}
        assert rules["other"]["concurrency"] == 2
    if at >= 8:
        assert (states["child"], states["blocked"]) == ("completed", "completed")
    told = queuectl("doctor", "--json").json
    assert told["problems"] == 0, told


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_a_dump_says_nothing_of_the_machine_that_it_was_made_on(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"(?<!queuectl)/home/|/root|/tmp/(?!queuectl/)", text)
