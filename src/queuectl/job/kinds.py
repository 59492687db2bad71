"""The kinds of values that settings have: how each is read, written and shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from queuectl.errors import InvalidInput
from queuectl.job.ageing import HINT as AGEING_FORM
from queuectl.job.ageing import format_ageing, parse_ageing
from queuectl.job.duration import LONGEST_MS, format_duration, parse_duration_ms
from queuectl.job.rank import Ageing
from queuectl.job.shown import shown
from queuectl.job.size import format_size, parse_size

Value = int | float | bool | str | Ageing | None
Json = int | float | bool | str | None

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30

HIDDEN: Final = "***"
SHORTEST_SECRET: Final = 16
LONGEST_SECRET: Final = 256


class Kind:
    """How values of one kind are read, written for people (canonical, and read back as the same) and typed in JSON."""

    __slots__ = ("form", "json", "parse", "shown", "text")

    def __init__(
        self,
        *,
        form: str,
        parse: Callable[[str, str], Value],
        text: Callable[[Any], str] = str,
        json: Callable[[Any], Json] | None = None,
        shown: Callable[[Any], str] | None = None,
    ) -> None:
        self.form = form
        self.parse = parse
        self.text = text
        self.shown = text if shown is None else shown  # `text` without what is secret
        self.json = self.shown if json is None else json


def integer(low: int, high: int) -> Kind:
    form = f"an integer from {low} to {high}"

    def parse(text: str, subject: str) -> Value:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise InvalidInput(subject, f"expected {form}, got {shown(text)}", hint=f"{subject} takes {form}")
        return int(text)

    return Kind(form=form, parse=parse, json=int)


def number(low: float, high: float | None) -> Kind:
    form = f"a number of at least {low:g}" if high is None else f"a number from {low:g} to {high:g}"

    def parse(text: str, subject: str) -> Value:
        # 300 characters keep it finite.
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text[:300]) or len(text) > 300:
            raise InvalidInput(subject, f"expected {form}, got {shown(text)}", hint=f"{subject} takes {form}")
        value = float(text)
        if value < low or (high is not None and value > high):
            raise InvalidInput(subject, f"expected {form}, got {shown(text)}", hint=f"{subject} takes {form}")
        return value

    def text(value: float) -> str:
        from decimal import Decimal  # for the few that need it

        # In digits, as it is accepted: Python writes 1e+16 and 1e-05.
        return format(Decimal(repr(value)), "f").removesuffix(".0")

    return Kind(form=form, parse=parse, text=text, json=float)


def boolean() -> Kind:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

    def parse(text: str, subject: str) -> Value:
        if text.lower() not in words:
            raise InvalidInput(subject, f"expected true or false, got {shown(text)}", hint="true or false")
        return words[text.lower()]

    return Kind(form="true or false", parse=parse, text=lambda value: "true" if value else "false", json=bool)


def duration(low_ms: int, high_ms: int, *, nothing: str | None = None, zero_is_nothing: bool = False) -> Kind:
    """`nothing` is the word for None, where there may be no such duration at all."""
    limits = f"from {format_duration(low_ms)} to {'100 years' if high_ms == LONGEST_MS else format_duration(high_ms)}"
    form = f"a duration {limits} (500ms, 90s, 1h30m, 2d)" + (f", or {nothing}" if nothing else "")

    def parse(text: str, subject: str) -> Value:
        if nothing and text.lower() == nothing:
            return None
        try:
            ms = parse_duration_ms(text, subject=subject)
        except InvalidInput as error:
            raise InvalidInput(subject, error.problem, hint=f"{subject} takes {form}") from error
        if ms == 0 and zero_is_nothing:
            return None
        if not low_ms <= ms <= high_ms:
            raise InvalidInput(subject, f"expected {limits}, got {shown(text)}", hint=f"{subject} takes {form}")
        return ms

    def write(ms: int | None) -> str:
        return str(nothing) if ms is None else format_duration(ms)

    return Kind(form=form, parse=parse, text=write, json=lambda ms: None if ms is None else format_duration(ms))


def size(low: int, high: int) -> Kind:
    limits = f"from {format_size(low)} to {format_size(high)}"

    def parse(text: str, subject: str) -> Value:
        # One refusal for all: what sizes there are at all, `parse_size` says, and is more than this key takes.
        refusal = InvalidInput(
            subject, f"expected a size {limits}, got {shown(text)}", hint=f"{subject} takes a size like 64KiB, 10MB"
        )
        try:
            size = parse_size(text, subject=subject)
        except InvalidInput as error:
            raise refusal from error
        if not low <= size <= high:
            raise refusal
        return size

    return Kind(form=f"a size {limits} (64KiB, 10MB)", parse=parse, text=format_size)


def url() -> Kind:
    def parse(text: str, subject: str) -> Value:
        from queuectl.job.hooks import parse_url_or_none  # here, since few have one, and enqueue has to be quick

        return parse_url_or_none(text, subject) or None

    def told(url: str | None) -> str:
        from queuectl.job.hooks import shown_url

        return "none" if url is None else shown_url(url)

    return Kind(
        form="an http or https URL, or none",
        parse=parse,
        text=lambda url: url or "none",
        json=lambda url: None if url is None else told(url),
        shown=told,
    )


def secret() -> Kind:
    form = f"{SHORTEST_SECRET} to {LONGEST_SECRET} visible ASCII characters, or none"

    def parse(text: str, subject: str) -> Value:
        if text.lower() == "none":
            return None
        if not SHORTEST_SECRET <= len(text) <= LONGEST_SECRET or not text.isascii() or not text.isprintable():
            # Without what was given: it may be all right but for one character.
            hint = f"make one: openssl rand -hex 32 | queuectl config set {subject} -"
            raise InvalidInput(subject, f"expected {form}", hint=hint)
        return text

    return Kind(
        form=form,
        parse=parse,
        text=lambda secret: secret or "none",
        json=lambda secret: None if secret is None else HIDDEN,
        shown=lambda secret: "none" if secret is None else HIDDEN,
    )


def ageing() -> Kind:
    return Kind(form=AGEING_FORM, parse=lambda text, subject: parse_ageing(text, subject=subject), text=format_ageing)
