"""Patterns of a policy, for arguments of commands and for names of programs, variables and secrets."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

ANYTHING: Final = "**"
WITHIN: Final = "*"
ONE: Final = "?"


class Pattern:
    """`*` matches any characters except a slash, `**` any characters, `?` one character except a slash; all others match themselves.

    An argument that begins with `-` is an option, and matches only a pattern that begins with `-`: a rule that allows file names does not
    allow `--output=/etc/passwd`. An argument with `..` between slashes matches no pattern with a slash: it would leave its directory.
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
                step = max(step, steps.pop(), key=len)  # adjacent stars are the same as the wider of them
            steps.append(step)
        self._literal = not any(step in (WITHIN, ANYTHING, ONE) for step in steps)
        # One bit per step: all states of the match at once, so a match takes one pass over the argument for any pattern.
        self._steps: dict[str, int] = {}
        for number, step in enumerate(steps):
            self._steps[step] = self._steps.get(step, 0) | 1 << number
        self._walk_all = self._steps.pop(ANYTHING, 0)
        self._walk_within = self._steps.pop(WITHIN, 0)
        self._ends = 1 << len(steps)

    def matches(self, argument: str) -> bool:
        if self._literal:
            return argument == self._text
        if argument.startswith("-") and not self._text.startswith("-"):
            return False
        if "/" in self._text and ".." in argument.split("/"):
            return False
        steps, one = self._steps, self._steps.get(ONE, 0)
        stars, walk_all = self._walk_all | self._walk_within, self._walk_all
        states = 1
        states |= (states & stars) << 1
        for letter in argument:
            if letter == "/":
                passed, stayed = steps.get("/", 0), walk_all
            else:
                # A `?` or `*` in the argument is an ordinary character.
                passed, stayed = steps.get(letter, 0) | one, stars
            states = ((states & passed) << 1) | (states & stayed)
            states |= (states & stars) << 1
            if not states:
                return False
        return bool(states & self._ends)


# A policy has few patterns and matches them for every job.
compiled = lru_cache(maxsize=1024)(Pattern)


def matches(pattern: str, argument: str) -> bool:
    return compiled(pattern).matches(argument)


def matches_all(patterns: tuple[str, ...], arguments: tuple[str, ...]) -> bool:
    """Whether each argument matches its pattern. If the last pattern ends in `...`, it matches any number of arguments, including none;
    `...` alone matches everything."""
    rest = patterns[-1][:-3] if patterns and patterns[-1].endswith("...") else None
    fixed = patterns if rest is None else patterns[:-1]
    if len(arguments) < len(fixed) or (rest is None and len(arguments) > len(fixed)):
        return False
    if not all(matches(pattern, argument) for pattern, argument in zip(fixed, arguments, strict=False)):
        return False
    return not rest or all(matches(rest, argument) for argument in arguments[len(fixed) :])
