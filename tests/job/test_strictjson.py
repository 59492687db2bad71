from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidJson
from queuectl.job.shown import shown
from queuectl.job.strictjson import DEEPEST, parse_json
from tests.job.said import assert_well_said

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
        ("[" * DEEPEST + "]" * DEEPEST, json.loads("[" * DEEPEST + "]" * DEEPEST)),
        ("[" + ",".join(['{"a": "["}'] * 200) + "]", [{"a": "["}] * 200),
    ],
    ids=shown,
)
def test_good_json_is_read_as_it_is(text: str, value: object) -> None:
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
    ids=shown,
)
def test_bad_json_is_refused_with_the_place_and_the_text(text: str, problem: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        parse_json(text)
    assert problem in caught.value.message
    assert caught.value.message.startswith("not valid JSON: ")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200


def test_numbers_are_refused_alike_where_python_has_no_limit_of_its_own() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(InvalidJson, match="absurd length"):
            parse_json("9" * 10_000)
    finally:
        sys.set_int_max_str_digits(limit)


@given(values)
def test_what_json_writes_reads_back_as_the_same(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(st.one_of(st.text(), st.text('{}[]",:\\u0d8e1NaInfity- \n'), st.text(st.characters()), values.map(json.dumps)))
def test_any_text_is_json_or_refused(text: str) -> None:
    try:
        assert json.dumps(parse_json(text), ensure_ascii=False).encode()
    except InvalidJson as refused:
        assert_well_said(refused)


def written(fields: list[tuple[str, object]]) -> str:
    """An object with exactly these fields, duplicates and all."""
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
def test_a_key_that_comes_twice_is_found_wherever_it_is(fields: list[tuple[str, object]]) -> None:
    text = written(fields)
    if has_duplicates(fields):
        with pytest.raises(InvalidJson, match="duplicate key"):
            parse_json(text)
    else:
        assert parse_json(text) == json.loads(text)
