"""The command that installs an extra fits the way in which the program was installed."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.installation import ENTRY_POINT, PIPX_FILE, UV_TOOL_FILE, install_command, repair_command

ROOT = Path(__file__).parent.parent


def install_tui(**where: str) -> str:
    return install_command("tui", **where)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return the command for an installation with this origin, into an environment with this file."""

    def make(
        origin: dict[str, object] | None,
        file: str | None = None,
        command: Callable[..., str] = install_tui,
    ) -> str:
        site, prefix = tmp_path / "site", tmp_path / "prefix"
        info = site / "queuectl_cli-0.9.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.4\nName: queuectl-cli\nVersion: 0.9.0\n")
        (info / "entry_points.txt").write_text(f"[console_scripts]\nqueuectl = {ENTRY_POINT}\n")
        if origin is not None:
            (info / "direct_url.json").write_text(json.dumps(origin))
        prefix.mkdir()
        if file is not None:
            (prefix / file).write_text("")
        monkeypatch.syspath_prepend(site)
        return command(prefix=str(prefix), python="/venv/bin/python")

    return make


REINSTALL = "/venv/bin/python -m pip install --force-reinstall --no-deps"
WHEEL = {"url": "file:///dist/queuectl_cli-0.9.0-py3-none-any.whl", "archive_info": {}}


@pytest.mark.parametrize(
    "origin, file, expected",
    [
        (
            {"url": "file:///src/my%20queuectl", "dir_info": {"editable": True}},
            None,
            "cd '/src/my queuectl' && /venv/bin/python -m pip install -e '.[tui]'",
        ),
        (None, None, "/venv/bin/python -m pip install 'queuectl-cli[tui]'"),
        (WHEEL, None, f"/venv/bin/python -m pip install 'queuectl-cli[tui] @ {WHEEL['url']}'"),
        (None, PIPX_FILE, "pipx install --force 'queuectl-cli[tui]'"),
        (WHEEL, PIPX_FILE, f"pipx install --force 'queuectl-cli[tui] @ {WHEEL['url']}'"),
        (None, UV_TOOL_FILE, "uv tool install --force 'queuectl-cli[tui]'"),
    ],
    ids=["checkout", "pip", "wheel", "pipx", "pipx with a wheel", "uv tool"],
)
def test_an_extra_is_installed_in_the_same_way_as_the_program(
    installed: Callable[..., str], origin: dict[str, object] | None, file: str | None, expected: str
) -> None:
    assert installed(origin, file) == expected
    assert shlex.split(expected)  # it can be pasted


@pytest.mark.parametrize(
    "origin, file, expected",
    [
        ({"url": "file:///src/q", "dir_info": {"editable": True}}, None, f"cd /src/q && {REINSTALL} -e ."),
        (None, None, f"{REINSTALL} queuectl-cli"),
        (WHEEL, None, f"{REINSTALL} 'queuectl-cli @ {WHEEL['url']}'"),
        (None, PIPX_FILE, "pipx install --force queuectl-cli"),
        (None, UV_TOOL_FILE, "uv tool install --force queuectl-cli"),
    ],
    ids=["checkout", "pip", "wheel", "pipx", "uv tool"],
)
def test_another_program_of_this_name_is_removed_and_this_one_installed_again(
    installed: Callable[..., str], origin: dict[str, object] | None, file: str | None, expected: str
) -> None:
    prefix = "" if file else "/venv/bin/python -m pip uninstall --yes queuectl && "
    assert installed(origin, file, command=repair_command) == prefix + expected
    assert shlex.split(expected)  # it can be pasted


def test_a_program_that_is_not_installed_names_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.installation.entry_points", lambda **_: ())
    assert install_command("tui", prefix="/none", python="python3") == "python3 -m pip install 'queuectl-cli[tui]'"


def test_the_entry_point_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"queuectl": ENTRY_POINT}
