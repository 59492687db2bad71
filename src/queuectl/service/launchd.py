"""launchd: the text of a property list, and running `launchctl`."""

from __future__ import annotations

import math
import os
import plistlib
from typing import Any

from queuectl import errors
from queuectl import paths as places
from queuectl.service.manager import CommandResult, Service, ServiceStatus, first_line, require_success, run_command


def label(service: Service) -> str:
    return f"org.{service.unit.replace('-', '.', 1)}"


def plist_text(service: Service) -> str:
    log = places.worker_log(service.home, service.name)
    content: dict[str, Any] = {
        "Label": label(service),
        "ProgramArguments": [*service.program, "worker", "start", "--name", service.name, *service.arguments],
        "EnvironmentVariables": dict(service.environment),
        "WorkingDirectory": os.path.dirname(service.home),
        "StandardOutPath": log,
        "StandardErrorPath": log,
        "RunAtLoad": True,
        # Restart after a crash, not after a clean stop.
        "KeepAlive": {"SuccessfulExit": False},
        # launchd must not kill the jobs: the next worker adopts them.
        "AbandonProcessGroup": True,
        "ProcessType": "Standard",
    }
    if service.run_as is not None:
        content["UserName"] = service.run_as
    if service.stop_timeout is not None:
        content["ExitTimeOut"] = math.ceil(service.stop_timeout)
    return plistlib.dumps(content, sort_keys=False).decode()


class Launchd:
    def __init__(self, *, is_system: bool, uid: int, user_home: str) -> None:
        self.name = "launchd"
        self._domain = "system" if is_system else f"gui/{uid}"
        self._folder = "/Library/LaunchDaemons" if is_system else os.path.join(user_home, "Library", "LaunchAgents")

    def path(self, service: Service) -> str:
        return os.path.join(self._folder, f"{label(service)}.plist")

    def text(self, service: Service) -> str:
        return plist_text(service)

    def check(self) -> None:
        result = run_command("launchctl", "print", self._domain)
        if result.code:
            raise errors.ServiceManagerMissing("launchd", first_line(result.err) or "it does not answer")

    def begin(self, service: Service, *, is_changed: bool) -> None:
        target = f"{self._domain}/{label(service)}"
        is_loaded = run_command("launchctl", "print", target).code == 0
        if is_loaded and not is_changed:
            return
        if is_loaded:
            self._do("bootout", target)
        self._do("bootstrap", self._domain, self.path(service))

    def end(self, service: Service) -> None:
        target = f"{self._domain}/{label(service)}"
        if run_command("launchctl", "print", target).code == 0:
            self._do("bootout", target)

    def forget(self, service: Service) -> None:
        """Nothing to do: launchd forgets a service that is not loaded."""

    def status(self, service: Service) -> ServiceStatus:
        result = run_command("launchctl", "print", f"{self._domain}/{label(service)}")
        facts = dict(line.strip().partition(" = ")[::2] for line in result.out.splitlines())
        is_loaded, pid = result.code == 0, facts.get("pid", "")
        return ServiceStatus(
            is_enabled=is_loaded,
            active="active" if pid else "inactive",
            pid=int(pid) if pid.isdecimal() else None,
            since=None,
            status=None,
            restarts=0,
        )

    def _do(self, *arguments: str) -> CommandResult:
        return require_success(run_command("launchctl", *arguments), f"launchctl {arguments[0]}")
