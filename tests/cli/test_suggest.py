"""Unknown commands and options: what the user meant, in one line."""

from __future__ import annotations

import click
import pytest

from queuectl.cli.command import LazyGroup
from queuectl.cli.commands import root
from queuectl.cli.errors import COMMANDS
from tests.program import Program


@pytest.mark.parametrize(
    "typed, hint",
    [
        (("ps",), "use: queuectl list, or: queuectl worker list"),
        (("start",), "use: queuectl worker start"),
        (("stop",), "use: queuectl cancel ID, or: queuectl worker stop"),
        (("rm", "x"), "use: queuectl db prune ID, or: queuectl dlq purge ID"),
        (("tail", "x"), "use: queuectl logs -f ID"),
        (("jobs",), "use: queuectl list"),
        (("Workers",), "use: queuectl worker list"),
        (("version",), "use: queuectl --version"),
        (("worker", "run"), "use: queuectl worker start"),
        (("schedule", "rm", "x"), "use: queuectl cron remove NAME"),
        (("enqeue",), "did you mean 'enqueue'? queuectl --help lists the commands"),
        (("dlq", "lst"), "did you mean 'list'? queuectl dlq --help lists the commands"),
        (("xyzzy",), "queuectl --help lists the commands"),
    ],
    ids=str,
)
def test_an_unknown_command_suggests_what_the_user_meant(queuectl: Program, typed: tuple[str, ...], hint: str) -> None:
    refused = queuectl(*typed, check=2)
    assert (refused.out, refused.err.splitlines()[1]) == ("", f"hint: {hint}")


def test_every_suggestion_is_a_command_and_no_synonym_hides_one() -> None:
    for path, synonyms in COMMANDS.items():
        group = _find(path.split()[1:])
        assert isinstance(group, LazyGroup)
        assert not set(synonyms) & ({*group.table} | {*group.aliases})
        for hint in synonyms.values():
            for line in hint.split(", or: "):
                named = line.partition(",")[0].split()[1:]
                _find([word for word in named if word.islower() and not word.startswith("-")])


def _find(path: list[str]) -> click.Command:
    found: click.Command = root
    for name in path:
        assert isinstance(found, LazyGroup)
        command = found.get_command(click.Context(found), name)
        assert command is not None, path
        found = command
    return found


@pytest.mark.parametrize(
    "typed, hint",
    [
        (("enqueue", "--retires", "5", "true"), "did you mean --max-attempts?"),
        (("enqueue", "--priorty", "5", "true"), "did you mean --priority?"),
        (("list", "--jsn"), "did you mean --json?"),
        (("enqueue", "--wait", "true"), "use: queuectl run COMMAND"),
        (("run", "--detach", "true"), "use: queuectl enqueue COMMAND"),
        (("cancel", "--all"), "use: --state pending,failed,processing"),
        (("list", "--status", "dead"), "use: --state"),
        (("worker", "start", "--workers", "3"), "use: --count"),
        (("list", "--bogus"), "queuectl list --help lists the options"),
    ],
    ids=str,
)
def test_an_unknown_option_suggests_the_best_match_only(queuectl: Program, typed: tuple[str, ...], hint: str) -> None:
    assert queuectl(*typed, check=2).err.splitlines()[1] == f"hint: {hint}"
