"""The guarantees and security pages name the tests of each claim, and these tests exist."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, read, section

PAGE = read("docs/reference/guarantees.md")
FILE = re.compile(r"`((?:tests|bench)/[\w/.]+)`")


def test_every_file_that_a_guarantee_names_exists() -> None:
    named = set(FILE.findall(PAGE))
    assert len(named) > 50
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_every_promise_says_how_it_is_tested_and_what_is_not_promised() -> None:
    promises = re.findall(r"^### (\d\. .+)$", PAGE, re.MULTILINE)
    assert [title[0] for title in promises] == list("1234567")
    for title in promises:
        text = section(PAGE, title)
        assert FILE.search(text), title
        assert "**Not promised**" in text, title


def test_every_class_of_failure_has_a_test_or_a_reason_why_it_cannot_happen() -> None:
    rows = [
        line
        for title in ("On one machine", "With a database")
        for line in section(PAGE, title).splitlines()
        if line.startswith("| ") and "---" not in line and "what goes wrong" not in line
    ]
    assert len(rows) > 50
    assert not [row for row in rows if not FILE.search(row) and "cannot happen: " not in row]


def test_every_module_of_real_faults_holds_a_guarantee() -> None:
    modules = {f"tests/e2e/{path.name}" for path in (ROOT / "tests" / "e2e").glob("test_faults*.py")}
    assert modules
    assert modules <= set(FILE.findall(PAGE))


def test_every_claim_about_security_names_a_test_that_exists() -> None:
    page = read("docs/explanation/security.md")
    named = set(FILE.findall(page))
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]
    claims = re.split(r"^- ", section(page, "Security guarantees"), flags=re.MULTILINE)[1:]
    assert len(claims) > 5
    assert not [claim for claim in claims if not FILE.search(claim)]
    rows = [line for line in section(page, "File permissions").splitlines() if line.startswith("| ")][2:]
    assert rows
    assert not [row for row in rows if not FILE.search(row)]
