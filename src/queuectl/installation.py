"""How this program was installed, and the commands that install an extra or repair it in the same way. Loaded on demand."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import Distribution, distributions, entry_points
from shlex import quote
from typing import Any, Final
from urllib.parse import unquote, urlsplit

DISTRIBUTION: Final = "queuectl-cli"
OTHER_DISTRIBUTION: Final = "queuectl"  # of other authors
ENTRY_POINT: Final = "queuectl.cli.main:main"  # another distribution has a program of this name, too
# Files in the virtual environments of the tools.
PIPX_FILE: Final = "pipx_metadata.json"
UV_TOOL_FILE: Final = "uv-receipt.toml"


def install_command(extra: str, *, prefix: str = sys.prefix, python: str = sys.executable) -> str:
    """The shell command that installs an extra: with pip in a checkout, pipx, uv tool or pip."""
    return _command(f"[{extra}]", "", prefix, python)


def conflict() -> Distribution | None:
    """The other program of this name on the package index, if it is installed in this environment."""
    return next((found for found in distributions(name=OTHER_DISTRIBUTION) if found.name == OTHER_DISTRIBUTION), None)


def repair_command(*, prefix: str = sys.prefix, python: str = sys.executable) -> str:
    """The shell command that removes the other program. Both have files of the same names, so this one is installed again."""
    install = _command("", " --force-reinstall --no-deps", prefix, python)
    is_tool = install.startswith(("pipx", "uv"))  # they make a new environment
    return install if is_tool else f"{quote(python)} -m pip uninstall --yes {OTHER_DISTRIBUTION} && {install}"


def _command(extra: str, options: str, prefix: str, python: str) -> str:
    installed = _distribution()
    name = DISTRIBUTION if installed is None else installed.name
    origin = {} if installed is None else _origin(installed)
    url = origin.get("url")
    if url and origin.get("dir_info", {}).get("editable"):
        folder = unquote(urlsplit(url).path)
        return (
            f"cd {quote(folder)} && {quote(python)} -m pip install{options} -e {quote(f'.{extra}') if extra else '.'}"
        )
    wanted = quote(f"{name}{extra} @ {url}" if url else f"{name}{extra}")
    if os.path.exists(os.path.join(prefix, PIPX_FILE)):
        return f"pipx install --force {wanted}"
    if os.path.exists(os.path.join(prefix, UV_TOOL_FILE)):
        return f"uv tool install --force {wanted}"
    return f"{quote(python)} -m pip install{options} {wanted}"


def _distribution() -> Distribution | None:
    """The installed distribution of this program; None if it runs from a source directory.

    Not packages_distributions of importlib: it does not find a package that was installed with pip install -e.
    """
    for script in entry_points(group="console_scripts", name="queuectl"):
        if script.value == ENTRY_POINT and script.dist is not None:
            return script.dist
    return None


def _origin(installed: Distribution) -> dict[str, Any]:
    """The origin of an installation that is not from a package index: see PEP 610."""
    text = installed.read_text("direct_url.json")
    origin: dict[str, Any] = json.loads(text) if text else {}
    return origin
