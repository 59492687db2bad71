"""The reference page of the Python API, from signatures and docstrings. See generate.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from textwrap import dedent

import queuectl
from queuectl.client import Queue
from queuectl.client_bulk import Schedules, Selection
from queuectl.jobs.model import Job

INTRODUCTION = """\
The public names of the package `queuectl`. For an introduction, see [Python API](../guides/python.md). Errors are classes of
`queuectl.errors`: see [errors](errors.md)."""
CLASSES = (
    (Queue, "Queue"),
    (Selection, "The result of Queue.select"),
    (Schedules, "Queue.schedules"),
)


def page() -> Iterator[str]:
    yield "# Python API reference"
    yield ""
    yield INTRODUCTION
    for kind, title in CLASSES:
        yield ""
        yield f"## {title}"
        yield ""
        yield from _class(kind)
    yield ""
    yield "## Job"
    yield ""
    yield from _docstring(Job)
    yield "Attributes: " + ", ".join(f"`{field.name}`" for field in fields(Job)) + "."
    yield ""
    yield "## read_env_file"
    yield ""
    yield from _function("read_env_file", queuectl.read_env_file)


def _class(kind: type[object]) -> Iterator[str]:
    yield from _docstring(kind)
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        yield f"### {kind.__name__}.{name}"
        yield ""
        if isinstance(member, property):
            yield from _docstring(member)
        else:
            yield from _function(name, member)


def _function(name: str, function: object) -> Iterator[str]:
    assert callable(function)
    yield "```python"
    yield _signature(name, function)
    yield "```"
    yield ""
    yield from _docstring(function)


def _signature(name: str, function: object) -> str:
    assert callable(function)
    signature = inspect.signature(function)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    text = f"{name}{signature.replace(parameters=kept)}".replace("'", "")
    if len(text) <= 100:
        return text
    lines = [f"    {str(parameter).replace(chr(39), '')}," for parameter in kept]
    first = next((at for at, one in enumerate(kept) if one.kind is one.KEYWORD_ONLY), None)
    if first is not None:
        lines.insert(first, "    *,")
    result = str(signature.return_annotation).replace("'", "")
    return "\n".join([f"{name}(", *lines, f") -> {result}"])


def _docstring(thing: object) -> Iterator[str]:
    """The docstring as Markdown: its examples become a code block."""
    text = dedent(inspect.getdoc(thing) or "")
    for block in re.split(r"\n\s*\n", text):
        if block.startswith(">>>"):
            yield from ("```pycon", block, "```", "")
        elif block:
            yield block
            yield ""
