"""Alerts in the dashboard: where no worker is alive, the server evaluates them, calls their webhooks and runs their commands."""

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
    for told in teller(desk).check():
        if told.error is not None:
            _log.warning("nobody was told of the alert %s: %s", told.alert.name, told.error.message)


def teller(desk: Desk) -> Teller:
    """With the policy as its file is now; a file that cannot be used leaves the last one in force."""
    desk.gate.force.follow(lambda _: None, lambda problem: _log.warning("%s", problem))
    return Teller(desk.open_store(), lambda: desk.settings, environ(), gate=desk.gate, clock=desk.clock)
