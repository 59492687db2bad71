"""Looking at and changing the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from queuectl.config import Entry, Settings, change_settings, resolve_key
from queuectl.store.protocol import Reads, Store


def list_settings(settings: Settings) -> list[Entry]:
    return settings.entries()


def require_key(name: str) -> None:
    """Raise UnknownName, with the nearest key, before anybody opens anything for a key that does not exist."""
    resolve_key(name)


def get_setting(settings: Settings, name: str) -> Entry:
    """Raises UnknownName, with the nearest key."""
    key = resolve_key(name)
    return next(entry for entry in settings.entries() if entry.key == key.name)


def change(
    wanted: Mapping[str, str | None], *, reads: Callable[[], Reads], open_store: Callable[[], Store]
) -> dict[str, str | None]:
    """Store settings, None for "back to the default", and return what was written, in canonical form.

    What is then in force together is checked before the store is opened: nothing is made for a bad value.
    """
    changes = change_settings(reads().config(), wanted)
    open_store().set_config(changes)
    return changes


def reset(*, reads: Callable[[], Reads], open_store: Callable[[], Store]) -> list[str]:
    """Every setting back to its default. Returns the keys that were stored."""
    stored = list(reads().config())
    if stored:
        open_store().set_config(dict.fromkeys(stored))
    return stored
