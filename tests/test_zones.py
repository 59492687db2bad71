"""Time zones by name, and the name of this machine's."""

from __future__ import annotations

from datetime import UTC

import pytest

from queuectl.errors import InvalidInput, ZonesMissing
from queuectl.zones import find_zone, local_zone_name


def test_a_zone_is_found_by_its_name() -> None:
    assert str(find_zone("Europe/Berlin")) == "Europe/Berlin"


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../etc/passwd", "/etc/localtime", "Europe", "a\0b", "CEST"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="--tz: unknown time zone"):
        find_zone(name)


def test_a_name_that_nearly_is_one_is_told() -> None:
    with pytest.raises(InvalidInput) as refused:
        find_zone("Europe/Berln")
    assert refused.value.hint == "did you mean 'Europe/Berlin'?"


def test_without_a_database_only_utc_is_known_and_that_is_said(no_zones: None) -> None:
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


def test_a_variable_that_names_no_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"TZ: 'CET-1CEST,M3\.5\.0,M10\.5\.0/3' is not the name"):
        local_zone_name({"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"})


def test_without_the_variable_the_machine_has_a_zone_all_the_same() -> None:
    assert find_zone(local_zone_name({}))
