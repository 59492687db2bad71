"""Addresses: which store one names, and that no password is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl import errors
from queuectl.store.address import PostgresUrl, SqliteFile, parse_address, shown, without_secrets
from tests.program import Program


@pytest.mark.parametrize("text", ["postgresql://h/db", "postgres://u:p@h:5433/db?sslmode=require", "postgresql://"])
def test_a_url_of_postgresql_names_a_server(text: str) -> None:
    assert parse_address(text) == PostgresUrl(text)


def test_the_scheme_may_be_written_in_capital_letters(tmp_path: Path) -> None:
    assert parse_address("PostgreSQL://u@H/Db") == PostgresUrl("postgresql://u@H/Db")
    assert parse_address(f"SQLite:///{tmp_path}/Q.db") == SqliteFile(f"{tmp_path}/Q.db")


@pytest.mark.parametrize(
    "text",
    ["postgresql://a:1,b:2/db", "postgresql://[::1]:5432/db", "postgresql:///db?host=/run", "postgresql://u:a:b@h/d"],
)
def test_whatever_libpq_understands_may_stand_in_a_url(text: str) -> None:
    assert parse_address(text) == PostgresUrl(text)


@pytest.mark.parametrize("text", ["/var/q.db", "sqlite:////var/q.db"])
def test_a_path_with_or_without_scheme_names_a_file(text: str) -> None:
    assert parse_address(text) == SqliteFile("/var/q.db")


def test_any_other_scheme_is_refused_by_its_name() -> None:
    with pytest.raises(errors.StoreUnsupported, match="mysql"):
        parse_address("mysql://u:secret@h/db")


@pytest.mark.parametrize(
    "text, seen",
    [
        ("postgresql://u:secret@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgres://u:se@cret@h/db", "postgres://u:***@h/db"),
        ("postgresql://u:se/c?ret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        ("postgresql:///db?host=/run/pg&password=secret&user=u", "postgresql:///db?host=/run/pg&password=***&user=u"),
        ("postgresql://h/db?PASSWORD=secret", "postgresql://h/db?PASSWORD=***"),
        ("postgresql://me@corp:secret@h/db", "postgresql://me@corp:***@h/db"),
        ("postgresql:///u:secret@h/db", "postgresql:///u:***@h/db"),
        ("postgresql://u:secret/db", "postgresql://u:***/db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://u@h/db?pasword=secret&sslmode=require", "postgresql://u@h/db?pasword=***&sslmode=require"),
        ("PostgreSQL://u:secret@h/db", "PostgreSQL://u:***@h/db"),
        ("/var/q.db", "/var/q.db"),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, seen: str) -> None:
    assert shown(text) == seen


@given(password=st.text(min_size=1).map(lambda text: f"<{text}>"), user=st.sampled_from(["", "u", "a.b"]))
def test_no_password_however_written_is_ever_shown(password: str, user: str) -> None:
    address = PostgresUrl(f"postgresql://{user}:{password}@host/db")
    for text in (address.shown(), repr(address), str(address), f"{address}"):
        assert password not in text
        assert text.rstrip("')").endswith("@host/db")


SECRET = "hunter2"
SLIPS = [
    f"postgresql://u:Top@{SECRET}@127.0.0.1:5432/db",
    f"postgresql://u:Top/{SECRET}@127.0.0.1:5432/db",
    f"postgresql://u:{SECRET}?a=b@127.0.0.1:5432/db",
    f"postgresql://me@corp:{SECRET}@127.0.0.1/db",
    f"postgresql:///u:{SECRET}@127.0.0.1/db",
    f"postgresql://u:{SECRET}/db",
    f"postgresql:/u:{SECRET}@127.0.0.1:5432/db",
    f"postgresql:u:{SECRET}@127.0.0.1:5432/db",
    f"Postgres:/u:{SECRET}@127.0.0.1/db",
    f"postgresql//u:{SECRET}@127.0.0.1/db",
    f"postgresq://u:{SECRET}@127.0.0.1/db",
    f"u:{SECRET}@127.0.0.1/db",
    f"u:{SECRET}/x@127.0.0.1/db",
    f"u:{SECRET}://x@127.0.0.1/db",
    f"//u:{SECRET}@127.0.0.1/db",
    f"host=127.0.0.1 port=5432 user=u password={SECRET} dbname=db",
    f"dbname=db password={SECRET}",
    f"sslrootcert=/x password = '{SECRET}'",
]


@pytest.mark.parametrize("text", SLIPS)
def test_a_slip_in_the_address_of_a_server_is_refused_in_words_without_the_password(text: str) -> None:
    with pytest.raises(errors.QueuectlError) as raised:
        parse_address(text)
    assert SECRET not in f"{raised.value.message} {raised.value.hint}"
    assert "postgresql://" in raised.value.hint or "%40" in raised.value.hint
    assert SECRET not in shown(text) or not text.lower().startswith(("postgresql://", "postgres://"))


@pytest.mark.parametrize("text", SLIPS)
def test_a_slip_in_an_address_costs_neither_a_file_nor_the_password(
    text: str, queuectl: Program, tmp_path: Path
) -> None:
    for words in (["enqueue", "true"], ["status"], ["--json", "status"]):
        done = queuectl("--db", text, *words, cwd=tmp_path)
        assert done.code in {1, 2}
        assert SECRET not in done.out + done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["./u:x@h/q.db", "/srv/a:b@c/q.db", "queue.db", "with space/q=1.db", "./host=a"])
def test_a_path_may_look_like_anything_if_it_begins_like_a_path(text: str) -> None:
    assert parse_address(text, base="/base") == SqliteFile(str(Path("/base", text)))


@pytest.mark.parametrize("text", ["postgresql://h:notaport/db", "postgresql://h:99999/db", "postgresql://h:0/db"])
def test_a_port_that_is_none_is_refused_before_anybody_connects(text: str) -> None:
    with pytest.raises(errors.InvalidInput, match="not a port") as raised:
        parse_address(text)
    assert "65535" in raised.value.hint


@pytest.mark.parametrize(
    "text, kept",
    [
        ("postgresql://u:secret@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgresql://u:se/c?ret@h/db", "postgresql://u@h/db"),
        ("postgresql:///db?host=/run/pg&password=secret&user=u", "postgresql:///db?host=/run/pg&user=u"),
        ("postgresql://h/db?password=secret", "postgresql://h/db"),
        ("postgresql://u@h/db?sslmode=require", "postgresql://u@h/db?sslmode=require"),
        ("/var/q.db", "/var/q.db"),
    ],
)
def test_an_address_for_others_names_the_same_store_without_what_opens_it(text: str, kept: str) -> None:
    assert without_secrets(text) == kept
