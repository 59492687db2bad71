"""Names, comments, messages and docs use the words of the trade. The list is in CONTRIBUTING.md, with what to write instead."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

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
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *FOLDERS, "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    paths = [ROOT / name for name in listed]
    return [path for path in paths if path.suffix in ENDINGS and path.is_file() and path != Path(__file__)]


def test_no_file_uses_a_banned_word() -> None:
    found = []
    for path in files():
        for number, line in enumerate(words(path.read_text("utf-8", "replace")).splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {match[0]}" for match in PATTERN.finditer(line)]
    assert not found, "\n".join(found[:100])


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
