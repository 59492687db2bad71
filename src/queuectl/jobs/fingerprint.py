"""The fingerprint of a failure: equal for jobs that failed in the same way, whatever their IDs, files and times.

It is stored with the end of a run, so that the DLQ can be grouped without reading every message. A change of these rules applies to runs
that end from then on.
"""

from __future__ import annotations

import re
from typing import Final

from queuectl.jobs.states import State

MAX_ERROR: Final = 500  # characters of the error that count
BYTES: Final = 6  # two kinds of failure with one fingerprint: with a thousand kinds, one in a billion

_FAILURES: Final = frozenset({State.FAILED, State.DEAD})

# Tried in this order at each place. A kept match stays; the others become the name of their group.
_PART: Final = re.compile(
    r"""
    (?P<kept> \b(?:https?(?:/[\d.]+)?|status|code|errno|error|signal|exit)\b[ :=#\[(]{0,2}[1-9]\d{0,2}\b)  # what went wrong
    | (?P<url> \b[a-z][a-z0-9+.-]*://[^\s'"<>)\]]+)
    | (?P<email> \b[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<quoted> (?<!\w)(?:'[^']*'|"[^"]*"|`[^`]*`)(?!\w))
    | (?P<path>
        (?<![\w/.])(?:~|\.{1,2})?/[^\s'":,;)\]}]+ # from a root
        | \b[\w.-]+(?:/[\w.-]+)+\.\w+             # relative, with an extension
        | \b[a-z]:\\[^\s'":,;)\]}]+
      )
    | (?P<time> \b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?)?)
    | (?P<number>
        \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b
        | \b0x[0-9a-f]+\b
        | \b(?=[a-z_]*\d)(?=\d*[a-f_])[0-9a-f]{7,}\b
        | \b(?=\w*\d\w*\d)(?=\w*[a-z])\w{6,}\b    # an ID: letters with at least two digits
        | \d+(?:[.,:]\d+)*
      )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORD: Final = re.compile(r".[^\W\d]+(?:[._-][^\W\d]+)*.")


def fingerprint(state: str, error: str | None, last_output: str | None) -> str | None:
    """Of a job in this state; None if it has not failed."""
    if state not in _FAILURES:
        return None
    import hashlib  # here, since only failures need it

    text = f"{fold((error or '')[:MAX_ERROR])}\n{fold(last_output or '')}"
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=BYTES).hexdigest()


def fold(text: str) -> str:
    """The text without what differs from job to job. Exit codes, signals and HTTP statuses stay, and quoted words."""
    return " ".join(_PART.sub(_placeholder, text).split())


def _placeholder(found: re.Match[str]) -> str:
    kind = str(found.lastgroup)
    if kind == "kept" or (kind == "quoted" and _WORD.fullmatch(found[0])):
        return found[0]
    return f"<{kind}>"
