"""What goes wrong is said in one line of ours, with a next step, and never with a password."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.installation import install_command
from queuectl.store.open import open_enqueuer, open_reads, open_store, store_exists
from queuectl.store.postgres.store import PostgresStore
from tests import postgres
from tests.factories import new_job
from tests.program import Program, environment

SECRET = "hunter2"


@pytest.mark.parametrize("opener", [open_store, open_enqueuer, open_reads, store_exists])
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


def refusal(address: str) -> errors.QueuectlError:
    with pytest.raises(errors.Unavailable) as raised:
        open_store("/nowhere", address)
    return raised.value


@pytest.mark.parametrize(
    "change, hint",
    [
        (lambda url: f"{url}&sslmode=verify-ful", "parameters of the address"),
        (lambda url: f"{url}&service=no_such_service", "service"),
        (lambda url: f"{url}&no_such_option=1", "parameters"),
        (lambda url: url.replace("//postgres@", "//postgres:50%@"), "%25"),
        (lambda _: "postgresql://u@no-such-host.invalid/db", "name of the host"),
        (lambda _: "postgresql://u@127.0.0.1:1/db", "is PostgreSQL running there"),
    ],
)
def test_the_hint_is_about_what_is_wrong(url: str, change: Callable[[str], str], hint: str) -> None:
    assert hint in refusal(change(url)).hint


def test_a_server_that_takes_no_more_connections_is_not_said_to_be_down(
    url: str, role: str, server: postgres.Server
) -> None:
    server.execute(f"alter role {role} connection limit 0")
    error = refusal(url.replace("//postgres@", f"//{role}@"))
    assert isinstance(error, errors.StoreUnreachable)
    assert "the server runs" in error.hint


def test_a_role_that_comes_before_the_owner_is_told_so(empty: str, role: str) -> None:
    error = refusal(empty.replace("//postgres@", f"//{role}@"))
    assert "has no tables of queuectl yet" in error.message
    assert "let their owner run once" in error.hint


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


def test_a_store_on_a_server_is_used_without_a_home(url: str) -> None:
    queuectl = Program(Path("/dev/null/home"), {"QUEUECTL_DB": url})
    queuectl("enqueue", "--id", "a", "true", check=0)
    queuectl("cancel", "a", check=0)
    queuectl("retry", "a", check=0)
    queuectl("config", "set", "max-retries", "5", check=0)
    assert queuectl("status", "--json", check=0).json["total"] == 1
    refused = queuectl("worker", "start", check=1).err
    assert "cannot use /dev/null/home as the data directory" in refused


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
    store.db.close()
    with pytest.raises(errors.StoreReadOnly) as raised:
        store.enqueue([new_job()])
    assert "primary" in raised.value.hint
    assert store.count() == 0


def test_a_lock_that_is_held_ends_in_an_error(store: PostgresStore, url: str) -> None:
    import psycopg

    store.enqueue([new_job("a")])
    with psycopg.connect(url) as blocker:
        blocker.execute("select 1 from queuectl.jobs for update")
        with pytest.raises(errors.StoreBusy) as raised:
            store.cancel(["a"])
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
        f"hint: install it: {install_command('postgres')}",
    ]
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
