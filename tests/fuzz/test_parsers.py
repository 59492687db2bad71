"""Every parser against arbitrary input: it returns a value or raises an error of queuectl with a message on one line.

Other tests cover what each parser accepts. QUEUECTL_TEST_FULL=1 tries more examples.
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

from queuectl.cron.expression import parse_expression
from queuectl.cron.operations import find_zone
from queuectl.cron.schedule import parse_catch_up, parse_overlap
from queuectl.errors import QueuectlError
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.import_record import parse_record
from queuectl.jobs.priority import parse_ageing
from queuectl.jobs.queue_limits import parse_rate
from queuectl.jobs.spec import Defaults, validate
from queuectl.operations.enqueue import parse_arguments
from queuectl.operations.import_jobs import open_records
from queuectl.operations.job_input import parse_document, parse_env_file
from queuectl.operations.query import parse_filter, parse_since, parse_sort, parse_state, query_of
from queuectl.policy.accounts import find_accounts
from queuectl.policy.evaluator import Decision, Evaluator, Request
from queuectl.policy.parser import parse_policy, parse_toml
from queuectl.policy.rules import Refusal
from queuectl.secrets.resolver import parse_provider
from queuectl.settings import KEYS, resolve_key
from queuectl.store.address import parse_address, shown
from queuectl.store.open import parse_pointer
from queuectl.text import parse_json
from queuectl.units import parse_array, parse_duration_ms, parse_size, parse_time_ms
from queuectl.web.middleware import parse_body
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
# Typical parts of such texts, and input that has broken parsers before.
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
    "moment": lambda text: parse_time_ms(text, subject="x", local=UTC),
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
    "query": lambda text: parse_filter(query=text, now_ms=lambda: 0),
    "key": resolve_key,
    "address": parse_address,
    "shown": shown,
    "words": lambda text: parse_arguments([text]),
}


@pytest.mark.parametrize("parse", OF_TEXT.values(), ids=OF_TEXT)
@settings(max_examples=MANY)
@given(text=TEXTS)
def test_a_parser_of_text_returns_a_value_or_raises_an_error_of_queuectl(
    parse: Callable[[str], object], text: str
) -> None:
    tried(parse, text)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
@settings(max_examples=MANY)
@given(text=TEXTS)
def test_a_setting_of_any_text_is_accepted_or_rejected(key: Any, text: str) -> None:
    tried(lambda given_: key.parse(given_, subject="x"), text)


@settings(max_examples=MANY * 3)
@given(spec=SPECS)
def test_a_job_of_any_fields_is_accepted_or_rejected(spec: dict[str, object]) -> None:
    tried(lambda fields: validate(fields, DEFAULTS), spec)
    tried(parse_edit, spec)
    tried(lambda fields: parse_record(fields, DEFAULTS), spec)


@settings(max_examples=MANY * 3)
@given(data=DATA)
def test_a_file_of_any_bytes_is_accepted_or_rejected(data: bytes) -> None:
    def lines(given_: bytes) -> None:
        for _, fields in parse_document(given_, None):
            assert isinstance(fields, dict)

    def records(given_: bytes) -> None:
        for _ in open_records("-", io.BufferedReader(io.BytesIO(given_))):
            pass

    tried(lines, data)
    tried(records, data)
    tried(lambda given_: parse_pointer(given_, "queuectl.toml"), data)
    tried(lambda given_: parse_env_file(given_, subject="x"), data)


# Mostly of the right type: a wrong type is rejected before anything else is checked.
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
def test_a_policy_of_any_rules_is_accepted_or_rejected_and_decides_about_any_job(
    said: dict[str, Any], words: list[str], env: dict[str, str]
) -> None:
    def judge(given_: dict[str, Any]) -> None:
        policy = parse_policy(given_, subject="policy.toml")
        evaluator = Evaluator(policy, user=0, accounts=find_accounts(policy, "policy.toml"))
        for queue in ("mail", "other"):
            for argv in (None, words):
                request = Request(queue, None if argv else words[0], argv, words[-1], env, 1000)
                assert isinstance(evaluator.evaluate(request), (Decision, Refusal))
            evaluator.of(queue).seen(env, None)

    tried(judge, said)


@settings(max_examples=MANY)
@given(data=DATA)
def test_a_policy_of_any_bytes_is_accepted_or_rejected(data: bytes) -> None:
    tried(
        lambda given_: parse_policy(
            parse_toml(given_, "policy.toml", hint="see queuectl policy --help"), subject="policy.toml"
        ),
        data,
    )


@settings(max_examples=MANY * 3)
@given(said=st.dictionaries(st.sampled_from(["command", "timeout", "comand", "{name}"]), VALUES, max_size=3))
def test_a_configuration_of_secret_providers_is_accepted_or_rejected(said: dict[str, object]) -> None:
    tried(lambda given_: parse_provider(given_, subject="secrets.toml"), said)
    tried(lambda given_: parse_policy(given_, subject="policy.toml"), {"secrets": said.get("command")})


@settings(max_examples=MANY * 3)
@given(
    pieces=st.lists(st.one_of(st.sampled_from(["queue:", "-tag:", "state:dead", "since:", '"', "\\", ",", " "]), TEXTS))
)
def test_a_query_of_any_text_is_accepted_or_rejected(pieces: list[str]) -> None:
    tried(lambda text: query_of(parse_filter(query=text, now_ms=lambda: 0)), "".join(pieces))


@settings(max_examples=MANY)
@given(data=DATA)
def test_a_request_body_of_any_bytes_is_accepted_or_rejected(data: bytes) -> None:
    tried(parse_body, data)


@settings(max_examples=MANY)
@given(spec=SPECS)
def test_any_json_value_is_parsed_unchanged_or_rejected(spec: dict[str, object]) -> None:
    text = json.dumps(spec)
    tried(lambda given_: repr(parse_json(given_)) == repr(json.loads(given_)) or pytest.fail(given_), text)


@settings(max_examples=MANY * 3)
@given(
    lines=st.lists(
        st.sampled_from(["A=", "export B=", "'", '"', "\\", "\n", "#", " ", "x", "$", "\r\n", "="]), max_size=20
    )
)
def test_a_file_of_variables_of_any_text_is_accepted_or_rejected(lines: list[str]) -> None:
    tried(lambda given_: parse_env_file(given_, subject="x"), "".join(lines).encode())


@settings(max_examples=MANY)
@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r'"), max_size=40))
def test_text_between_single_quotes_is_the_value(value: str) -> None:
    assert parse_env_file(f"A='{value}'\n".encode(), subject="x") == {"A": value}
