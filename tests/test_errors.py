"""The errors and the facts that they are built from."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from queuectl import errors
from queuectl.errors import QueuectlError
from queuectl.errors import jobs as job_errors
from queuectl.errors import store as store_errors

SOURCE = Path(__file__).parent.parent / "src" / "queuectl"
KINDS = {
    name: kind
    for module in (errors, job_errors, store_errors)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, QueuectlError) and kind.__init__ is QueuectlError.__init__
}


def facts_of(kind: type[QueuectlError]) -> int:
    """The number of facts that the message and the hint need."""
    numbers = [0]
    for form in (kind.template, kind.default_hint):
        fields = [field for _, field, _, _ in Formatter().parse(form) if field is not None]
        numbers += [int(field or at) + 1 for at, field in enumerate(fields)]
    return max(numbers)


def name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@cache
def calls() -> list[tuple[str, ast.Call, type[QueuectlError]]]:
    texts = {path: path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    return [
        (f"{path.relative_to(SOURCE)}:{node.lineno}", node, kind)
        for path, text in texts.items()
        if any(f"{name}(" in text for name in KINDS)  # the others need not be parsed, which takes long
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and (kind := KINDS.get(name_of(node.func)))
    ]


def test_every_error_is_built_from_the_facts_of_its_message() -> None:
    found = [(place, call, kind) for place, call, kind in calls() if not any(map(is_starred, call.args))]
    assert len(found) > 100
    assert not [place for place, call, kind in found if len(call.args) != facts_of(kind)]


def is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def test_an_error_without_a_hint_of_its_own_is_given_one() -> None:
    own = {kind for kind in KINDS.values() if kind.default_hint != QueuectlError.default_hint}
    assert not [
        place
        for place, call, kind in calls()
        if kind not in own and "hint" not in {keyword.arg for keyword in call.keywords}
    ]


@pytest.mark.parametrize(
    "error, message, hint",
    [
        (errors.JobNotFound("a"), "no job 'a'", "see all jobs: queuectl list"),
        (
            errors.BatchDiffers("b"),
            "the batch 'b' has another --on-complete",
            "omit it, or see: queuectl batch show b",
        ),
        (errors.StoreFailed("{0}", "{}", hint="{}"), "the database {0} failed: {}", "{}"),
        (errors.TooManySlots(2_000, 1_000), "the limit of open files allows a worker 1,000 slots, not 2,000", None),
    ],
)
def test_message_and_hint_hold_the_facts_as_they_are(error: QueuectlError, message: str, hint: str | None) -> None:
    assert error.message == str(error) == message
    assert hint is None or error.hint == hint
