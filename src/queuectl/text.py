"""Text in and out: short values for messages, escapes for terminals, did-you-mean, strict JSON, the syntax of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NoReturn

from queuectl.errors import InvalidJson, UnknownName

MAX_REPR_CHARS: Final = 60
MAX_REPR_INTEGER_BITS: Final = 200  # Python refuses to format integers of more than 4300 digits


def short_repr(value: object) -> str:
    """Format a rejected value for a message: short, on one line, in the words of JSON. Never raises."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(truncate(value))
    if isinstance(value, int):
        return str(int(value)) if value.bit_length() <= MAX_REPR_INTEGER_BITS else "an integer of absurd length"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a Python {type(value).__name__}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 job`, `2 jobs`; with `many` for other plurals."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shortened(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def command_line(command: str | None, argv: Sequence[str] | None) -> str:
    """The command of a job; an argv is quoted for a shell."""
    if command is not None:
        return command
    import shlex

    return shlex.join(argv or ())


def truncate(text: str) -> str:
    return text if len(text) <= MAX_REPR_CHARS else text[: MAX_REPR_CHARS - 1] + "…"


# Control characters, line separators, bidirectional overrides, and the lone surrogates that stand for bytes that were not UTF-8.
# Not everything that is "unprintable": that would split joined emoji and private-use symbols.
_BEYOND_ASCII = "\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = f"[\x00-\x1f{_BEYOND_ASCII}]"
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_control(text: str) -> str:
    """Escape control characters, so that `text` stays on one line and cannot control the terminal."""
    if text.isprintable():
        return text
    return re.sub(_UNSAFE, _escape, text)


def escape_json(text: str) -> str:
    """Escape control characters of JSON text, which stays valid: below 32 it can hold only its own white space."""
    if text.isprintable():
        return text
    return re.sub(f"[{_BEYOND_ASCII}]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that was not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def closest_match(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to `name`, for "did you mean"; None if none is similar."""
    import difflib  # slow to import, and needed only for a mistyped name

    found = difflib.get_close_matches(truncate(name), list(known), n=1)
    return found[0] if found else None


def unknown_name(what: str, name: object, known: Iterable[str]) -> UnknownName:
    """The error for a name that is not one of these."""
    shown, names = truncate(str(name)), list(known)
    return UnknownName(what, shown, nearest=closest_match(shown.lower().replace("-", "_"), names), known=names)


MAX_JSON_DEPTH: Final = 100
MAX_JSON_DIGITS: Final = 400  # a float has at most 309 before its point

_BLANK: Final = " \t\n\r"
_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'


class _Refused(Exception):
    """Raised by the hooks of the decoder, which know the offending text but not its position."""

    def __init__(self, problem: str, token: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.token = token


class _DuplicateKey(Exception):
    pass


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateKey
    return fields


def _parse_integer(digits: str) -> int:
    if len(digits) > MAX_JSON_DIGITS:
        raise _Refused("a number of absurd length", digits)
    return int(digits)


def _parse_float(digits: str) -> float:
    if len(digits) > MAX_JSON_DIGITS:
        raise _Refused("a number of absurd length", digits)
    value = float(digits)
    if value in {float("inf"), float("-inf")}:
        raise _Refused("a number too large", digits)
    return value


def _reject_constant(word: str) -> NoReturn:
    raise _Refused(f"{word} is not JSON", word)


@cache
def _raw_decoder() -> Callable[[str, int], tuple[Any, int]]:
    import json  # takes 2 ms: a plain enqueue does without it

    return json.JSONDecoder(
        object_pairs_hook=_parse_object,
        parse_int=_parse_integer,
        parse_float=_parse_float,
        parse_constant=_reject_constant,
    ).raw_decode


def parse_json(text: str) -> object:
    """Parse standard JSON strictly. Raises only InvalidJson, with line, column and the offending text.

    Also rejected: duplicate keys, NaN and Infinity, numbers that do not fit, nesting beyond 100, lone surrogates. Valid text
    takes a short path, since a bulk enqueue parses a million lines; only invalid text is scanned again for the position.
    """
    from json import JSONDecodeError

    # No text with fewer brackets can be nested deeper.
    if text.count("{") + text.count("[") > MAX_JSON_DEPTH:
        _check_depth(text)
    try:
        value, end = _raw_decoder()(text, len(text) - len(text.lstrip(_BLANK)))
    except JSONDecodeError as error:
        raise _invalid(text, error.pos, error.msg[:1].lower() + error.msg[1:].removesuffix(" at")) from error
    except _DuplicateKey as error:
        at, key = next(_duplicate_keys(text))
        raise _invalid(text, at, f"duplicate key {truncate(key)!r}") from error
    except _Refused as refused:
        raise _invalid(text, _position(text, refused.token), refused.problem) from refused
    if end != len(text) and text[end:].strip(_BLANK):
        raise _invalid(text, len(text) - len(text[end:].lstrip(_BLANK)), "more after the end")
    if not text.isascii() or "\\u" in text:
        _check_surrogates(text)
    return value


def _invalid(text: str, at: int, problem: str) -> InvalidJson:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    rest = text[at:].split("\n", 1)[0]
    found = repr(truncate(rest)) if rest else "the end of the text" if at >= len(text) else "the end of the line"
    return InvalidJson(
        f"not valid JSON: {problem}, line {line} column {column}, at {found}",
        hint='a job looks like {"command": "echo hi", "priority": 5}; quote it with \' \' for the shell',
    )


def _check_depth(text: str) -> None:
    depth = 0
    for token in re.finditer(rf"{_STRING}|[\[{{]|[\]}}]", text):
        if token[0] in "{[":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise _invalid(text, token.start(), f"nested deeper than {MAX_JSON_DEPTH} levels")
        elif token[0] in "}]":
            depth -= 1


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _invalid(text, error.start, "a lone surrogate") from error
    high: re.Match[str] | None = None
    for escape in re.finditer(r"\\(?:u([0-9a-fA-F]{4})|.)", text):
        code = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= code <= 0xDFFF
        is_pair = is_low and high is not None and high.end() == escape.start()
        if high is not None and not is_pair:
            raise _invalid(text, high.start(), "a lone surrogate")
        if is_low and not is_pair:
            raise _invalid(text, escape.start(), "a lone surrogate")
        high = escape if 0xD800 <= code <= 0xDBFF else None
    if high is not None:
        raise _invalid(text, high.start(), "a lone surrogate")


def _duplicate_keys(text: str) -> Iterator[tuple[int, str]]:
    """The positions of repeated keys. The text is well formed up to the first of them: take only one."""
    import json

    open_objects: list[set[str]] = []
    for token in re.finditer(
        rf"({_STRING})([{_BLANK}]*:)?|[{{}}]", text
    ):  # pragma: no branch - the caller takes only the first
        if token[0] == "{":
            open_objects.append(set())
        elif token[0] == "}":
            open_objects.pop()
        elif token[2]:
            key = json.loads(token[1])
            if key in open_objects[-1]:
                yield token.start(), key
            open_objects[-1].add(key)


def _position(text: str, token: str) -> int:
    """The position of `token`, a number or a constant, outside of strings."""
    tokens = re.finditer(rf"{_STRING}|-?Infinity|NaN|[-+.0-9eE]+", text)
    return next(found.start() for found in tokens if found[0] == token)


ID_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
QUEUE_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
TAG_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"

# The queue of webhook deliveries, see webhooks/rules.py. Users cannot add jobs to it.
WEBHOOK_QUEUE: Final = "queuectl.webhooks"

LAST_JOB: Final = "last"  # in place of an ID: the job enqueued last. No job can have this ID

_is_id: Final = re.compile(ID_PATTERN).fullmatch
_is_queue: Final = re.compile(QUEUE_PATTERN).fullmatch
_is_tag: Final = re.compile(TAG_PATTERN).fullmatch


def is_valid_id(text: str) -> bool:
    return text != LAST_JOB and _is_id(text) is not None


def is_valid_queue(text: str) -> bool:
    return _is_queue(text) is not None


def is_valid_tag(text: str) -> bool:
    return _is_tag(text) is not None
