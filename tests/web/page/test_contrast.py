"""The contrast of all colors, computed from the style sheet by the formula of WCAG 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import queuectl.web.pages

SHEET = (Path(queuectl.web.pages.__file__).parent / "static" / "queuectl.css").read_text()
STATES = ("blocked", "pending", "processing", "failed", "completed", "dead", "cancelled")
PAIRS = [
    *(
        (text, back)
        for text in ("text", "quiet", "accent", *STATES, "good", "warn", "bad")
        for back in ("back", "panel")
    ),
    *((text, "hover") for text in ("text", "quiet", "bad")),
    ("accent-text", "accent"),
    ("good", "good-back"),
    ("warn", "warn-back"),
    ("bad", "bad-back"),
    ("log-text", "log-back"),
    ("log-text", "hit"),
    *((f"t{number}", "log-back") for number in range(16)),
]


def colours(scheme: str) -> dict[str, str]:
    """All variables of the sheet, one color or `light-dark(light, dark)` each."""
    found = re.findall(r"--([\w-]+): (?:light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)|(#[0-9a-f]{6}));", SHEET)
    return {name: single or (light if scheme == "light" else dark) for name, light, dark, single in found}


def light_of(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((light_of(one), light_of(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(scheme: str) -> None:
    known = colours(scheme)
    found = {(text, back): round(contrast(known[text], known[back]), 2) for text, back in PAIRS}
    assert not {pair: value for pair, value in found.items() if value < 4.5}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders_of_controls_are_visible(scheme: str) -> None:
    known = colours(scheme)
    found = {back: round(contrast(known["edge"], known[back]), 2) for back in ("back", "panel", "hover")}
    assert all(value >= 3 for value in found.values()), found
