"""What goes wrong is said in one line of ours, with a next step, and never with a password."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.store.open import open_inbox, open_reads, open_store, store_exists
from queuectl.store.postgres.store import PostgresStore
from tests import postgres
from tests.factories import new_job
from tests.program import environment

SECRET = "hunter2"


@pytest.mark.parametrize("opener", [open_store, open_inbox, open_reads, store_exists])
def test_a_server_that_is_not_there_is_named_without_the_password(home: Path, opener: Callable[..., object]) -> None:
    with pytest.raises(errors.StoreUnreachable, match=r"127\.0\.0\.1") as raised:
        opener(str(home), f"postgresql://me:{SECRET}@127.0.0.1:1/db")
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    assert raised.value.hint


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}%@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}@127.0.0.1:1/db?no-such-option=1",
        f"postgresql://127.0.0.1:1/db?password={SECRET}%zz",
        f"postgresql://[me:{SECRET}@127.0.0.1/db",
    ],
)
def test_an_address_that_makes_no_sense_is_refused_without_the_password(home: Path, address: str) -> None:
    with pytest.raises(errors.Unavailable) as raised:
        open_store(str(home), address)
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_a_database_or_role_that_does_not_exist_is_a_refusal(home: Path, server: postgres.Server, url: str) -> None:
    for wrong in (server.database("no_such_database"), url.replace("//postgres@", "//no_such_role@")):
        with pytest.raises(errors.StoreRefused, match="no_such_"):
            open_store(str(home), wrong)


@pytest.fixture
def role(url: str, server: postgres.Server) -> Iterator[str]:
    """A role that may log in and nothing else."""
    name = f"poor_{url.partition('?')[0].rpartition('/')[2]}"
    server.execute(f"create role {name} login")
    yield name
    server.execute(f"drop owned by {name}; drop role {name}", url)


def test_a_role_without_rights_is_told_what_it_lacks(home: Path, url: str, role: str) -> None:
    with pytest.raises(errors.StoreRefused, match="permission denied") as raised:
        open_store(str(home), url.replace("//postgres@", f"//{role}@"))
    assert "grant" in raised.value.hint


def test_a_role_that_may_only_read_can_look(home: Path, url: str, role: str, server: postgres.Server) -> None:
    server.execute(f"grant usage on schema queuectl to {role}", url)
    server.execute(f"grant select on all tables in schema queuectl to {role}", url)
    server.execute(f"grant select on all sequences in schema queuectl to {role}", url)
    reads = open_reads(str(home), url.replace("//postgres@", f"//{role}@"))
    assert reads.count() == 0
    assert list(reads.jobs()) == []
    with pytest.raises(errors.StoreRefused, match="permission denied"):
        reads.enqueue([new_job()])
    reads.close()


def test_a_server_that_is_read_only_is_told_from_a_full_disk(
    store: PostgresStore, url: str, server: postgres.Server
) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute(f"alter database {name} set default_transaction_read_only = on")
    store._db.close()
    with pytest.raises(errors.StoreReadOnly) as raised:
        store.enqueue([new_job()])
    assert "primary" in raised.value.hint
    assert store.count() == 0


def test_a_lock_that_somebody_keeps_ends_in_words(store: PostgresStore, url: str) -> None:
    import psycopg

    store.enqueue([new_job("a")])
    with psycopg.connect(url) as somebody:
        somebody.execute("select 1 from queuectl.jobs for update")
        with pytest.raises(errors.StoreBusy) as raised:
            store.cancel("a")
    assert "fuser" not in raised.value.hint
    assert store.get("a").state == "pending"


WITHOUT_DRIVER = """
import sys
sys.modules["psycopg"] = None
from queuectl.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def test_without_the_driver_one_line_names_the_command_that_installs_it(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER, "--db", f"postgresql://u:{SECRET}@h/db", "status"],
        env=environment(home),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: the driver for PostgreSQL is not installed",
        "hint: install it: pip install 'queuectl[postgres]'",
    ]
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
