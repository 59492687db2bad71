from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.jobs.search import COMMAND, Term, format_query, parse_query, starts_with_qualifier
from tests.messages import assert_readable


def word(text: str) -> Term:
    return Term(COMMAND, (text,))


@pytest.mark.parametrize(
    "text, terms, rendered",
    [
        ("", [], ""),
        (" \n", [], ""),
        ("queue:mail", [Term("queue", ("mail",))], None),
        ("QUEUE:Mail", [Term("queue", ("Mail",))], "queue:Mail"),
        ("tag:a,b  ffmpeg ", [Term("tag", ("a", "b")), word("ffmpeg")], "tag:a,b ffmpeg"),
        ('error:"timed out",x', [Term("error", ("timed out", "x"))], None),
        ('error:"a,b"', [Term("error", ("a,b",))], None),
        ("-queue:x", [Term("queue", ("x",), is_negated=True)], None),
        ("-command:x,y", [Term(COMMAND, ("x", "y"), is_negated=True)], None),
        ("command:a,b", [Term(COMMAND, ("a", "b"))], "a b"),
        ("ffmpeg -i a,b", [word("ffmpeg"), word("-i"), word("a,b")], 'ffmpeg "-i" "a,b"'),
        ('"-queue:x" "a b"', [word("-queue:x"), word("a b")], None),
        (r'"say \"hi\" C:\\d \."', [word(r'say "hi" C:\d \.')], r'"say \"hi\" C:\\d \\."'),
        ("https://example.org/x 12:30 :x", [word("https://example.org/x"), word("12:30"), word(":x")], None),
        ("since:2026-11-15T20:30:00Z", [Term("since", ("2026-11-15T20:30:00Z",))], None),
        ('a"b', [word('a"b')], r'"a\"b"'),
        ("-", [word("-")], '"-"'),
        ("id://", [Term("id", ("//",))], None),
    ],
)
def test_a_query_is_a_list_of_terms(text: str, terms: list[Term], rendered: str | None) -> None:
    parsed = parse_query(text, subject="q")
    assert parsed == terms
    assert parse_query(format_query(parsed), subject="q") == [
        word(value) if term == Term(COMMAND, term.values) else term
        for term in terms
        for value in (term.values if term == Term(COMMAND, term.values) else ("",))
    ]
    if rendered is not None:
        assert format_query(parsed) == rendered


@pytest.mark.parametrize(
    "text, problem, hint",
    [
        ("queu:mail", "unknown qualifier 'queu'", "did you mean 'queue:'?"),
        ("STATUS:x", "unknown qualifier 'STATUS'", "did you mean 'state:'?"),
        ("python:x", "unknown qualifier 'python'", "known: state, queue, "),
        ("queue:", "queue: has an empty value", "for example queue:a or queue:a,b"),
        ("queue:a,", "queue: has an empty value", "for example"),
        ('queue:""', "queue: has an empty value", "for example"),
        ('"a b', "a closing quote is missing", 'write \\" for a quote'),
        ('error:"a', "a closing quote is missing", "write"),
    ],
)
def test_an_invalid_query_is_rejected_with_its_first_mistake(text: str, problem: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_query(text, subject="q")
    assert (caught.value.subject, caught.value.problem) == ("q", problem)
    assert caught.value.hint.startswith(hint)
    assert_readable(caught.value)


def test_only_a_known_qualifier_at_the_beginning_counts() -> None:
    assert starts_with_qualifier("QUEUE:mail")
    assert starts_with_qualifier("-tag:eu ffmpeg")
    assert not starts_with_qualifier("python:x")
    assert not starts_with_qualifier("ffmpeg queue:mail")
