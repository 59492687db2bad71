"""Which name did they mean?"""

from __future__ import annotations

from collections.abc import Iterable

from queuectl.job.shown import cut


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, or None if none looks like it."""
    import difflib  # only for those who mistyped: it doubles the time that this package takes to import

    found = difflib.get_close_matches(cut(name), list(known), n=1)
    return found[0] if found else None
