"""Background tasks of the server: sample metrics, and evaluate alerts if no worker is alive."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from queuectl.alerts.delivery import AlertDelivery
from queuectl.clock import Cancelled
from queuectl.config import environ
from queuectl.errors import QueuectlError
from queuectl.jobs.stats import Span
from queuectl.web.store_threads import StorePool, StoreSession

SAMPLE_RETRY_SECONDS: Final = 60.0  # without a database, or if it cannot be written
ALERT_INTERVAL_SECONDS: Final = 5.0
ALERT_RETRY_SECONDS: Final = 30.0  # after an error

_log: Final = logging.getLogger(__name__)


async def sample_minutes(pool: StorePool) -> None:
    """Record one sample per minute until the server stops. Errors are ignored: a missing minute is a gap in a chart."""
    while True:
        try:
            seconds = await pool.ask(_sample)
        except Cancelled:
            return
        except QueuectlError:
            seconds = SAMPLE_RETRY_SECONDS
        await asyncio.sleep(seconds)


def _sample(session: StoreSession) -> float:
    """Record a sample and return the seconds until the next one. The store writes each minute once, whichever process is first."""
    if not session.has_store:
        return SAMPLE_RETRY_SECONDS
    store = session.open_store()
    store.sample()
    now_ms = store.now_ms()
    return (Span.MINUTE.begin(now_ms) + Span.MINUTE.ms - now_ms) / 1000


async def check_alerts(pool: StorePool) -> None:
    """Evaluate the alerts periodically until the server stops."""
    reported: str | None = None
    while True:
        seconds = ALERT_INTERVAL_SECONDS
        try:
            await pool.ask(_check)
            reported = None
        except Cancelled:
            return
        except QueuectlError as error:
            if error.message != reported:  # once, not at every check
                reported = error.message
                _log.warning("alerts cannot be evaluated: %s", error.message)
            seconds = ALERT_RETRY_SECONDS
        await asyncio.sleep(seconds)


def _check(session: StoreSession) -> None:
    if not session.has_store or not session.reads.alerts():
        return
    for sent in alert_delivery(session).check():
        if sent.error is not None:
            _log.warning("the notification of the alert %s failed: %s", sent.alert.name, sent.error.message)


def alert_delivery(session: StoreSession) -> AlertDelivery:
    """Deliver alerts with the current policy; if its file is unusable, with the previous one."""
    session.gate.policy.follow(lambda _: None, lambda problem: _log.warning("%s", problem))
    return AlertDelivery(
        session.open_store(), lambda: session.settings, environ(), gate=session.gate, clock=session.clock
    )
