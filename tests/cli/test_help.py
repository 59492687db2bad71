"""queuectl help: topics and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program import Program


def test_help_alone_lists_the_topics(queuectl: Program, home: Path) -> None:
    lines = queuectl("help", check=0).lines
    assert any(line.startswith("  retry-policy ") for line in lines)
    assert "timeouts" in queuectl("help", "--json", check=0).json
    assert not home.exists()


def test_a_topic_is_the_page_of_the_documentation_without_markup(queuectl: Program) -> None:
    text = queuectl("help", "retry-policy", check=0).out
    assert text.startswith("How to choose a retry policy\n====")
    assert "](" not in text
    assert queuectl("help", "retry-policy", "--json", check=0).json["text"] == text


@pytest.mark.parametrize("arguments", [("enqueue",), ("worker", "start")])
def test_help_of_a_command_is_its_own(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert queuectl("help", *arguments, check=0).out == queuectl(*arguments, "--help", check=0).out


@pytest.mark.parametrize("arguments", [("retry-polcy",), ("../topics/json",), ("worker", "nothing"), ("show", "it")])
def test_an_unknown_topic_suggests_the_nearest(queuectl: Program, arguments: tuple[str, ...]) -> None:
    refused = queuectl("help", *arguments)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 2)
