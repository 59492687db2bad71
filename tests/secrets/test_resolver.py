from __future__ import annotations

from typing import Any

import pytest

from queuectl.errors import InvalidInput, UnknownName
from queuectl.secrets.resolver import Provider, parse_provider


def provider(**tables: Any) -> Provider:
    return parse_provider(tables, subject="secrets.toml")


def test_the_name_replaces_the_placeholder_in_the_arguments() -> None:
    found = provider(command=["pass", "show", "work/{name}"])
    assert found.argv("db") == ["pass", "show", "work/db"]
    assert found.timeout_ms == 10_000
    assert provider(command=["x", "{name}"], timeout="1m").timeout_ms == 60_000


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"command": "pass show {name}"},
        {"command": []},
        {"command": ["pass", 1, "{name}"]},
        {"command": ["pass", "a\0{name}"]},
        {"command": ["", "{name}"]},
        {"command": ["{name}"]},
        {"command": ["{name}", "{name}"]},
        {"command": ["pass", "show"]},
        {"command": ["pass", "{name}"], "timeout": 0},
        {"command": ["pass", "{name}"], "timeout": "6m"},
        {"command": ["pass", "{name}"], "timeout": []},
    ],
)
def test_an_invalid_provider_is_refused(tables: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^secrets\.toml: "):
        provider(**tables)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(UnknownName):
        provider(comand=["pass", "{name}"])
