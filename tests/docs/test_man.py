"""Man pages and `queuectl help` topics are up to date and valid."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from docs import generate, man, topics
from queuectl.cli.commands import COMMANDS
from tests.needs import require

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "man").glob("*.1"))


def test_all_that_is_made_is_up_to_date() -> None:
    found = [*generate.stale(generate.everything(), is_check=True), *generate.stale(generate.readable(), is_check=True)]
    assert not found, "scripts/docs"


def test_every_command_has_its_page() -> None:
    assert {path.name for path in PAGES} == {
        "queuectl.1",
        *(f"queuectl-{name}.1" for name, entry in COMMANDS.items() if not entry.hidden),
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_groff_finds_nothing_wrong_with_a_page(path: Path) -> None:
    require("groff", shutil.which("groff"), "it reads man pages")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", path], capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "SYNOPSIS" in done.stdout


@pytest.mark.parametrize(
    "text, shown",
    [
        (".SH not a section", ".SH not a section"),
        ("'br neither", "'br neither"),
        (r"a \n and \fB stay", r"a \n and \fB stay"),
        ("--count 'x' \"y\" `z` ~ ^", "--count 'x' \"y\" `z` ~ ^"),
        ("żółw … “quoted”", "żółw … “quoted”"),
    ],
)
def test_any_text_is_shown_as_it_is(text: str, shown: str, tmp_path: Path) -> None:
    require("groff", shutil.which("groff"), "it reads man pages")
    page = tmp_path / "x.1"
    page.write_text(f'.TH "X" "1"\n.SH NAME\n{man.escaped(text)}\n')
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", page], capture_output=True, text=True, timeout=50
    )
    assert shown in done.stdout


def test_a_page_becomes_plain_text() -> None:
    page = "# A *title*\n\nSome `code` and a [link](x.md),\nwrapped.\n\n- one\n  more\n- **two**\n\n| a | b |\n| --- | --- |\n| `x\\|y` | z |\n\n```sh\nrun  this\n```\n"
    expected = "A *title*\n=========\n\nSome code and a link, wrapped.\n\n- one more\n- two\n\n  a    b\n  x|y  z\n\n    run  this\n"
    assert topics.plain(page) == expected


def test_a_table_is_aligned_and_its_wide_column_is_wrapped() -> None:
    text = "long " * 20
    lines = list(topics.table([["option", "meaning"], ["`--x`", text.strip()], ["--longer", "short"]]))
    assert lines[0] == "  option    meaning"
    assert lines[1].startswith("  `--x`     long")
    assert lines[2].startswith("            long")
    assert lines[-1] == "  --longer  short"
    assert all(len(line) <= topics.WIDTH for line in lines)


def test_a_table_with_too_many_columns_is_a_list() -> None:
    titles = ["tool", *"abcdef"]
    lines = list(topics.table([titles, ["pueue", *("a long text about it",) * 6]]))
    assert lines[:2] == ["  pueue", "    a: a long text about it"]
