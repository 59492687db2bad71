"""Patterns of a policy: for the words of a command, and for names of variables and programs."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

ANYTHING: Final = "**"
WITHIN: Final = "*"
ONE: Final = "?"


class Pattern:
    """`*` is anything but a slash, `**` anything, `?` one character but a slash; the rest stands for itself.

    A word that begins with `-` is an option, and fits only a pattern that begins so: whoever allows a file name has not allowed
    `--output=/etc/passwd`. A word with `..` between slashes fits no pattern that has a slash: it leads out of where that points.
    """

    __slots__ = ("_ends", "_literal", "_steps", "_text", "_walk_all", "_walk_within")

    def __init__(self, text: str) -> None:
        self._text = text
        steps: list[str] = []
        at = 0
        while at < len(text):
            step = ANYTHING if text.startswith(ANYTHING, at) else text[at]
            at += len(step)
            if step in (WITHIN, ANYTHING) and steps and steps[-1] in (WITHIN, ANYTHING):
                step = max(step, steps.pop(), key=len)  # one star after another is the wider of the two
            steps.append(step)
        self._literal = not any(step in (WITHIN, ANYTHING, ONE) for step in steps)
        # One bit a step: all states of the match at once, so that it takes one pass over the word, whatever the pattern is.
        self._steps: dict[str, int] = {}
        for number, step in enumerate(steps):
            self._steps[step] = self._steps.get(step, 0) | 1 << number
        self._walk_all = self._steps.pop(ANYTHING, 0)
        self._walk_within = self._steps.pop(WITHIN, 0)
        self._ends = 1 << len(steps)

    def fits(self, word: str) -> bool:
        if self._literal:
            return word == self._text
        if word.startswith("-") and not self._text.startswith("-"):
            return False
        if "/" in self._text and ".." in word.split("/"):
            return False
        steps, one = self._steps, self._steps.get(ONE, 0)
        stars, walk_all = self._walk_all | self._walk_within, self._walk_all
        states = 1
        states |= (states & stars) << 1
        for letter in word:
            if letter == "/":
                passed, stayed = steps.get("/", 0), walk_all
            else:
                # A `?` or a `*` of the word is no wildcard: those were taken out above, or mean any character here too.
                passed, stayed = steps.get(letter, 0) | one, stars
            states = ((states & passed) << 1) | (states & stayed)
            states |= (states & stars) << 1
            if not states:
                return False
        return bool(states & self._ends)


# A policy has few, and asks them for every job.
compiled = lru_cache(maxsize=1024)(Pattern)


def fits(pattern: str, word: str) -> bool:
    return compiled(pattern).fits(word)


def fits_all(patterns: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether the words are what the patterns say, one by one. The last pattern may end in `...`: any number of such words,
    none included; `...` alone: whatever there is."""
    rest = patterns[-1][:-3] if patterns and patterns[-1].endswith("...") else None
    fixed = patterns if rest is None else patterns[:-1]
    if len(words) < len(fixed) or (rest is None and len(words) > len(fixed)):
        return False
    if not all(fits(pattern, word) for pattern, word in zip(fixed, words, strict=False)):
        return False
    return not rest or all(fits(rest, word) for word in words[len(fixed) :])
