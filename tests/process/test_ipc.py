"""The channel between a worker and its supervisor: neither end ever blocks."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from queuectl.process.ipc import Channel, Disconnected, Message
from tests.wait import wait_until


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    made = [Channel(end) for end in socket.socketpair()]
    yield made[0], made[1]
    for channel in made:
        channel.close()


def test_messages_arrive_in_their_order(ends: tuple[Channel, Channel]) -> None:
    ours, its = ends
    for number in range(3):
        ours.send({"op": "ping", "number": number})
    assert its.wait(20)
    assert [message["number"] for message in its.receive()] == [0, 1, 2]
    assert its.receive() == []
    assert not its.wait(0)


def test_what_the_other_end_does_not_take_is_kept_and_sent_later(ends: tuple[Channel, Channel]) -> None:
    ours, its = ends
    for number in range(50):
        ours.send({"number": number, "data": "x" * 100_000})
    assert ours.has_outgoing
    found: list[Message] = []

    def receive() -> bool:
        found.extend(its.receive())
        ours.flush()
        return len(found) == 50

    wait_until(receive, every=0.001, what="all messages")
    assert [message["number"] for message in found] == list(range(50))
    assert not ours.has_outgoing


@pytest.mark.parametrize("data", [b"", b"plain", "żółw".encode(), b"\xff\x00\xfe", b"\n", b"\xed\xa0\x80"])
def test_any_bytes_survive_the_channel(ends: tuple[Channel, Channel], data: bytes) -> None:
    ours, its = ends
    ours.send({"data": data})
    assert its.wait(20)
    (message,) = its.receive()
    assert message["data"] == data


def test_the_end_of_the_other_side_is_noticed_after_its_last_message(ends: tuple[Channel, Channel]) -> None:
    ours, its = ends
    ours.send({"op": "ping"})
    ours.close_writing()
    assert its.wait(20)
    assert its.receive() == [{"op": "ping"}]
    with pytest.raises(Disconnected):
        its.receive()
    its.send({"stays": True})
    assert ours.wait(20)
    assert ours.receive() == [{"stays": True}], "it can still answer"
    its.close()
    with pytest.raises(Disconnected):
        ours.receive()


def test_a_descriptor_is_handed_over(ends: tuple[Channel, Channel]) -> None:
    ours, its = ends
    reader, writer = os.pipe()
    ours.send_descriptor(writer)
    os.close(writer)
    received = its.receive_descriptor()
    assert not os.get_inheritable(received)
    os.write(received, b"!")
    os.close(received)
    assert os.read(reader, 2) == b"!"
    os.close(reader)


def test_a_descriptor_is_not_waited_for_if_the_other_end_is_dead(ends: tuple[Channel, Channel]) -> None:
    ours, its = ends
    ours.close()
    with pytest.raises(Disconnected):
        its.receive_descriptor()
    with pytest.raises(Disconnected):
        its.send_descriptor(0)
