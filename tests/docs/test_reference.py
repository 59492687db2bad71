"""The reference pages match the code: generated pages are up to date, hand-written ones are compared with it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from docs import generate
from queuectl import errors
from queuectl import paths as places
from queuectl.cli import errors as cli_errors
from queuectl.jobs.outcome import Ending
from queuectl.jobs.spec import _FIELDS
from queuectl.settings import KEYS
from queuectl.text import WEBHOOK_QUEUE
from tests.docs.pages import ROOT, first_column, name, read, section
from tests.program import Program, WorkerProcess

# ── generated from the code ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", generate.PAGES)
def test_a_generated_page_is_up_to_date(page: str) -> None:
    assert read(f"docs/reference/{page}") == generate.page(page), "run scripts/docs"


def test_a_name_without_a_text_is_an_error() -> None:
    with pytest.raises(generate.Gap, match="no text for b"):
        generate.texts_for(["a", "b"], {"a": "…"}, where="here")
    with pytest.raises(generate.Gap, match="does not exist: b"):
        generate.texts_for(["a"], {"a": "…", "b": "…"}, where="here")


def test_every_command_has_its_section() -> None:
    headings = set(re.findall(r"^#+ (queuectl .+)$", read("docs/reference/commands.md"), re.MULTILINE))
    assert headings == {f"queuectl {' '.join(path)}" for path, _ in generate.all_commands()}


def test_every_option_of_a_command_is_in_its_section() -> None:
    page = read("docs/reference/commands.md")
    for path, command in generate.all_commands():
        text = section(page, f"queuectl {' '.join(path)}")
        shown = [name for param in command.own_params if not getattr(param, "hidden", False) for name in param.opts]
        assert all(name in text for name in shown if name.startswith("-"))


def test_every_error_code_is_explained() -> None:
    listed = first_column(read("docs/reference/errors.md"))
    assert listed == [kind.code for kind in generate.all_errors()][1:]


def test_every_error_but_those_of_the_command_line_is_found_in_one_place() -> None:
    for kind in generate.all_errors():
        if not kind.__module__.startswith("queuectl.cli"):
            assert getattr(errors, kind.__name__) is kind


def test_a_name_that_no_error_has_is_refused() -> None:
    assert not hasattr(errors, "NoSuchError")


def test_every_setting_has_its_section() -> None:
    page = read("docs/reference/configuration.md")
    assert all(f"## {key.name}\n" in page for key in KEYS)


# ── written, and compared ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page, title", [("README.md", "Install"), ("docs/get-started/installation.md", "Extras")])
def test_every_extra_is_named(page: str, title: str) -> None:
    extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    assert sorted(first_column(section(read(page), title))) == sorted(extras)


INSTALLS_OTHER_PROJECT = re.compile(
    r"\b(?:pipx?|uv tool|uv pip) (?:install|upgrade|inject|run)(?: -\S+)* ['\"]?queuectl(?![\w-])|\buvx queuectl(?![\w-])"
)


def test_no_text_installs_the_other_queuectl_of_the_package_index() -> None:
    texts = [file for folder in ("docs", "src", "man", "deploy", "bench") for file in (ROOT / folder).rglob("*")]
    for file in [*texts, *ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        if file.is_file() and file.suffix not in (".pyc", ".png"):
            found = INSTALLS_OTHER_PROJECT.findall(file.read_text("utf-8"))
            assert not found, f"{name(file)}: {found}"


@pytest.mark.parametrize(
    "text, is_other",
    [
        ("pip install queuectl", True),
        ("pip install --upgrade 'queuectl[tui]'", True),
        ("pipx install queuectl", True),
        ("uv tool install queuectl", True),
        ("uvx queuectl demo", True),
        ("pipx install dist/queuectl_cli-0.9.0-py3-none-any.whl", False),
        ("pip install '.[tui]'", False),
        ("pip uninstall queuectl-cli", False),
    ],
)
def test_an_instruction_to_install_the_other_project_is_found(text: str, is_other: bool) -> None:
    assert bool(INSTALLS_OTHER_PROJECT.search(text)) == is_other


def test_the_distribution_has_a_name_of_its_own() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert project["name"] == "queuectl-cli"
    assert project["scripts"] == {"queuectl": "queuectl.cli.main:main"}
    for page in ("README.md", "docs/get-started/installation.md"):
        assert "`queuectl-cli`" in read(page)
        assert "another project" in read(page)


def test_the_page_about_the_environment_names_the_queue_of_webhooks() -> None:
    variables = [line for line in read("docs/reference/environment.md").splitlines() if "QUEUECTL_WEBHOOK_URL" in line]
    assert variables
    assert all(f"`{WEBHOOK_QUEUE}`" in line for line in variables)


def test_the_fields_of_jobs_runs_and_workers_are_those_of_the_page(
    queuectl: Program, start_worker: Callable[..., WorkerProcess]
) -> None:
    page = read("docs/reference/json.md")
    start_worker()
    job = queuectl("run", "--json", "true", check=0).json
    assert first_column(section(page, "A job")) == list(job)
    assert first_column(section(page, "A run")) == list(job["history"][0])
    (worker,) = queuectl("worker", "list", "--json", check=0).json
    assert first_column(section(page, "A worker")) == list(worker)
    shapes = section(page, "What each command prints")
    for command in ("status", "metrics"):
        row = next(line for line in shapes.splitlines() if line.startswith(f"| `{command}` |"))
        named = set(re.findall(r"[a-z_0-9]+", row))
        answer = queuectl(command, "--json", check=0).json
        inner = {name for value in answer.values() if isinstance(value, dict) for name in value} - set(answer["states"])
        assert (set(answer) | inner) - {"default"} <= named


def test_the_fields_that_enqueue_accepts_are_those_of_the_page() -> None:
    text = section(read("docs/reference/json.md"), "What enqueue accepts")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for cell in row.split("|")[1:3] for name in re.findall(r"`(\w+)`", cell)}
    ignored = set(re.findall(r"`(\w+)`", text.split("Records of other tools", 1)[1].split(":")[0]))
    assert named | ignored == set(_FIELDS)


def test_every_outcome_of_a_run_is_named() -> None:
    (row,) = [line for line in read("docs/reference/json.md").splitlines() if line.startswith("| `outcome`")]
    assert re.findall(r"`([a-z ]+)`", row)[1].split() == [ending.value for ending in Ending]


def test_a_job_finds_the_variables_of_the_page(queuectl: Program) -> None:
    store = queuectl.home / "elsewhere.db"
    queuectl("enqueue", "--db", store, "--id", "first", "true", check=0)
    queuectl("enqueue", "--db", store, "--id", "env", "--after", "first", "env", check=0)
    queuectl("worker", "start", "--db", store, "--drain", check=0)
    found = re.findall(r"^(QUEUECTL_\w+)=", queuectl("logs", "--db", store, "env", check=0).out, re.MULTILINE)
    assert sorted(found) == sorted(
        first_column(section(read("docs/reference/environment.md"), "Environment variables"))
    )


def test_the_files_of_a_home_are_those_of_the_page() -> None:
    listed = first_column(read("docs/reference/data-directory.md"))
    files = (places.store_file, places.logs, places.backups)
    of_workers = (places.lock_file, places.wakeup_file, places.runs_file, places.worker_log)
    names = [file("") for file in files] + [file("", "NAME") for file in of_workers]
    assert not [name for name in names if not any(path.startswith(name) for path in listed)]


def test_every_exit_status_is_named() -> None:
    listed = read("docs/reference/exit-codes.md")
    codes = {value for name, value in vars(cli_errors).items() if name.isupper() and isinstance(value, int)}
    assert not [code for code in codes if f"| {code} |" not in listed]


def test_every_decision_is_in_the_index() -> None:
    index = read("docs/internals/adr/README.md")
    folder = Path(generate.__file__).parent / "adr"
    for path in sorted(folder.glob("0*.md")):
        title = path.read_text("utf-8").splitlines()[0].removeprefix("# ")
        number, _, words = title.partition(". ")
        assert f"| [{number}]({path.name}) | {words} |" in index
        body = path.read_text("utf-8").partition("\n\n")[2]
        if body.startswith("Superseded by "):
            assert len(body.splitlines()) == 1, path.name
            continue
        parts = ("Context", "Decision", "Consequences", "Alternatives considered")
        assert all(f"**{part}.**" in body for part in parts), path.name
