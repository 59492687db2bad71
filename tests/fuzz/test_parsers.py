"""Every parser against whatever comes: it gives a value or one of our errors, on one line, and nothing else ever.

What each accepts is claimed by the tests of its own; here it is only tried to surprise them. QUEUECTL_TEST_FULL=1 tries longer.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import QueuectlError
from queuectl.job.ageing import parse_ageing
from queuectl.job.array import parse_array
from queuectl.job.change import read_change
from queuectl.job.cron.expression import parse_expression
from queuectl.job.cron.model import parse_catch_up, parse_overlap
from queuectl.job.duration import parse_duration_ms
from queuectl.job.envfile import parse_env_file
from queuectl.job.limits import parse_rate
from queuectl.job.moment import parse_moment_ms
from queuectl.job.past import read_record
from queuectl.job.policy import Refusal
from queuectl.job.policytables import parse_policy
from queuectl.job.secrets import parse_teller
from queuectl.job.settings import KEYS, resolve_key
from queuectl.job.size import parse_size
from queuectl.job.spec import Defaults, validate
from queuectl.job.strictjson import parse_json
from queuectl.policy.accounts import find_accounts
from queuectl.policy.file import _tables as read_tables
from queuectl.policy.guard import Guard, Permit, Wish
from queuectl.queue.filters import parse_since, parse_sort, parse_state
from queuectl.queue.intake import read_document, read_words
from queuectl.queue.records import open_records
from queuectl.store.address import parse_address, shown
from queuectl.store.pointer import _parse as parse_pointer
from queuectl.web.body import parse_body
from queuectl.zones import find_zone
from tests.needs import FULL

DEFAULTS = Defaults(priority=0, max_retries=3, first_is_free=False, backoff_base=2.0, timeout_ms=None, cwd="/here")
MANY = 2000 if FULL else 60

FIELDS = (
    *(
        "command",
        "argv",
        "id",
        "queue",
        "priority",
        "max_retries",
        "max_attempts",
        "backoff_base",
        "timeout",
        "timeout_ms",
    ),
    *("run_at", "delay", "cwd", "env", "tags", "depends_on", "unique_key", "unique_for", "batch", "key", "places"),
    *(
        "if_exists",
        "secrets",
        "state",
        "attempts",
        "created_at",
        "history",
        "cron",
        "held",
        "finished_at",
        "exit_code",
        "signal",
    ),
)
# What such texts are made of, and what has broken parsers before.
PIECES = st.sampled_from(
    [
        *(
            "1",
            "0",
            "-",
            "+",
            ".",
            "e",
            "E9",
            "9" * 30,
            "1h",
            "30m",
            "ms",
            "w",
            "inf",
            "nan",
            "NaN",
            "Infinity",
            "٣",
            "½",
        ),
        *(
            "2026-11-16",
            "T",
            "24:00",
            "Z",
            "+25:00",
            "*",
            "*/0",
            "60-1",
            "L",
            "#5",
            "@daily",
            "every ",
            "MON",
            ",",
            "/",
            "?",
        ),
        *(
            "{",
            "}",
            "[",
            "]",
            '"',
            "\\",
            "\\ud800",
            "\\u0000",
            ":",
            "null",
            "true",
            "KiB",
            "%",
            "\0",
            "\n",
            "\r\n",
            "\x1b[31m",
        ),
        *(
            "postgresql://",
            "user:pass@",
            "sqlite:///",
            "../",
            "a" * 5000,
            "\ufeff",
            "\u2028",
            "🐢",
            "=",
            "{}",
            "{.}",
            " ",
        ),
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=12).map("".join))
DATA = st.one_of(st.binary(max_size=120), TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=8,
)
SPECS = st.dictionaries(st.one_of(st.sampled_from(FIELDS), st.text(max_size=8)), VALUES, max_size=8)


def tried(parse: Callable[[Any], object], given_: object) -> None:
    refusal = None
    try:
        parse(given_)
    except QueuectlError as error:
        refusal = error
    if refusal is not None:
        assert refusal.message
        assert refusal.hint
        assert "\n" not in refusal.message + refusal.hint
        assert len(refusal.message) < 4000


OF_TEXT: dict[str, Callable[[str], object]] = {
    "json": parse_json,
    "duration": lambda text: parse_duration_ms(text, subject="x"),
    "moment": lambda text: parse_moment_ms(text, subject="x", local=UTC),
    "size": lambda text: parse_size(text, subject="x"),
    "cron": parse_expression,
    "overlap": lambda text: parse_overlap(text, subject="x"),
    "catch-up": lambda text: parse_catch_up(text, subject="x"),
    "zone": find_zone,
    "array": lambda text: parse_array(text, subject="x"),
    "rate": lambda text: parse_rate(text, subject="x"),
    "ageing": lambda text: parse_ageing(text, subject="x"),
    "since": lambda text: parse_since(text, subject="x", now_ms=lambda: 0),
    "sort": parse_sort,
    "state": parse_state,
    "key": resolve_key,
    "address": parse_address,
    "shown": shown,
    "words": lambda text: read_words([text]),
}


@pytest.mark.parametrize("parse", OF_TEXT.values(), ids=OF_TEXT)
@settings(max_examples=MANY)
@given(text=TEXTS)
def test_a_parser_of_text_gives_a_value_or_one_of_our_errors(parse: Callable[[str], object], text: str) -> None:
    tried(parse, text)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
@settings(max_examples=MANY)
@given(text=TEXTS)
def test_a_setting_of_any_text_is_taken_or_refused(key: Any, text: str) -> None:
    tried(lambda given_: key.parse(given_, subject="x"), text)


@settings(max_examples=MANY * 3)
@given(spec=SPECS)
def test_a_job_of_any_fields_is_taken_or_refused(spec: dict[str, object]) -> None:
    tried(lambda fields: validate(fields, DEFAULTS, local=UTC), spec)
    tried(lambda fields: read_change(fields, local=UTC), spec)
    tried(lambda fields: read_record(fields, DEFAULTS), spec)


@settings(max_examples=MANY * 3)
@given(data=DATA)
def test_a_file_of_any_bytes_is_taken_or_refused(data: bytes) -> None:
    def lines(given_: bytes) -> None:
        taken = read_document(given_, None)
        for one in getattr(taken, "jobs", ()):
            assert one is not None

    def records(given_: bytes) -> None:
        for _ in open_records("-", io.BufferedReader(io.BytesIO(given_))):
            pass

    tried(lines, data)
    tried(records, data)
    tried(lambda given_: parse_pointer(given_, "queuectl.toml"), data)
    tried(lambda given_: parse_env_file(given_, subject="x"), data)


# Of the right kind more often than not: what is refused by its kind says nothing about what comes after.
PATTERNS = st.one_of(st.text("/*?.-a", max_size=8).map("/{}".format), TEXTS, VALUES)
RULES = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "shell": st.one_of(st.booleans(), VALUES),
            "programs": st.lists(
                st.one_of(
                    PATTERNS,
                    st.fixed_dictionaries(
                        {"program": PATTERNS},
                        optional={"args": st.lists(st.one_of(st.just("..."), PATTERNS), max_size=3), "name": VALUES},
                    ),
                ),
                max_size=3,
            ),
            "directories": st.lists(PATTERNS, max_size=3),
            "environment": st.lists(st.one_of(st.text("A*?_1", max_size=5), VALUES), max_size=3),
            "job-environment": st.lists(st.one_of(st.text("A*?_1", max_size=5), VALUES), max_size=3),
            "max-timeout": st.one_of(st.sampled_from(["1h", 5, "0"]), VALUES),
            "user": st.one_of(st.text("a1:-$", max_size=6), st.integers(), VALUES),
            "umask": st.one_of(st.text("0127", max_size=4), VALUES),
        },
    ),
    st.dictionaries(st.one_of(st.sampled_from(["shell", "programs", "queues"]), TEXTS), VALUES, max_size=3),
)
POLICIES = st.builds(lambda general, queues: {**general, "queues": queues}, RULES, st.one_of(
    st.dictionaries(st.one_of(st.just("mail"), TEXTS), RULES, max_size=2), VALUES))  # fmt: skip


@settings(max_examples=MANY * 3)
@given(
    said=st.one_of(RULES, POLICIES),
    words=st.lists(TEXTS, min_size=1, max_size=3),
    env=st.dictionaries(TEXTS, TEXTS, max_size=2),
)
def test_a_policy_of_any_rules_is_taken_or_refused_and_says_yes_or_no_to_any_job(
    said: dict[str, Any], words: list[str], env: dict[str, str]
) -> None:
    def judge(given_: dict[str, Any]) -> None:
        policy = parse_policy(given_, subject="policy.toml")
        guard = Guard(policy, user=0, accounts=find_accounts(policy, "policy.toml"))
        for queue in ("mail", "other"):
            for argv in (None, words):
                wish = Wish(queue, None if argv else words[0], argv, words[-1], env, 1000)
                assert isinstance(guard.judge(wish), (Permit, Refusal))
            guard.of(queue).seen(env, None)

    tried(judge, said)


@settings(max_examples=MANY)
@given(data=DATA)
def test_a_policy_of_any_bytes_is_taken_or_refused(data: bytes) -> None:
    tried(lambda given_: parse_policy(read_tables(given_, "policy.toml"), subject="policy.toml"), data)


@settings(max_examples=MANY * 3)
@given(said=st.dictionaries(st.sampled_from(["command", "timeout", "comand", "{name}"]), VALUES, max_size=3))
def test_whom_to_ask_for_secrets_is_taken_or_refused(said: dict[str, object]) -> None:
    tried(lambda given_: parse_teller(given_, subject="secrets.toml"), said)
    tried(lambda given_: parse_policy(given_, subject="policy.toml"), {"secrets": said.get("command")})


@settings(max_examples=MANY)
@given(data=DATA)
def test_a_body_of_any_bytes_is_taken_or_refused(data: bytes) -> None:
    tried(parse_body, data)


@settings(max_examples=MANY)
@given(spec=SPECS)
def test_what_json_can_say_is_read_as_it_was_or_refused(spec: dict[str, object]) -> None:
    text = json.dumps(spec)
    tried(lambda given_: repr(parse_json(given_)) == repr(json.loads(given_)) or pytest.fail(given_), text)


@settings(max_examples=MANY * 3)
@given(
    lines=st.lists(
        st.sampled_from(["A=", "export B=", "'", '"', "\\", "\n", "#", " ", "x", "$", "\r\n", "="]), max_size=20
    )
)
def test_a_file_of_variables_of_any_pieces_is_taken_or_refused(lines: list[str]) -> None:
    tried(lambda given_: parse_env_file(given_, subject="x"), "".join(lines).encode())


@settings(max_examples=MANY)
@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r'"), max_size=40))
def test_what_stands_between_single_quotes_is_the_value(value: str) -> None:
    assert parse_env_file(f"A='{value}'\n".encode(), subject="x") == {"A": value}
