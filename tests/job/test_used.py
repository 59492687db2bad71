from __future__ import annotations

import pytest

from queuectl.job.resources import Usage
from queuectl.job.used import Used, used, used_words

MIB = 2**20


@pytest.mark.parametrize(
    "usage, words",
    [
        (None, Used()),
        (Usage(0, 0, 12 * MIB, 0, 0), Used("0ms", "12MiB")),
        (Usage(1000, 250, 12 * MIB, 4096, 0), Used("1.25s", "12MiB", "4.0KiB", "", "4.0KiB")),
        (Usage(61_000, 0, 3 * MIB, 512, 2 * MIB), Used("1m 01s", "3.0MiB", "512B", "2.0MiB", "2.0MiB")),
    ],
)
def test_what_a_run_has_used_is_told_in_few_digits_and_nothing_of_what_nobody_knows(
    usage: Usage | None, words: Used
) -> None:
    assert used(usage) == words


def test_what_a_run_has_used_is_told_in_one_line() -> None:
    assert used_words(None) == ""
    assert used_words(Usage(0, 0, 12 * MIB, 0, 0)) == "cpu time 0ms, memory 12MiB"
    said = "cpu time 1.25s, memory 12MiB, read 4.0KiB, written 1.0MiB"
    assert used_words(Usage(1000, 250, 12 * MIB, 4096, MIB)) == said
