"""The whole queue at a glance, and its figures."""

from __future__ import annotations

from typing import Any, Final

from queuectl.queue import inspect
from queuectl.web.api.operation import Call, Operation
from queuectl.web.api.schemas import ref
from queuectl.web.desk import Desk


def status(desk: Desk, call: Call) -> Any:
    return inspect.status(desk.reads, is_alive=desk.is_serving()).to_dict()


def metrics(desk: Desk, call: Call) -> Any:
    return inspect.metrics(desk.reads).to_dict()


OPERATIONS: Final = (
    Operation(
        "GET", "/status", status, "How many jobs are in each state, and who works.", ref("Status"), tag="figures"
    ),
    Operation(
        "GET", "/metrics", metrics, "Success, durations, waiting times, throughput.", ref("Metrics"), tag="figures"
    ),
)
