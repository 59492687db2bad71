"""Time zones by name, looked up on this host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from queuectl.errors import InvalidInput, ZonesMissing
from queuectl.text import closest_match, short_repr

# Available without a time zone database, which some hosts lack.
_ALWAYS: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu"})
_FOLDER: Final = "zoneinfo/"


def find_zone(name: str, *, subject: str = "--tz") -> tzinfo:
    """The zone of this name. Raises InvalidInput for `subject` if there is none, ZonesMissing without a time zone database."""
    if name in _ALWAYS:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # the last two: names like ../x, and directories
        known = available_timezones()
        if not known:
            raise ZonesMissing(name) from error
        meant = closest_match(name, known)
        hint = f"did you mean {meant!r}?" if meant else "a name like Europe/Berlin or UTC"
        raise InvalidInput(subject, f"unknown time zone {short_repr(name)}", hint=hint) from error


def local_zone_name(environ: Mapping[str, str]) -> str:
    """The zone of this host: from TZ, else from /etc. Raises InvalidInput if TZ is not the name of a zone."""
    given = environ.get("TZ", "").removeprefix(":")
    for name in (_from_path(given), given) if given else (_from_path(_local_time()), _from_file(), "UTC"):
        if name and _is_known(name):
            return name
    hint = "name the zone of the schedule: --tz Europe/Berlin"
    raise InvalidInput("TZ", f"{short_repr(given)} is not the name of a time zone", hint=hint)


def _is_known(name: str) -> bool:
    try:
        find_zone(name)
    except (InvalidInput, ZonesMissing):
        return False
    return True


def _local_time() -> str:
    return os.path.realpath("/etc/localtime")


def _from_path(path: str) -> str:
    """`/usr/share/zoneinfo/Europe/Berlin` -> Europe/Berlin."""
    return path.rpartition(_FOLDER)[2] if _FOLDER in path else ""


def _from_file() -> str:
    try:
        with open("/etc/timezone", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
