from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidItem, InvalidJson, InvalidLine, UnknownLayout, UsageError
from queuectl.operations import import_jobs
from queuectl.operations.import_jobs import RecordSource, open_records
from queuectl.store.foreign import MAGIC

JOB = {"id": "a", "command": 'echo "}],{[" \\', "env": {"K": "\n"}, "tags": ["x", "y"]}


def opened(data: bytes | str) -> RecordSource:
    return open_records("f", io.BufferedReader(io.BytesIO(data.encode() if isinstance(data, str) else data)))  # type: ignore[arg-type]


def read(data: bytes | str) -> list[tuple[int, dict[str, Any]]]:
    return list(opened(data))


def refusal(data: bytes | str) -> str:
    with pytest.raises(UsageError) as caught:
        read(data)
    return caught.value.message


@pytest.fixture(params=[1, 2, 3, 7, 2**18])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of the pieces that are read, also within a character."""
    monkeypatch.setattr(import_jobs, "READ_CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_element_by_element(indent: int | None) -> None:
    jobs = [{**JOB, "id": f"j{number}", "command": "ü漢🐝"} for number in range(5)]
    assert read(json.dumps(jobs, indent=indent, ensure_ascii=False)) == list(enumerate(jobs, 1))
    assert read(b"\xef\xbb\xbf \r\n [ ]\n") == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_read_one_by_one_without_blank_ones(end: str) -> None:
    text = end.join([json.dumps(JOB), "", json.dumps({"id": "b"}), "  "])
    assert read(text) == [(1, JOB), (3, {"id": "b"})]
    assert read(end + text) == [(2, JOB), (4, {"id": "b"})]


def test_one_object_may_take_many_lines() -> None:
    assert read(json.dumps(JOB, indent=2)) == [(1, JOB)]


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_an_empty_file_has_no_jobs(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_that_is_no_job_is_settings(indent: int | None) -> None:
    found = opened(json.dumps({"max_retries": 5, "backoff_base": 3}, indent=indent))
    assert list(found) == []
    assert found.settings == {"max_retries": 5, "backoff_base": 3}


def test_settings_are_alone_in_their_file() -> None:
    assert refusal('{"max_retries": 5}\n{"id": "a"}') == "line 1: id: missing"


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "text, told",
    [
        ('[{"a": 1}', "not valid JSON: the text ends before the array does, line 1 column 10"),
        ('[\n{"a": 1},\n{"b": "x', "not valid JSON: the text ends within item 2, line 3 column 1"),
        (
            '[{"a": 1} {"b": 2}]',
            "not valid JSON: expected a comma or the end of the array after item 1, line 1 column 12",
        ),
        ('[{"a": 1}]\n x', "not valid JSON: more after the end of the array, line 2 column 2"),
        ('[{"a": 1}, 3]', "item 2: expected a JSON object"),
        ('[{"a": 1},\n{"b": tru}]', "item 2: not valid JSON: expecting value, line 2 column 7, at 'tru}'"),
        ('[\n  {"b": 1, "b": 2}]', "item 1: not valid JSON: duplicate key 'b', line 2 column 12, at '\"b\": 2}'"),
        ('[{"a": 1},]', "item 2: expected a JSON object"),
        ("[", "not valid JSON: the text ends before the array does, line 1 column 2"),
    ],
)
def test_an_invalid_array_is_rejected_with_the_position(text: str, told: str) -> None:
    assert refusal(text) == told


def test_an_invalid_line_is_rejected_with_its_number() -> None:
    assert refusal('{"id": "a"}\n\n{"id": }') == "line 3: not valid JSON: expecting value, column 8, at '}'"
    assert refusal('{"id": "a"}\n[]') == "line 2: expected a JSON object"
    assert refusal('{\n"id": }').startswith("not valid JSON: expecting value, line 2 column 7")


@pytest.mark.usefixtures("at_once")
def test_invalid_utf_8_is_rejected_with_its_line() -> None:
    assert refusal(b'[\n{"id": "\xff"}]') == "line 2: text: byte 0xff is not UTF-8"
    assert refusal(b'{"id": "a"}\n{"id": "\xff"}') == "line 2: text: byte 0xff is not UTF-8"


def test_a_record_that_is_too_long_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_jobs, "MAX_RECORD_BYTES", 50)
    monkeypatch.setattr(import_jobs, "READ_CHUNK_BYTES", 10)
    long = json.dumps({"id": "a" * 100})
    with pytest.raises(InvalidItem, match="item 1: job: takes more than"):
        read(f"[{long}]")
    with pytest.raises(InvalidLine, match="line 1: job: takes more than"):
        read(long)


def test_a_file_that_is_neither_json_nor_sqlite_is_rejected() -> None:
    with pytest.raises(UnknownLayout, match="cannot import f: it is neither JSON nor a SQLite file"):
        opened("id,command\n")
    with pytest.raises(UnknownLayout, match="cannot import stdin: it is a SQLite file"):
        open_records("-", io.BufferedReader(io.BytesIO(MAGIC)))  # type: ignore[arg-type]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab[]{}"\\,', max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text('xyz"\\{', max_size=4), VALUES, max_size=4)),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_any_array_of_objects_is_parsed_like_json(jobs: list[Any], indent: int | None, is_ascii: bool) -> None:
    text = json.dumps(jobs, indent=indent, ensure_ascii=is_ascii)
    assert [fields for _, fields in read(text)] == jobs


@given(st.text('[]{}",:\\ 1a\n', max_size=20))
def test_any_text_after_a_bracket_is_parsed_or_rejected(text: str) -> None:
    try:
        wanted = json.loads(f"[{text}")
    except json.JSONDecodeError:
        wanted = None
    try:
        found = [fields for _, fields in read(f"[{text}")]
    except (InvalidJson, InvalidItem):
        return
    assert found == wanted
