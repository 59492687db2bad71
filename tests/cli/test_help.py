"""queuectl help: topics and commands, in the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program import Program


def test_help_alone_lists_the_topics(queuectl: Program, home: Path) -> None:
    lines = queuectl("help", check=0).lines
    assert any(line.startswith("  retry-policy ") for line in lines)
    assert "timeouts" in queuectl("help", "--json", check=0).json
    assert not home.exists()


def test_a_topic_is_the_page_of_the_documentation_without_its_marks(queuectl: Program) -> None:
    text = queuectl("help", "retry-policy", check=0).out
    assert text.startswith("How to choose a retry policy\n====")
    assert "](" not in text
    assert queuectl("help", "retry-policy", "--json", check=0).json["text"] == text


@pytest.mark.parametrize("words", [("enqueue",), ("worker", "start")])
def test_help_of_a_command_is_its_own(queuectl: Program, words: tuple[str, ...]) -> None:
    assert queuectl("help", *words, check=0).out == queuectl(*words, "--help", check=0).out


@pytest.mark.parametrize("words", [("retry-polcy",), ("../topics/json",), ("worker", "nothing"), ("show", "it")])
def test_what_there_is_not_is_refused_with_the_nearest(queuectl: Program, words: tuple[str, ...]) -> None:
    refused = queuectl("help", *words)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 2)
