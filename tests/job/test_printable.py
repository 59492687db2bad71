from __future__ import annotations

import json

import pytest

from queuectl.job.printable import printable, printable_json


@pytest.mark.parametrize("text", ["", "echo żółw", "👩\u200d👩\u200d👧", "\ue0b0 a symbol of a font", "a\u00a0b"])
def test_text_that_orders_nobody_about_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert printable_json(text) == text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("line\u2028end", "line\\u2028end"),
        ("\u202eback", "\\u202eback"),
        (b"not \xff utf-8".decode("utf-8", "surrogateescape"), "not \\xff utf-8"),
        ("lone \ud800", "lone \\ud800"),
    ],
)
def test_what_a_terminal_would_obey_is_written_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_json_stays_json_and_the_same() -> None:
    value = {"a": "\u202eback \x9b31m \x7f", "b": ["\n"]}
    text = json.dumps(value, ensure_ascii=False, indent=2)
    shown = printable_json(text)
    assert "\u202e" not in shown
    assert "\x9b" not in shown
    assert json.loads(shown) == value
