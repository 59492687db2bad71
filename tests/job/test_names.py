from __future__ import annotations

import pytest

from queuectl.job.names import is_valid_id, is_valid_queue, is_valid_tag
from queuectl.job.nearest import nearest


@pytest.mark.parametrize("name", ["a", "7", "A.b_c:d-e", "x" * 128, "Last"])
def test_a_good_id_is_of_the_alphabet(name: str) -> None:
    assert is_valid_id(name)


@pytest.mark.parametrize("name", ["", "last", "-a", ".a", "a b", "a/b", "é", "a\n", "x" * 129])
def test_a_bad_id_is_not_taken(name: str) -> None:
    assert not is_valid_id(name)


def test_queues_have_no_colon_and_are_shorter() -> None:
    assert is_valid_queue("mail.eu-1_a")
    assert is_valid_queue("x" * 64)
    assert not is_valid_queue("mail:eu")
    assert not is_valid_queue("x" * 65)


def test_tags_are_short_names_of_the_id_alphabet() -> None:
    assert is_valid_tag("team:a")
    assert is_valid_tag("last")
    assert not is_valid_tag("x" * 65)


def test_the_nearest_name_is_found_if_one_looks_alike() -> None:
    known = ["command", "priority", "max_retries"]
    assert nearest("comand", known) == "command"
    assert nearest("retries", known) == "max_retries"
    assert nearest("zzz", known) is None
    assert nearest("x" * 100_000, known) is None
