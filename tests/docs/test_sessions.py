"""The terminal sessions in the pages have the real output."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.console import Step, agrees, play, session_environment, steps
from tests.docs.pages import PAGES, ROOT, name, read
from tests.docs.relay import forks
from tests.program import Leftovers, WorkerProcess

SESSIONS = [name(path) for path in PAGES if steps(path.read_text("utf-8"))]
# The data directory of a page, if it is not ~/.queuectl.
HOMES = {"docs/get-started/tutorial.md": "tutorial/home"}


def difference(step: Step, really: object) -> str:
    return f"line {step.line}: $ {step.command}\n  the page: {step.shown} (exit {step.status})\n  really:   {really}"


@pytest.mark.parametrize("page", SESSIONS)
def test_the_sessions_of_a_page_go_as_it_shows(page: str, tmp_path: Path) -> None:
    session = steps(read(page))
    played = play([step.command for step in session], tmp_path)
    assert len(played) == len(session), f"the shell ended after: {session[len(played) - 1].command}"
    wrong = [
        difference(step, really)
        for step, really in zip(session, played, strict=True)
        if step.status != really.status or not agrees(step.shown, really.shown)
    ]
    assert not wrong, f"{page}\n" + "\n".join(wrong)
    Leftovers(tmp_path / HOMES.get(page, ".queuectl")).wait_until_none()


def test_the_pages_that_teach_have_sessions() -> None:
    assert {"README.md", "docs/get-started/tutorial.md", "docs/guides/inspect.md"} <= set(SESSIONS)


def test_the_python_session_of_its_page_goes_as_it_shows(
    home: Path, start_worker: Callable[..., WorkerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    start_worker("--count", "2")
    monkeypatch.setenv("QUEUECTL_HOME", str(home))
    text = read("docs/guides/python.md")
    session = doctest.DocTestParser().get_doctest(text, {}, "use-from-python.md", None, 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(session, out=report.append)
    assert session.examples
    assert not report, "".join(report)


# ── tests of the session runner ──────────────────────────────────────────────────────


def test_a_session_is_read_with_its_lines_outputs_and_status() -> None:
    page = "text\n\n```console\n$ cat <<END\n> a\n> END\na\n$ false\n(exit 1)\n```\n```sh\n$ not this\n```\n"
    assert steps(page) == [Step(4, "cat <<END\na\nEND", ["a"], 0), Step(8, "false", [], 1)]


@pytest.mark.parametrize(
    "shown, really",
    [
        (["a", "…", "z"], ["a", "b", "c", "z"]),
        (["a", "…"], ["a"]),
        (["in … seconds"], ["in 3 seconds"]),
        (["21:05:12 done  in 3ms"], ["08:00:59 done in 1.25s"]),
        (["x  2s ago"], ["x     now"]),
        (["queued k9z8y7x6w5"], ["queued a1b2c3d4e5"]),
    ],
)
def test_what_differs_from_time_to_time_agrees(shown: list[str], really: list[str]) -> None:
    assert agrees(shown, really)


@pytest.mark.parametrize(
    "shown, really",
    [([], ["a"]), (["a"], []), (["a"], ["a", "b"]), (["a", "…", "z"], ["a", "b"]), (["exit 1"], ["exit 2"])],
)
def test_what_really_differs_does_not_agree(shown: list[str], really: list[str]) -> None:
    assert not agrees(shown, really)


def test_a_session_is_one_shell_on_a_terminal(tmp_path: Path) -> None:
    commands = [
        "cd /; x=5",
        "echo $PWD $x",
        "test -t 1; echo $?",
        "printf 'a\\rb\\n'; printf 'bar\\r\\033[Kgone\\n'",
        "false",
    ]
    played = play(commands, tmp_path)
    assert [(one.shown, one.status) for one in played] == [
        ([], 0),
        (["/ 5"], 0),
        (["0"], 0),
        (["b", "gone"], 0),
        ([], 1),
    ]


def test_no_command_of_a_page_waits_for_an_interpreter_to_start(tmp_path: Path) -> None:
    assert forks(session_environment(tmp_path))


def test_every_page_with_a_session_is_played() -> None:
    fenced = {
        name(path) for path in ROOT.glob("**/*.md") if ".venv" not in path.parts and "```console" in path.read_text()
    }
    assert fenced == set(SESSIONS)
