"""The variables of jobs, in words: --env, and --env-file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from queuectl.cli.app import App
from queuectl.errors import InvalidInput


def of_files(options: Mapping[str, Any], app: App) -> dict[str, str]:
    if not options["env_file"]:
        return {}
    from queuectl.cli.envfile import read_env_files  # here, since few have one, and enqueue has to be quick

    return read_env_files(options["env_file"], app, options)


def read_variables(texts: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """What --env says."""
    return dict(_variable(text, environ) for text in texts)


def _variable(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name:
        raise InvalidInput(
            "--env", f"names no variable: {text!r}", hint="like --env LANG=C, or --env LANG to hand it on"
        )
    if equals:
        return name, value
    if name not in environ:
        raise InvalidInput("--env", f"{name} is not set here", hint=f"give it a value: --env {name}=VALUE")
    return name, environ[name]
