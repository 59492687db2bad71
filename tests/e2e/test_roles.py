"""The roles of docs/guides/postgresql.md, made by its own words on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from queuectl.store.postgres.privileges import RIGHTS
from tests import postgres
from tests.docs.pages import read, section
from tests.program import Program

GRANTED = """
    select relname, array_agg(lower(privilege_type)) filter (where grantee = 'queue_worker'::regrole)
      from pg_class
      left join aclexplode(relacl) on true
     where relnamespace = 'queuectl'::regnamespace
       and (relkind = 'r' or relkind = 'S' and relacl is not null)  -- an identity column needs no grant on its sequence
     group by relname
"""
ROLES = ("queue_owner", "queue_worker", "queue_looker", "queue_stranger")


class Site:
    """A database as the page makes it."""

    def __init__(self, server: postgres.Server, name: str, home: Path) -> None:
        self.server = server
        self.name = name
        self._home = home

    def url(self, role: str) -> str:
        parts = urlsplit(self.server.database(self.name))
        return urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}"))

    def as_(self, role: str) -> Program:
        return Program(self._home, {"QUEUECTL_DB": self.url(role)})


@pytest.fixture
def site(home: Path) -> Iterator[Site]:
    server = postgres.server()
    text = section(read("docs/guides/postgresql.md"), "Roles and privileges")
    make, grant = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    made = Site(server, "queuectl_test_roles", home)
    try:
        for statement in make.replace("database work", f"database {made.name}").split(";"):
            if statement.strip():
                server.execute(statement)
        made.as_("queue_owner")("worker", "start", "--drain", check=0)
        server.execute(grant, made.url("queue_owner"))
        yield made
    finally:
        server.drop(made.name)
        for role in ROLES:
            server.execute(f"drop role if exists {role}")


def test_the_role_that_works_can_do_all_that_commands_do(site: Site) -> None:
    queuectl = site.as_("queue_worker")
    queuectl("config", "set", "backoff-base", "1", check=0)
    queuectl("enqueue", "--id", "good", "--tag", "t", "echo hi", check=0)
    queuectl("enqueue", "--id", "bad", "--max-retries", "2", "exit 3", check=0)
    queuectl("enqueue", "--id", "later", "--delay", "1h", "true", check=0)
    queuectl("worker", "start", "--drain", check=0)
    assert "hi" in queuectl("logs", "good", check=0).out
    for words in (
        ["status"], ["list", "--tag", "t"], ["show", "bad"], ["metrics"], ["metrics", "--prometheus"], ["worker", "list"],
        ["wait", "good"], ["cancel", "later"], ["retry", "later"], ["dlq", "list"], ["dlq", "retry", "bad"],
        ["worker", "start", "--drain"], ["dlq", "purge", "bad", "--yes"], ["config", "unset", "backoff-base"],
        ["worker", "stop"], ["doctor"], ["prune", "--older-than", "0", "--yes"], ["reset", "--yes"],
    ):  # fmt: skip
        done = queuectl(*words)
        assert done.code == 0, (words, done)
    # What a heartbeat does now and then: fold what was counted.
    queuectl("enqueue", "--file", "-", "--quiet", input="true\n" * 600, check=0)
    queuectl("worker", "start", "--drain", "--count", "8", env={"QUEUECTL_HEARTBEAT": "100ms"}, check=0)


def test_the_grants_of_the_page_are_those_that_a_worker_needs_on_every_table(site: Site) -> None:
    granted = site.server.execute(GRANTED, site.url("queue_owner"))
    assert {name: sorted(rights or ()) for name, rights in granted} == {
        name: sorted(rights) for name, rights in RIGHTS.items()
    }


@pytest.mark.parametrize(
    "taken,said",
    [
        ("delete on queuectl.webhook_outbox", "this role lacks delete on webhook_outbox"),
        (
            "all on queuectl.alerts",
            "this role lacks select on alerts; insert on alerts; update on alerts; delete on alerts",
        ),
        ("usage on sequence queuectl.jobs_seq_seq", "this role lacks usage on jobs_seq_seq"),
    ],
)
def test_a_worker_that_lacks_a_right_is_told_so_before_it_runs_anything(site: Site, taken: str, said: str) -> None:
    queuectl = site.as_("queue_worker")
    queuectl("enqueue", "--id", "a", "true", check=0)
    site.server.execute(f"revoke {taken} from queue_worker", site.url("queue_owner"))
    refused = queuectl("worker", "start", "--drain", check=1).err
    assert said in refused
    assert "grant it to this role" in refused
    assert queuectl("list", "--json", check=0).json[0]["state"] == "pending"
    assert said in queuectl("doctor", check=1).out


def test_the_role_that_works_is_told_what_it_may_not(site: Site, tmp_path: Path) -> None:
    queuectl = site.as_("queue_worker")
    refused = queuectl("config", "set", "ageing", "10m", check=1).err.splitlines()
    assert "permission denied for table meta" in refused[0]
    assert "owner" in refused[1]
    assert "grant" not in refused[1]
    queuectl("--db", tmp_path / "a.db", "enqueue", "true", check=0)
    words = ["copy", "--from", tmp_path / "a.db", "--to"]
    assert "permission denied" in queuectl(*words, site.url("queue_worker"), check=1).err
    site.as_("queue_owner")(*words, site.url("queue_owner"), check=0)
    assert queuectl("status", "--json", check=0).json["total"] == 1
    assert "permission denied" in str(refuse(site, "create table queuectl.mine (x int)"))


def refuse(site: Site, statement: str) -> Exception:
    import psycopg

    with pytest.raises(psycopg.errors.InsufficientPrivilege) as found:
        site.server.execute(statement, site.url("queue_worker"))
    return found.value


def test_a_role_that_may_only_look_can_look(site: Site) -> None:
    site.as_("queue_worker")("enqueue", "--id", "a", "true", check=0)
    site.server.execute("create role queue_looker login")
    for right in (
        "usage on schema queuectl",
        "select on all tables in schema queuectl",
        "select on sequence queuectl.jobs_seq_seq",
    ):
        site.server.execute(f"grant {right} to queue_looker", site.url("queue_owner"))
    looker = site.as_("queue_looker")
    for words in (["status"], ["list"], ["show", "a"], ["logs", "a"], ["metrics"]):
        looker(*words, check=0)
    found = looker("doctor", check=1).out
    assert "this role lacks insert on alerts, audit, batches" in found
    assert "grant it to this role" in found
    assert "backup" not in found
    assert "permission denied" in looker("enqueue", "true", check=1).err
    # At once, and not after it was tried again for long.
    assert "permission denied" in looker("worker", "start", check=1, timeout=20).err
    assert "permission denied" in looker("worker", "start", "--detach", check=1, timeout=20).err


@pytest.fixture
def stranger(site: Site) -> Iterator[psycopg.Connection]:
    """A session of a role that may connect to the database and has no other right."""
    site.server.execute("create role queue_stranger login")
    with psycopg.connect(site.url("queue_stranger"), autocommit=True) as session:
        yield session


def test_a_role_without_grants_cannot_stop_the_queue_by_advisory_locks(
    site: Site, stranger: psycopg.Connection
) -> None:
    for number in range(1, 4):  # those that queuectl used to take: for migrations, the ageing rule and all unique keys
        stranger.execute("select pg_advisory_lock(1366647668, %s)", [number])
    for name in ("w", "k", "default"):  # and those of a worker, a unique key and a queue
        stranger.execute("select pg_advisory_lock(1366647669, hashtext(%s))", [name])
        stranger.execute("select pg_advisory_lock(1366647670, hashtext(%s))", [name])
    queuectl = site.as_("queue_worker")
    queuectl("config", "set", "backoff-base", "1", check=0)
    queuectl("enqueue", "--id", "one", "--unique", "k", "true", check=0)
    queuectl("enqueue", "--array", "1-3%1", "true", check=0)
    queuectl("worker", "start", "--name", "w", "--drain", check=0)
    assert queuectl("status", "--json", check=0).json["states"]["completed"] == 4


@pytest.mark.parametrize(
    "statement", ["lock table queuectl.locks in share mode", "select 1 from queuectl.locks for key share"]
)
def test_a_role_without_grants_cannot_take_our_locks(stranger: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), stranger.transaction():
        stranger.execute(statement)
