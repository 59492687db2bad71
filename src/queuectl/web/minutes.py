"""Writing down how much happened in each minute, for the charts: workers do it, and where none lives whoever shows the charts."""

from __future__ import annotations

import asyncio
from typing import Final

from queuectl.clock import Left
from queuectl.errors import QueuectlError
from queuectl.job.points import Span
from queuectl.web.desk import Desk
from queuectl.web.rooms import Room

AGAIN_AFTER: Final = 60.0  # seconds: where there is no store, or it cannot be written


async def keep_minutes(room: Room) -> None:
    """For as long as this server lives. A minute that is not written down is a gap in a chart, and no trouble of anybody's."""
    while True:
        try:
            seconds = await room.ask(_sample)
        except Left:
            return
        except QueuectlError:
            seconds = AGAIN_AFTER
        await asyncio.sleep(seconds)


def _sample(desk: Desk) -> float:
    """Until the next one is due. The store sees to it that each is written once, whoever comes first."""
    if not desk.has_store:
        return AGAIN_AFTER
    store = desk.open_store()
    store.sample()
    now_ms = store.now_ms()
    return (Span.MINUTE.begin(now_ms) + Span.MINUTE.ms - now_ms) / 1000
