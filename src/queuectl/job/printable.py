"""Text that cannot move the cursor, change colours or break a line, whatever a job's command or an error holds."""

from __future__ import annotations

import re

# Control characters, what orders a terminal or a reader about (line separators, bidirectional overrides), and the
# lone surrogates that stand for bytes that were not UTF-8. Not simply everything "unprintable": that would
# take joined emoji and private-use symbols apart.
_BEYOND_ASCII = "\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = f"[\x00-\x1f{_BEYOND_ASCII}]"
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """`text` on one line, with everything that a terminal would obey written as an escape."""
    if text.isprintable():
        return text
    return re.sub(_UNSAFE, _escape, text)


def printable_json(text: str) -> str:
    """The same for JSON text, which stays JSON: a control character below 32 can only be its own white space."""
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
