"""Names, comments, messages and docs use the words of the trade. The list is in CONTRIBUTING.md, with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from queuectl.cli.command import GLOBAL_OPTIONS, LazyGroup
from queuectl.cli.commands import root

ROOT = Path(__file__).parent.parent
# Words without a good use here, as regular expressions for lower-case text in which identifiers are split at _ and at capitals.
BANNED = (
    "nobody",
    "somebody",
    "whoever",
    "whomever",
    "whom",
    "anew",
    "foundlings?",
    "heirs?",
    "farewells?",
    "bury|buries|buried|burying",
    "hush(?:es|ed)?",
    "keepers?",
    "relief",
    "tellers?",
    "lounges?",
    "uncharged",
    "in vain",
    "left away",
    "(?:leave|leaves|leaving)(?: \\w+){0,3} away",
    "made up if",
    "back to the line",
    "well said",
    "as things are",
    "in good hands",
    "(?:has|have|had) its say",
    "so (?:many|long)(?! (?:as|that)\\b)(?=[,.;:)]|$| (?:seconds|bytes|times|jobs|runs|slots|processes|descriptors|of)\\b)",
    "for want of",
    "call(?:s|ed|ing)? off",
    "give another chance",
    "the house",
)
FOLDERS = (".ci", "bench", "deploy", "docs", "man", "scripts", "src", "tests")
ENDINGS = ("", ".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".sql", ".toml", ".txt", ".yml", ".1")
PATTERN = re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.MULTILINE)
COME_IN_LABEL = re.compile(r">\s*come in\s*<", re.IGNORECASE)


def words(text: str) -> str:
    """The text in lower case, with identifiers split into their words: `has_heir` and `SupervisorGone` hold words, too."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.replace("_", " ")).lower()


@cache
def files() -> list[Path]:
    """Return the files to check. This needs no git, so that it also works in an unpacked source distribution."""
    found = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    return [
        path
        for path in found
        if path.suffix in ENDINGS and path.is_file() and "__pycache__" not in path.parts and path != Path(__file__)
    ]


def test_no_file_uses_a_banned_word() -> None:
    found = []
    for path in files():
        for number, line in enumerate(words(path.read_text("utf-8", "replace")).splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {match[0]}" for match in PATTERN.finditer(line)]
    assert not found, "\n".join(found[:100])


# ── help ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_HELP_CHARS = 60
MAX_SENTENCE_WORDS = 30
# A line of help starts with a verb or a noun, and none of these is one.
NOT_A_START = frozenset(
    {"a", "all", "also", "an", "as", "for", "how", "if", "in", "it", "its", "no", "not", "of", "only"}
    | {"same", "so", "that", "the", "these", "this", "to", "what", "when", "where", "whether", "which", "while"}
    | {"who", "why", "with", "without"}
)


def commands(group: LazyGroup = root, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Return every command and group with its path."""
    yield path, group
    for name in group.table:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


def help_lines() -> Iterator[tuple[str, str]]:
    """Return the help of every option, and the line of every command in the list of its group."""
    for option in GLOBAL_OPTIONS:
        yield option.opts[0], option.help or ""
    for path, command in commands():
        if isinstance(command, LazyGroup):
            yield from ((" ".join([*path, name]), entry.help) for name, entry in command.table.items())
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                yield " ".join([*path, param.opts[0]]), param.help or ""


def test_help_is_short_and_starts_with_a_verb_or_a_noun() -> None:
    wrong = [
        f"{where}: {text}"
        for where, text in help_lines()
        if not 0 < len(text) <= MAX_HELP_CHARS
        or not text[0].isupper()
        or not text.endswith((".", "!"))
        or re.split(r"\W", text.lower())[0] in NOT_A_START
    ]
    assert not wrong, "\n".join(wrong)


def test_the_help_of_a_command_has_short_sentences_without_banned_words() -> None:
    wrong = []
    for path, command in commands():
        page = command.get_help(click.Context(command, info_name=" ".join(["queuectl", *path])))
        wrong += [f"{' '.join(path)}: {match[0]}" for match in PATTERN.finditer(words(page))]
        for sentence in re.split(r"(?<=[.:?])\s+|\n\n", " ".join((command.help or "").split())):
            if len(sentence.split()) > MAX_SENTENCE_WORDS:
                wrong.append(f"{' '.join(path)}: {sentence}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [(), ("enqueue",), ("run",), ("cron", "add"), ("list",), ("worker", "start")])
def test_the_help_of_the_main_commands_fits_80_columns(path: tuple[str, ...]) -> None:
    command = dict(commands())[path]
    page = command.get_help(click.Context(command, info_name=" ".join(["queuectl", *path]), terminal_width=80))
    assert not [line for line in page.splitlines() if len(line) > 80]


def test_no_label_invites_people_to_come_in() -> None:
    templates = [path for path in files() if path.suffix == ".html"]
    assert templates
    assert not [path for path in templates if COME_IN_LABEL.search(path.read_text("utf-8"))]


@pytest.mark.parametrize(
    "text",
    [
        "a keeper",
        "class KeeperGone:",
        "def has_heir():",
        "leave it away",
        "Called off.",
        "at most so many.",
        "WHOM",
    ],
)
def test_a_banned_word_is_found_in_names_and_prose(text: str) -> None:
    assert PATTERN.search(words(text))


@pytest.mark.parametrize("text", ["timekeeper", "their", "so long as it runs", "called often", "the household"])
def test_a_word_that_only_contains_one_is_fine(text: str) -> None:
    assert not PATTERN.search(words(text))
