from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from queuectl.errors import WebhookRefused, WebhookUnanswered
from queuectl.webhooks.client import post
from tests.webhooks.receiver import Receiver, receiving, say


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def test_a_request_has_body_headers_path_and_query(receiver: Receiver) -> None:
    receiver.answers.append(say(200, "thanks\nmore"))
    answer = post(receiver.url, b"{}", {"Queuectl-Event": "dead"}, private=True)
    (got,) = receiver.received
    assert (answer.status, answer.text) == (200, "thanks")
    assert (got.path, got.body, got.headers["queuectl-event"]) == ("/hook?key=hidden", b"{}", "dead")
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_job_cannot_use_a_private_address(receiver: Receiver) -> None:
    with pytest.raises(WebhookRefused, match="private"):
        post(receiver.url, b"{}", {}, private=False)
    assert receiver.received == []


def test_a_redirect_is_a_failure_and_is_not_followed(receiver: Receiver) -> None:
    with receiving() as elsewhere:
        receiver.answers.append(say(302, Location=elsewhere.url))
        with pytest.raises(WebhookUnanswered, match="302"):
            post(receiver.url, b"{}", {}, private=True)
        assert elsewhere.received == []


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_status_other_than_2xx_is_a_failure(receiver: Receiver, status: int) -> None:
    receiver.answers.append(say(status))
    with pytest.raises(WebhookUnanswered, match=str(status)):
        post(receiver.url, b"{}", {}, private=True)


def test_a_refused_connection_is_an_error_that_shows_only_the_host_of_the_url() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/secret-path"
        with pytest.raises(WebhookUnanswered, match="cannot connect") as failed:
            post(url, b"{}", {}, private=True)
    assert "secret-path" not in failed.value.message


def test_a_receiver_that_never_answers_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(WebhookUnanswered, match="no answer"):
            post(url, b"{}", {}, private=True, seconds=0.05)


def test_a_receiver_without_tls_fails_over_https(receiver: Receiver) -> None:
    with pytest.raises(WebhookUnanswered, match="TLS"):
        post(receiver.url.replace("http:", "https:"), b"{}", {}, private=True)
    assert receiver.received == []


def test_the_connection_goes_to_the_checked_address(receiver: Receiver) -> None:
    """Whatever the name stands for by then."""
    url = f"http://rebound.invalid:{receiver.port}/"
    post(url, b"{}", {}, private=True, resolver=lambda host, port: ["127.0.0.1"])
    assert receiver.received[0].headers["host"] == f"rebound.invalid:{receiver.port}"
