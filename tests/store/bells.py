"""Listening to a bell, as whoever sleeps on it does."""

from __future__ import annotations

import select

from queuectl.store.protocol import Bell


def rings(bell: Bell, within: float = 5) -> bool:
    """Whether somebody who sleeps on the bell would wake. A ring may have to come from another machine."""
    ready, _, _ = select.select([bell], [], [], within)
    return bool(ready)


def is_quiet(bell: Bell) -> bool:
    return not rings(bell, within=0.05) and not bell.hush()
