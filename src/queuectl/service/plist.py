"""The text of a property list for launchd. Pure, as unit.py."""

from __future__ import annotations

import math
import os
import plistlib
from typing import Any

from queuectl import home as places
from queuectl.service.order import Service


def label(service: Service) -> str:
    return f"org.{service.unit.replace('-', '.', 1)}"


def plist_text(service: Service) -> str:
    log = places.worker_log(service.home, service.name)
    content: dict[str, Any] = {
        "Label": label(service),
        "ProgramArguments": [*service.program, "worker", "start", "--name", service.name, *service.words],
        "EnvironmentVariables": dict(service.environment),
        "WorkingDirectory": os.path.dirname(service.home),
        "StandardOutPath": log,
        "StandardErrorPath": log,
        "RunAtLoad": True,
        # After a crash, and not after a stop that went well.
        "KeepAlive": {"SuccessfulExit": False},
        # What jobs have started is not for launchd to end: the next worker looks after it.
        "AbandonProcessGroup": True,
        "ProcessType": "Standard",
    }
    if service.run_as is not None:
        content["UserName"] = service.run_as
    if service.stop_timeout is not None:
        content["ExitTimeOut"] = math.ceil(service.stop_timeout)
    return plistlib.dumps(content, sort_keys=False).decode()
