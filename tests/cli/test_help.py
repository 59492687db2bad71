"""queuectl help: topics and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.cli.commands.help import RENAMED_TOPICS, topic_names
from tests.program import Program


def test_help_alone_lists_the_topics(queuectl: Program, home: Path) -> None:
    lines = queuectl("help", check=0).lines
    assert any(line.startswith("  retries ") for line in lines)
    assert "timeouts" in queuectl("help", "--json", check=0).json
    assert not home.exists()


def test_a_topic_is_the_page_of_the_documentation_without_markup(queuectl: Program) -> None:
    text = queuectl("help", "retries", check=0).out
    assert text.startswith("Retries and backoff\n====")
    assert "](" not in text
    assert queuectl("help", "retries", "--json", check=0).json["text"] == text


def test_a_topic_is_found_by_its_name_before_0_9(queuectl: Program) -> None:
    for old, new in RENAMED_TOPICS.items():
        assert new in topic_names()
        assert old not in topic_names()
    assert queuectl("help", "not-twice", check=0).out == queuectl("help", "unique-jobs", check=0).out


@pytest.mark.parametrize("arguments", [("enqueue",), ("worker", "start")])
def test_help_of_a_command_is_its_own(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert queuectl("help", *arguments, check=0).out == queuectl(*arguments, "--help", check=0).out


@pytest.mark.parametrize("arguments", [("retrise",), ("../topics/json",), ("worker", "nothing"), ("show", "it")])
def test_an_unknown_topic_suggests_the_nearest(queuectl: Program, arguments: tuple[str, ...]) -> None:
    refused = queuectl("help", *arguments)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 2)
