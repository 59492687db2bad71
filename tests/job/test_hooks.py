from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.job.hooks import (
    Call,
    Happening,
    Hook,
    Said,
    calls,
    choose,
    hidden,
    pack,
    parse_hooks,
    parse_url,
    parse_url_or_none,
    receiver_limit,
    receiver_of,
    said_by,
    shown_url,
    unpack,
    with_origin,
)
from queuectl.job.lifecycle import Event
from queuectl.job.newjob import NO_URLS
from queuectl.job.outcome import Ending
from queuectl.job.settle import Settlement

URL = "https://example.org/hooks/1"
ALL = {happening: Hook(f"{URL}/{happening}", Said.JOB) for happening in Happening}


def end(event: Event) -> Settlement:
    return Settlement(event, Ending.FAILED, attempts=1, crashes=0)


@pytest.mark.parametrize(
    "event, expected",
    [
        (Event.SUCCEED, ["success"]),
        (Event.FAIL, ["failure"]),
        (Event.EXHAUST, ["failure", "dead"]),
        (Event.POISON, ["dead"]),
        (Event.REFUSE, ["dead"]),
        (Event.CANCEL, []),
        (Event.RELEASE, []),
        (Event.LOSE, []),
    ],
)
def test_an_end_makes_the_calls_that_fit_it(event: Event, expected: list[str]) -> None:
    assert [call.happening.value for call in calls(ALL, end(event))] == expected


def test_nobody_is_told_who_did_not_ask() -> None:
    assert calls({}, end(Event.EXHAUST)) == []
    assert calls({Happening.DEAD: ALL[Happening.DEAD]}, end(Event.FAIL)) == []


def test_a_call_says_who_asked_for_it() -> None:
    hook = Hook(URL, Said.QUEUE)
    assert calls({Happening.SUCCESS: hook}, end(Event.SUCCEED)) == [Call(Happening.SUCCESS, hook)]


def test_the_nearest_word_wins() -> None:
    queue, all_jobs = "https://queue/", "https://all/"
    chosen = choose(("https://job/", None, None), (queue, queue, None), (all_jobs, all_jobs, all_jobs))
    assert chosen == {
        Happening.SUCCESS: Hook("https://job/", Said.JOB),
        Happening.FAILURE: Hook("https://queue/", Said.QUEUE),
        Happening.DEAD: Hook("https://all/", Said.CONFIG),
    }


def test_an_empty_word_takes_away_what_is_said_for_all() -> None:
    assert choose((None, None, ""), NO_URLS, (None, None, URL)) == {}


def test_what_each_has_said_can_be_told_apart_again() -> None:
    packed = pack(choose((URL, None, None), (None, URL, None), (URL, URL, URL)))
    assert [said_by(who, packed) for who in Said] == [(URL, None, None), (None, URL, None), (None, None, URL)]
    assert said_by(Said.JOB, None) == NO_URLS


def test_hooks_are_shown_without_what_is_secret_in_them_and_cannot_be_read_back_so() -> None:
    packed = pack({Happening.DEAD: Hook(URL, Said.JOB)})
    assert packed is not None
    assert parse_hooks(packed, "hooks") == packed
    assert hidden(packed) == {"dead": ["https://example.org/…", "job"]}
    with pytest.raises(InvalidInput, match=r"hooks\.dead: not a URL of visible"):
        parse_hooks(hidden(packed), "hooks")


@pytest.mark.parametrize("value", ["x", {"later": [URL, "job"]}, {"dead": URL}, {"dead": [URL]}, {"dead": [URL, "me"]}])
def test_hooks_in_another_form_are_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^hooks"):
        parse_hooks(value, "hooks")
    assert parse_hooks({}, "hooks") is None


def test_the_word_none_is_no_url() -> None:
    assert parse_url_or_none("None", "x") == ""
    assert parse_url_or_none(URL, "x") == URL
    assert shown_url("none") == "none"


def test_hooks_come_back_from_the_store_as_they_went_in() -> None:
    assert unpack(pack(ALL)) == ALL
    assert pack({}) is None
    assert unpack(None) == {}
    assert unpack({"a later idea": ["https://example.org/", "job"]}) == {}


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://127.0.0.1:8080/x?y=z",
        "https://[::1]:8443/",
        "https://hooks.example.org/T0/B1/abc",
    ],
)
def test_a_url_for_http_is_taken_as_it_is(url: str) -> None:
    assert parse_url(url, "on_dead") == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://example.org:99999/",
        "http://example.org:0/",
        "http://[::1/",
        "http://exa mple.org/",
        "http://example.org/\r\nX: y",
        "http://exämple.org/",
        "https://user:secret@example.org/",
        "https://user@example.org/",
        "https://example.org/" + "x" * 2048,
        5,
        None,
        ["https://example.org"],
    ],
)
def test_what_is_no_url_that_can_be_called_is_refused_by_the_name_of_its_field(url: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url(url, "on_dead")
    assert refused.value.subject == "on_dead"
    assert "secret" not in refused.value.message


def test_what_is_shown_of_a_url_has_no_secret_in_it() -> None:
    assert shown_url("https://hooks.example.org:8443/T0/B1/secret?key=secret") == "https://hooks.example.org:8443/…"


@pytest.mark.parametrize(
    "url, receiver",
    [
        ("https://example.org/a", "example.org:443"),
        ("http://example.org/a", "example.org:80"),
        ("http://example.org:8080/a", "example.org:8080"),
    ],
)
def test_the_receiver_of_a_webhook_is_its_host_and_port(url: str, receiver: str) -> None:
    assert receiver_of(url) == receiver


@pytest.mark.parametrize("slots, limit", [(0, 2), (8, 2), (40, 10)])
def test_one_receiver_gets_a_quarter_of_the_slots_for_deliveries(slots: int, limit: int) -> None:
    assert receiver_limit(slots) == limit


def test_a_url_from_a_file_is_the_operators_only_where_the_settings_have_it() -> None:
    packed = {"success": ["http://a/", "config"], "failure": ["http://b/", "config"], "dead": ["http://c/", "config"]}
    found = with_origin(packed, queue=("http://a/", None, None), all_jobs=(None, "http://b/", None))
    assert {name: said for name, (_, said) in found.items()} == {"success": "queue", "failure": "config", "dead": "job"}
