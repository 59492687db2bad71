"""Addresses: which store one names, and that nobody ever sees a password."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl import errors
from queuectl.store.address import PostgresUrl, SqliteFile, parse_address, shown


@pytest.mark.parametrize("text", ["postgresql://h/db", "postgres://u:p@h:5433/db?sslmode=require", "postgresql://"])
def test_a_url_of_postgresql_names_a_server(text: str) -> None:
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
        ("/var/q.db", "/var/q.db"),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, seen: str) -> None:
    assert shown(text) == seen


@given(password=st.text(min_size=1).map(lambda text: f"<{text}>"), user=st.sampled_from(["", "u", "a.b"]))
def test_no_password_however_written_is_ever_shown(password: str, user: str) -> None:
    address = parse_address(f"postgresql://{user}:{password}@host/db")
    assert isinstance(address, PostgresUrl)
    for text in (address.shown(), repr(address), str(address), f"{address}"):
        assert password not in text
        assert text.rstrip("')").endswith("@host/db")
