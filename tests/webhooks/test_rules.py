from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.jobs.outcome import Ending, Settlement
from queuectl.jobs.spec import NO_URLS
from queuectl.jobs.states import Event
from queuectl.webhooks.rules import (
    Delivery,
    Hook,
    Origin,
    WebhookEvent,
    choose_hooks,
    deliveries_for,
    pack_hooks,
    parse_hooks,
    parse_url,
    parse_url_or_none,
    receiver_limit,
    receiver_of,
    redact_hooks,
    redact_url,
    unpack_hooks,
    urls_set_by,
    with_origin,
)

URL = "https://example.org/hooks/1"
ALL = {happening: Hook(f"{URL}/{happening}", Origin.JOB) for happening in WebhookEvent}


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
def test_the_end_of_a_run_triggers_the_matching_deliveries(event: Event, expected: list[str]) -> None:
    assert [call.event.value for call in deliveries_for(ALL, end(event))] == expected


def test_without_webhooks_there_are_no_deliveries() -> None:
    assert deliveries_for({}, end(Event.EXHAUST)) == []
    assert deliveries_for({WebhookEvent.DEAD: ALL[WebhookEvent.DEAD]}, end(Event.FAIL)) == []


def test_a_delivery_has_the_origin_of_its_webhook() -> None:
    hook = Hook(URL, Origin.QUEUE)
    assert deliveries_for({WebhookEvent.SUCCESS: hook}, end(Event.SUCCEED)) == [Delivery(WebhookEvent.SUCCESS, hook)]


def test_the_most_specific_webhook_wins() -> None:
    queue, all_jobs = "https://queue/", "https://all/"
    chosen = choose_hooks(("https://job/", None, None), (queue, queue, None), (all_jobs, all_jobs, all_jobs))
    assert chosen == {
        WebhookEvent.SUCCESS: Hook("https://job/", Origin.JOB),
        WebhookEvent.FAILURE: Hook("https://queue/", Origin.QUEUE),
        WebhookEvent.DEAD: Hook("https://all/", Origin.CONFIG),
    }


def test_an_empty_url_disables_the_webhook_of_the_settings() -> None:
    assert choose_hooks((None, None, ""), NO_URLS, (None, None, URL)) == {}


def test_webhooks_are_found_by_their_origin() -> None:
    packed = pack_hooks(choose_hooks((URL, None, None), (None, URL, None), (URL, URL, URL)))
    assert [urls_set_by(who, packed) for who in Origin] == [(URL, None, None), (None, URL, None), (None, None, URL)]
    assert urls_set_by(Origin.JOB, None) == NO_URLS


def test_redacted_webhooks_have_no_secrets_and_cannot_be_imported() -> None:
    packed = pack_hooks({WebhookEvent.DEAD: Hook(URL, Origin.JOB)})
    assert packed is not None
    assert parse_hooks(packed, "hooks") == packed
    assert redact_hooks(packed) == {"dead": ["https://example.org/…", "job"]}
    with pytest.raises(InvalidInput, match=r"hooks\.dead: not a URL of visible"):
        parse_hooks(redact_hooks(packed), "hooks")


@pytest.mark.parametrize("value", ["x", {"later": [URL, "job"]}, {"dead": URL}, {"dead": [URL]}, {"dead": [URL, "me"]}])
def test_hooks_in_another_form_are_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^hooks"):
        parse_hooks(value, "hooks")
    assert parse_hooks({}, "hooks") is None


def test_none_disables_a_webhook() -> None:
    assert parse_url_or_none("None", "x") == ""
    assert parse_url_or_none(URL, "x") == URL
    assert redact_url("none") == "none"


def test_packed_webhooks_are_unpacked_unchanged() -> None:
    assert unpack_hooks(pack_hooks(ALL)) == ALL
    assert pack_hooks({}) is None
    assert unpack_hooks(None) == {}
    assert unpack_hooks({"a later idea": ["https://example.org/", "job"]}) == {}


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://127.0.0.1:8080/x?y=z",
        "https://[::1]:8443/",
        "https://hooks.example.org/T0/B1/abc",
    ],
)
def test_an_http_url_is_accepted_unchanged(url: str) -> None:
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
def test_an_invalid_url_is_refused_with_the_name_of_its_field(url: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url(url, "on_dead")
    assert refused.value.subject == "on_dead"
    assert "secret" not in refused.value.message


def test_a_redacted_url_has_no_secret() -> None:
    assert redact_url("https://hooks.example.org:8443/T0/B1/secret?key=secret") == "https://hooks.example.org:8443/…"


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


def test_an_imported_url_is_trusted_only_if_the_settings_have_it() -> None:
    packed = {"success": ["http://a/", "config"], "failure": ["http://b/", "config"], "dead": ["http://c/", "config"]}
    found = with_origin(packed, queue=("http://a/", None, None), all_jobs=(None, "http://b/", None))
    assert {name: said for name, (_, said) in found.items()} == {"success": "queue", "failure": "config", "dead": "job"}
