"""A job on its way into the store. A module of its own, since `enqueue` needs nothing else of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from queuectl.job.graph import Dependency

# What was happening -> whom to tell, and who said so; as plain data, see job/hooks.py.
PackedHooks = Mapping[str, Sequence[str]]
# Whom to tell of success, of failure, and of death.
Urls = tuple[str | None, str | None, str | None]
# What a run may use: of which resource how much, see job/resources.py.
PackedLimits = Mapping[str, int]
# What the jobs of a queue get that do not say otherwise: priority, max_retries, timeout_ms (0: none), whom to tell, what they may
# use; None: nothing is said.
QueueDefault = tuple[int | None, int | None, int | None, Urls, PackedLimits | None]
QueueDefaults = Mapping[str, QueueDefault]
NO_URLS: Final[Urls] = (None, None, None)


class NewJob(NamedTuple):
    """A job that passed validation and is not in the store yet. A tuple, since a bulk enqueue makes a million."""

    command: str | None
    argv: tuple[str, ...] | None
    id: str | None
    queue: str
    priority: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    run_at_ms: int | None
    delay_ms: int | None
    cwd: str
    env: Mapping[str, str] | None
    tags: tuple[str, ...]
    unique_key: str | None = None
    unique_for_ms: int | None = None  # asked of the one that is there, not kept with this one
    if_exists: str | None = None  # skip, error or replace; None: skip
    batch: str | None = None
    key: str | None = None  # a limit of its queue holds for each of them
    depends_on: tuple[Dependency, ...] = ()
    places: int | None = None  # at most so many of its key at a time, whatever its queue says
    hooks: PackedHooks | None = None  # whom to tell what becomes of it
    limits: PackedLimits | None = None  # what a run of it may use
    secrets: tuple[str, ...] = ()  # what its worker is to put into its environment, see job/secrets.py
