"""queuectl help: topics and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.cli.commands.help import RENAMED_TOPICS, topic_names
from tests.program import Program


def test_help_alone_lists_commands_and_topics(queuectl: Program, home: Path) -> None:
    lines = queuectl("help", check=0).lines
    assert any(line.startswith("  enqueue ") for line in lines)
    assert any(line.startswith("  release ") for line in lines)  # also those that --help leaves out
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


def test_the_help_of_the_program_fits_60_lines_in_five_groups(queuectl: Program) -> None:
    lines = queuectl("--help", check=0).lines
    assert len(lines) <= 60
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[:5] == [
        "Start here:",
        "Jobs:",
        "Queues, batches and schedules:",
        "Monitor:",
        "Administer:",
    ]
    first, last = lines.index("Start here:"), lines.index("Options of every command:")
    assert len([line for line in lines[first:last] if line.startswith("  ")]) == 31


@pytest.mark.parametrize("arguments", [("enqueue",), ("run",), ("cron", "add")], ids=" ".join)
def test_the_help_about_jobs_begins_with_examples_and_groups_its_options(
    queuectl: Program, arguments: tuple[str, ...]
) -> None:
    lines = queuectl(*arguments, "--help", check=0).lines
    assert any(line.startswith(f"  queuectl {' '.join(arguments)} ") for line in lines[:12])
    headings = ["Job:", "Schedule:", "Retries and timeout:", "Limits:", "Environment:", "Webhooks:"]
    at = [lines.index(heading) for heading in ["Examples:", *headings, "Options of every command:"]]
    assert at == sorted(at)
    assert max(map(len, lines)) <= 80
    assert "(default: 3)" in "\n".join(lines)


@pytest.mark.parametrize("arguments", [("enqueue",), ("worker", "start")])
def test_help_of_a_command_is_its_own(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert queuectl("help", *arguments, check=0).out == queuectl(*arguments, "--help", check=0).out


@pytest.mark.parametrize("arguments", [("retrise",), ("../topics/json",), ("worker", "nothing"), ("show", "it")])
def test_an_unknown_topic_suggests_the_nearest(queuectl: Program, arguments: tuple[str, ...]) -> None:
    refused = queuectl("help", *arguments)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 2)
