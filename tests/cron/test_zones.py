"""Time zones by name, and the zone of this host."""

from __future__ import annotations

from datetime import UTC

import pytest

from queuectl.cron.operations import find_zone, local_zone_name
from queuectl.errors import InvalidInput, ZonesMissing


def test_a_zone_is_found_by_its_name() -> None:
    assert str(find_zone("Europe/Berlin")) == "Europe/Berlin"


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../etc/passwd", "/etc/localtime", "Europe", "a\0b", "CEST"])
def test_an_unknown_zone_is_rejected(name: str) -> None:
    with pytest.raises(InvalidInput, match="--tz: unknown time zone"):
        find_zone(name)


def test_a_misspelled_zone_is_rejected_with_the_closest_match() -> None:
    with pytest.raises(InvalidInput) as refused:
        find_zone("Europe/Berln")
    assert refused.value.hint == "did you mean 'Europe/Berlin'?"


def test_without_a_time_zone_database_only_utc_is_available(no_zones: None) -> None:
    assert find_zone("UTC") is UTC
    with pytest.raises(ZonesMissing, match="no time zone database"):
        find_zone("Europe/Berlin")


@pytest.mark.parametrize(
    "given, name",
    [
        ("America/New_York", "America/New_York"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/Europe/Rome", "Europe/Rome"),
        ("UTC", "UTC"),
    ],
)
def test_the_variable_tz_names_the_zone_of_this_machine(given: str, name: str) -> None:
    assert local_zone_name({"TZ": given}) == name


def test_a_variable_that_names_no_zone_is_rejected() -> None:
    with pytest.raises(InvalidInput, match=r"TZ: 'CET-1CEST,M3\.5\.0,M10\.5\.0/3' is not the name"):
        local_zone_name({"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"})


def test_without_the_variable_the_host_has_a_zone() -> None:
    assert find_zone(local_zone_name({}))
