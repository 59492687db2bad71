"""Listening to a bell, as whoever sleeps on it does."""

from __future__ import annotations

import select

from queuectl.store.protocol import Bell


def rings(bell: Bell, within: float = 5) -> bool:
    """Whether somebody who sleeps on the bell would wake. A ring may have to come from another machine."""
    ready, _, _ = select.select([bell], [], [], within)
    return bool(ready)


def hush(bell: Bell) -> bool:
    """Whether anybody has rung up to now. From here on only what comes later rings.

    `bell.hush` is not enough for that: on PostgreSQL a ring may still be on its way, and would be taken for a later one.
    """
    said: bool = getattr(bell, "catch_up", bell.hush)()
    return said
