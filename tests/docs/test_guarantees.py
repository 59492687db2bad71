"""Each guarantee and each security claim has tests, on a page of its own, and these tests exist."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, read, section

GUARANTEES = read("docs/reference/guarantees.md")
SECURITY = read("docs/guides/security.md")
PAGE = read("docs/internals/how-guarantees-are-tested.md")
FILE = re.compile(r"`((?:tests|bench)/[\w/.]+)`")


def rows(text: str) -> list[str]:
    """Return the rows of the tables in the text, without titles."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [
        line for at, line in enumerate(lines) if not (lines[at + 1 :] and "---" in lines[at + 1]) and "---" not in line
    ]


def first_cells(text: str) -> list[str]:
    return [row.split("|")[1].strip() for row in rows(text)]


def test_every_file_that_the_page_names_exists() -> None:
    named = set(FILE.findall(PAGE))
    assert len(named) > 50
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_every_promise_has_tests_and_says_what_is_not_promised() -> None:
    promises = re.findall(r"^### (\d\. .+)$", GUARANTEES, re.MULTILINE)
    assert [title[0] for title in promises] == list("1234567")
    assert first_cells(section(PAGE, "Promises")) == promises
    assert all(FILE.search(row) or "(#faults)" in row for row in rows(section(PAGE, "Promises")))
    assert all("**Not promised**" in section(GUARANTEES, title) for title in promises)


def test_every_fault_has_tests() -> None:
    faults = first_cells(section(GUARANTEES, "5. Faults are reported and recovered from"))
    assert faults
    assert set(faults) <= set(first_cells(section(PAGE, "Faults")))
    assert all(FILE.search(row) for row in rows(section(PAGE, "Faults") + section(PAGE, "Other guarantees")))


def test_every_class_of_failure_has_a_test_or_a_reason_why_it_cannot_happen() -> None:
    found = [*rows(section(PAGE, "On one machine")), *rows(section(PAGE, "With a database"))]
    assert len(found) > 50
    assert not [row for row in found if not FILE.search(row) and "cannot happen: " not in row]


def test_every_module_of_real_faults_holds_a_guarantee() -> None:
    modules = {f"tests/e2e/{path.name}" for path in (ROOT / "tests" / "e2e").glob("test_faults*.py")}
    assert modules
    assert modules <= set(FILE.findall(PAGE))


def test_every_claim_about_security_has_tests() -> None:
    claims = re.findall(r"^- \*\*(.+?)\.?\*\*", section(SECURITY, "Security guarantees"), re.MULTILINE)
    assert len(claims) > 5
    assert first_cells(section(PAGE, "Claims")) == claims
    assert all(FILE.search(row) for row in rows(section(PAGE, "Claims")))


def test_every_file_with_permissions_has_tests() -> None:
    files = first_cells(section(SECURITY, "File permissions"))
    assert files
    assert first_cells(section(PAGE, "File permissions")) == files
    assert all(FILE.search(row) for row in rows(section(PAGE, "File permissions")))
