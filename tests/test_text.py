from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidJson
from queuectl.text import (
    MAX_JSON_DEPTH,
    closest_match,
    command_line,
    escape_control,
    escape_json,
    is_valid_id,
    is_valid_queue,
    is_valid_tag,
    parse_json,
    plural,
    short_repr,
)
from tests.messages import assert_readable


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (-3.5, "-3.5"),
        (float("nan"), "nan"),
        ("a\nb", r"'a\nb'"),
        ("\ud800", r"'\ud800'"),
        ("x" * 61, "'" + "x" * 59 + "…'"),
        ([1], "a list"),
        ((), "a list"),
        ({}, "an object"),
        (10**5000, "an integer of absurd length"),
        (b"", "a Python bytes"),
    ],
    ids=short_repr,
)
def test_a_rejected_value_is_shown_as_json_has_it(value: object, text: str) -> None:
    assert short_repr(value) == text


@given(st.one_of(st.text(), st.integers(), st.floats()))
def test_a_rejected_value_is_shown_on_one_short_line_of_utf_8(value: object) -> None:
    assert short_repr(value).isprintable()
    assert short_repr(value).encode()


@pytest.mark.parametrize("text", ["", "echo żółw", "👩\u200d👩\u200d👧", "\ue0b0 a symbol of a font", "a\u00a0b"])
def test_text_without_control_characters_is_unchanged(text: str) -> None:
    assert escape_control(text) == text
    assert escape_json(text) == text


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
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert escape_control(text) == shown


def test_escaped_json_has_the_same_value() -> None:
    value = {"a": "\u202eback \x9b31m \x7f", "b": ["\n"]}
    text = json.dumps(value, ensure_ascii=False, indent=2)
    shown = escape_json(text)
    assert "\u202e" not in shown
    assert "\x9b" not in shown
    assert json.loads(shown) == value


SMILE = "\N{SLIGHTLY SMILING FACE}"

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"command": "echo 1", "priority": 3}', {"command": "echo 1", "priority": 3}),
        (' \t\r\n {"a": 1} \n', {"a": 1}),
        ("[1, -2.5, 1e3, true, false, null]", [1, -2.5, 1000.0, True, False, None]),
        ('"NaN [ { 1e999"', "NaN [ { 1e999"),
        (rf'"\u00e9 {SMILE} \ud83d\ude42"', f"é {SMILE} {SMILE}"),
        (r'"\\ud800 \n\\"', "\\ud800 \n\\"),
        ('{"a": {"x": 1}, "b": {"x": 1}}', {"a": {"x": 1}, "b": {"x": 1}}),
        ("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH, json.loads("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)),
        ("[" + ",".join(['{"a": "["}'] * 200) + "]", [{"a": "["}] * 200),
    ],
    ids=short_repr,
)
def test_valid_json_is_parsed(text: str, value: object) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "expecting value, line 1 column 1, at the end of the text"),
        ('{"a": 1\n', "expecting ',' delimiter, line 2 column 1, at the end of the text"),
        ('{"a": 1} x', "more after the end, line 1 column 10, at 'x'"),
        ('\n {"a": nope}', "expecting value, line 2 column 8, at 'nope}'"),
        ("{ echo a; }", "line 1 column 3, at 'echo a; }'"),
        ('"a\nb"', "invalid control character, line 1 column 3, at the end of the line"),
        ('{"NaN": NaN}', "NaN is not JSON, line 1 column 9, at 'NaN}'"),
        ("[-Infinity]", "-Infinity is not JSON, line 1 column 2, at '-Infinity]'"),
        ('["1e999", 1e999]', "a number too large, line 1 column 11, at '1e999]'"),
        ("[-1e999]", "a number too large, line 1 column 2, at '-1e999]'"),
        ("[7" + "0" * 400 + "]", "a number of absurd length, line 1 column 2, at '7000"),
        ("[7." + "0" * 400 + "]", "a number of absurd length, line 1 column 2, at '7.000"),
        ("[" * 101 + "]" * 101, "nested deeper than 100 levels, line 1 column 101, at '["),
        ('{"a":' * 100_000, "nested deeper than 100 levels, line 1 column 501, at '{"),
        ('{"a": 1, "b": 2, "a": 1}', "duplicate key 'a', line 1 column 18, at '\"a\": 1}'"),
        ('{"p": {"x": 1}, "q": {"x": 1, "y": "x", "x": 2}}', "duplicate key 'x', line 1 column 41"),
        ('{"\\u0061": 1, "a": 2}', "duplicate key 'a', line 1 column 15"),
        (r'"\ud800"', "a lone surrogate, line 1 column 2"),
        (r'"\ud800 "', "a lone surrogate, line 1 column 2"),
        (r'"\ud800\n"', "a lone surrogate, line 1 column 2"),
        (r'"\ud800\ud800\udc00"', "a lone surrogate, line 1 column 2"),
        (r'{"\udc00": 1}', "a lone surrogate, line 1 column 3"),
        ('"a\ud800"', "a lone surrogate, line 1 column 3"),
    ],
    ids=short_repr,
)
def test_invalid_json_is_rejected_with_position_and_text(text: str, problem: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        parse_json(text)
    assert problem in caught.value.message
    assert caught.value.message.startswith("not valid JSON: ")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200


def test_long_numbers_are_rejected_without_a_limit_of_python() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(InvalidJson, match="absurd length"):
            parse_json("9" * 10_000)
    finally:
        sys.set_int_max_str_digits(limit)


@given(values)
def test_json_is_parsed_back_unchanged(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(st.one_of(st.text(), st.text('{}[]",:\\u0d8e1NaInfity- \n'), st.text(st.characters()), values.map(json.dumps)))
def test_any_text_is_json_or_rejected(text: str) -> None:
    try:
        assert json.dumps(parse_json(text), ensure_ascii=False).encode()
    except InvalidJson as refused:
        assert_readable(refused)


def written(fields: list[tuple[str, object]]) -> str:
    """An object with exactly these fields, including duplicates."""
    inner = [f"{json.dumps(key)}: {written(v) if isinstance(v, list) else json.dumps(v)}" for key, v in fields]
    return "{" + ", ".join(inner) + "}"


def has_duplicates(fields: list[tuple[str, object]]) -> bool:
    inner = [value for _, value in fields if isinstance(value, list)]
    return len(dict(fields)) < len(fields) or any(map(has_duplicates, inner))


keys = st.sampled_from(["a", "b", "c", "{", '"', "\\", "é"])
objects = st.recursive(
    st.lists(st.tuples(keys, scalars), max_size=3), lambda inner: st.lists(st.tuples(keys, inner | scalars), max_size=3)
)


@given(objects)
def test_a_duplicate_key_is_found_at_any_position(fields: list[tuple[str, object]]) -> None:
    text = written(fields)
    if has_duplicates(fields):
        with pytest.raises(InvalidJson, match="duplicate key"):
            parse_json(text)
    else:
        assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize("name", ["a", "7", "A.b_c:d-e", "x" * 128, "Last"])
def test_a_valid_id_is_accepted(name: str) -> None:
    assert is_valid_id(name)


@pytest.mark.parametrize("name", ["", "last", "-a", ".a", "a b", "a/b", "é", "a\n", "x" * 129])
def test_an_invalid_id_is_rejected(name: str) -> None:
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


def test_the_closest_match_is_found_if_one_is_similar() -> None:
    known = ["command", "priority", "max_retries"]
    assert closest_match("comand", known) == "command"
    assert closest_match("retries", known) == "max_retries"
    assert closest_match("zzz", known) is None
    assert closest_match("x" * 100_000, known) is None


@pytest.mark.parametrize(
    "count, words, text",
    [(1, ("job",), "1 job"), (2, ("job",), "2 jobs"), (1200, ("entry", "entries"), "1,200 entries")],
)
def test_a_plural_follows_its_count(count: int, words: tuple[str, ...], text: str) -> None:
    assert plural(count, *words) == text


def test_the_line_of_a_command_is_what_a_shell_would_read() -> None:
    assert command_line("a && b", None) == "a && b"
    assert command_line(None, ["echo", "a b"]) == "echo 'a b'"
