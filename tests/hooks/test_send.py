from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from queuectl.errors import CallRefused, CallUnanswered
from queuectl.hooks.send import post
from tests.hooks.receiver import Receiver, receiving, say


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def test_a_call_brings_body_headers_path_and_query(receiver: Receiver) -> None:
    receiver.answers.append(say(200, "thanks\nmore"))
    answer = post(receiver.url, b"{}", {"Queuectl-Event": "dead"}, private=True)
    (got,) = receiver.received
    assert (answer.status, answer.text) == (200, "thanks")
    assert (got.path, got.body, got.headers["queuectl-event"]) == ("/hook?key=hidden", b"{}", "dead")
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_job_cannot_have_a_private_address_called(receiver: Receiver) -> None:
    with pytest.raises(CallRefused, match="private"):
        post(receiver.url, b"{}", {}, private=False)
    assert receiver.received == []


def test_a_redirect_is_a_failure_and_is_not_followed(receiver: Receiver) -> None:
    with receiving() as elsewhere:
        receiver.answers.append(say(302, Location=elsewhere.url))
        with pytest.raises(CallUnanswered, match="302"):
            post(receiver.url, b"{}", {}, private=True)
        assert elsewhere.received == []


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_an_answer_that_is_no_yes_is_a_failure(receiver: Receiver, status: int) -> None:
    receiver.answers.append(say(status))
    with pytest.raises(CallUnanswered, match=str(status)):
        post(receiver.url, b"{}", {}, private=True)


def test_nobody_there_is_a_failure_that_tells_nothing_of_the_url_but_its_host() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/secret-path"
        with pytest.raises(CallUnanswered, match="cannot connect") as failed:
            post(url, b"{}", {}, private=True)
    assert "secret-path" not in failed.value.message


def test_somebody_who_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(CallUnanswered, match="no answer"):
            post(url, b"{}", {}, private=True, seconds=0.05)


def test_a_receiver_without_tls_is_not_talked_to_over_https(receiver: Receiver) -> None:
    with pytest.raises(CallUnanswered, match="TLS"):
        post(receiver.url.replace("http:", "https:"), b"{}", {}, private=True)
    assert receiver.received == []


def test_the_connection_goes_to_the_address_that_was_judged(receiver: Receiver) -> None:
    """Whatever the name stands for by then."""
    url = f"http://rebound.invalid:{receiver.port}/"
    post(url, b"{}", {}, private=True, resolving=lambda host, port: ["127.0.0.1"])
    assert receiver.received[0].headers["host"] == f"rebound.invalid:{receiver.port}"
