"""Services: a worker that the service manager of the system starts and restarts. Install, inspect and remove one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from queuectl import errors

GENERATED_MARK: Final = "# Made by queuectl service install"
QUERY_TIMEOUT_SECONDS: Final = 30.0


class Service(NamedTuple):
    name: str  # of the worker, and so of the service
    unit: str  # its name in the manager, without a suffix: queuectl, queuectl-mail
    program: tuple[str, ...]  # the argument vector that runs queuectl; the first element is an absolute path
    arguments: tuple[str, ...]  # of `worker start`
    environment: Mapping[str, str]
    home: str
    is_system: bool
    run_as: str | None  # None: the user of the manager
    stop_timeout: float | None  # seconds that jobs have to finish when the service stops; None: no limit
    may_sudo: bool


class ServiceStatus(NamedTuple):
    """The state of a service, as the manager reports it."""

    is_enabled: bool
    active: str  # as the manager prints it: active, inactive, failed, activating …
    pid: int | None
    since: str | None
    status: str | None  # the status text that the worker sends, see sd_notify.py
    restarts: int


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


class Manager(Protocol):
    """The service manager of the system, or of a user. `name`: for messages."""

    name: str

    def path(self, service: Service) -> str: ...

    def text(self, service: Service) -> str: ...

    def check(self) -> None:
        """Raises ServiceManagerMissing unless the manager is available and answers."""
        ...

    def begin(self, service: Service, *, is_changed: bool) -> None:
        """Enable and start a service whose file has been written. Raises ServiceFailed."""
        ...

    def end(self, service: Service) -> None:
        """Stop the service gracefully and disable it. Its file still exists."""
        ...

    def forget(self, service: Service) -> None:
        """Reload the manager after the file was removed."""
        ...

    def status(self, service: Service) -> ServiceStatus: ...


class Installed(NamedTuple):
    path: str
    is_changed: bool  # the file was created or its content changed
    status: ServiceStatus


def install(manager: Manager, service: Service) -> Installed:
    """Write the file of the service, enable and start it. Idempotent: the same arguments change nothing."""
    manager.check()
    path, text = manager.path(service), manager.text(service)
    before = read(path)
    if before is not None and not is_ours(before):
        raise errors.FileExists(path)
    is_changed = before != text
    if is_changed:
        _write(path, text, mode=0o644 if service.is_system else 0o600)
    manager.begin(service, is_changed=is_changed)
    return Installed(path, is_changed, manager.status(service))


def uninstall(manager: Manager, service: Service) -> bool:
    """Stop and remove the service. Running jobs have the stop timeout to finish. Returns False if there was none."""
    path = manager.path(service)
    before = read(path)
    if before is None:
        return False
    if not is_ours(before):
        raise errors.FileExists(path)
    manager.check()
    manager.end(service)
    try:
        os.unlink(path)
    except OSError as exc:
        raise errors.FileUnwritable(path, exc.strerror or str(exc)) from exc
    manager.forget(service)
    return True


def read(path: str) -> str | None:
    """The content of a file; None if it does not exist."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise errors.FileUnreadable(path, exc.strerror or str(exc)) from exc


def _write(path: str, text: str, *, mode: int) -> None:
    """Write atomically: the manager may read the file at any time."""
    new = f"{path}.new"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(new, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as exc:
        raise errors.FileUnwritable(path, exc.strerror or str(exc)) from exc


def run_command(*arguments: str) -> CommandResult:
    """Run systemctl or launchctl. Raises ServiceManagerMissing if the program does not exist."""
    try:
        # No timeout for starts and stops: the manager has its own.
        is_query = arguments[-1] in ("show-environment", "--version") or "list-jobs" in arguments
        done = subprocess.run(  # noqa: S603 - fixed arguments
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=QUERY_TIMEOUT_SECONDS if is_query else None,
        )
    except subprocess.TimeoutExpired:
        return CommandResult(1, "", f"{arguments[0]} does not answer")
    except OSError as exc:
        manager = "systemd" if arguments[0] == "systemctl" else "launchd"
        raise errors.ServiceManagerMissing(manager, f"{arguments[0]}: {(exc.strerror or str(exc)).lower()}") from exc
    return CommandResult(done.returncode, done.stdout, done.stderr)


def is_ours(text: str) -> bool:
    """Whether queuectl wrote this file: it changes no other."""
    return text.startswith(GENERATED_MARK) or "<key>ProgramArguments</key>" in text


def require_success(result: CommandResult, what: str) -> CommandResult:
    if result.code:
        raise errors.ServiceFailed(f"{what}: {first_line(result.err) or f'exit {result.code}'}")
    return result


def first_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    # systemctl prints advice after the reason.
    return " ".join(lines[0].split()) if lines else ""
