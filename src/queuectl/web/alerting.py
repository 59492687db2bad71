"""Looking at the alerts: workers do it, and where none lives whoever shows the queue. Then it tells them, too: nobody else is there."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from queuectl.alerting import Teller
from queuectl.clock import Left
from queuectl.config import environ
from queuectl.errors import QueuectlError
from queuectl.web.desk import Desk
from queuectl.web.rooms import Room

EVERY: Final = 5.0
AGAIN_AFTER: Final = 30.0  # where it cannot look

_log: Final = logging.getLogger(__name__)


async def keep_watch(room: Room) -> None:
    """For as long as this server lives."""
    said: str | None = None
    while True:
        seconds = EVERY
        try:
            await room.ask(_look)
            said = None
        except Left:
            return
        except QueuectlError as error:
            if error.message != said:  # once, not at every look
                said = error.message
                _log.warning("alerts are not looked at: %s", error.message)
            seconds = AGAIN_AFTER
        await asyncio.sleep(seconds)


def _look(desk: Desk) -> None:
    if not desk.has_store or not desk.reads.alerts():
        return
    store = desk.open_store()
    for told in Teller(store, lambda: desk.settings, environ()).check(store):
        if told.error is not None:
            _log.warning("nobody was told of the alert %s: %s", told.alert.name, told.error.message)
