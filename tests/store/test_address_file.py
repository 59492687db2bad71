"""queuectl.toml: a home that says where its store is."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl import errors
from queuectl.store.open import open_store, read_pointer, store_path
from tests.clock import FakeClock
from tests.factories import new_job


def write(home: Path, text: str, mode: int = 0o600) -> None:
    home.mkdir(exist_ok=True)
    file = home / "queuectl.toml"
    file.write_text(text)
    file.chmod(mode)


def test_a_home_without_the_file_has_its_store_inside(home: Path) -> None:
    assert read_pointer(str(home)) is None
    assert store_path(str(home), None) == str(home / "queue.db")


def test_the_file_says_where_the_store_is(home: Path, tmp_path: Path, clock: FakeClock) -> None:
    write(home, f'db = "{tmp_path}/other.db"')
    store = open_store(str(home), None, clock)
    store.enqueue([new_job("a")])
    store.close()
    assert (tmp_path / "other.db").exists()
    assert not (home / "queue.db").exists()


def test_an_address_that_was_given_wins_over_the_file(home: Path, tmp_path: Path) -> None:
    write(home, 'db = "postgresql://h/db"')
    assert store_path(str(home), str(tmp_path / "x.db")) == str(tmp_path / "x.db")
    assert store_path(str(home), None) == "postgresql://h/db"


def test_a_relative_path_is_relative_to_the_home(home: Path) -> None:
    write(home, 'db = "other.db"')
    assert store_path(str(home), None) == str(home / "other.db")


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_file_that_others_can_read_is_refused(home: Path, mode: int) -> None:
    write(home, 'db = "postgresql://u:hunter2@h/db"', mode)
    with pytest.raises(errors.HomeUnusable, match=r"queuectl\.toml") as raised:
        read_pointer(str(home))
    assert raised.value.hint == f"chmod 600 {home}/queuectl.toml"


def test_a_slip_in_the_address_is_not_taken_for_a_file_of_the_home(home: Path) -> None:
    write(home, 'db = "host=h password=hunter2"')
    with pytest.raises(errors.InvalidInput) as raised:
        store_path(str(home), None)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("text", ["db = postgresql://u:hunter2@h", "db = 3", 'db = ""', "[db", "\xff"])
def test_a_file_that_makes_no_sense_is_refused_without_quoting_it(home: Path, text: str) -> None:
    write(home, text)
    with pytest.raises(errors.InvalidInput) as raised:
        read_pointer(str(home))
    assert "hunter2" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_any_other_key_is_refused_by_name(home: Path) -> None:
    write(home, 'lease = "1m"')
    with pytest.raises(errors.InvalidInput, match=r"queuectl\.toml: unknown key 'lease'") as raised:
        read_pointer(str(home))
    assert "config set" in raised.value.hint


def test_the_line_that_is_not_toml_is_named(home: Path) -> None:
    write(home, '# mine\ndb = "a" "hunter2"\n')
    with pytest.raises(errors.InvalidInput, match="is not TOML at line 2") as raised:
        read_pointer(str(home))
    assert "hunter2" not in str(raised.value)


def test_an_empty_file_says_nothing(home: Path) -> None:
    write(home, "")
    assert read_pointer(str(home)) is None
