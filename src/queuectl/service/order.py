"""What `service install` was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Service(NamedTuple):
    name: str  # of the worker, and so of the service
    unit: str  # how the manager calls it, without an ending: queuectl, queuectl-mail
    program: tuple[str, ...]  # the words that run queuectl, the first one absolute
    words: tuple[str, ...]  # what follows `worker start`
    environment: Mapping[str, str]
    home: str
    is_system: bool
    run_as: str | None  # None: whoever the manager runs as
    stop_timeout: float | None  # seconds that jobs get to finish at a stop; None: as long as they take
    may_sudo: bool


class Standing(NamedTuple):
    """How it stands, as the manager says."""

    is_enabled: bool
    active: str  # in the manager's own word: active, inactive, failed, activating …
    pid: int | None
    since: str | None
    status: str | None  # the worker's own words
    restarts: int
