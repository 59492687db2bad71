"""Services: a worker that systemd or launchd starts and restarts. Install, inspect and remove one.

docs/guides/systemd.md explains each line of a unit.
"""

from __future__ import annotations

import math
import os
import plistlib
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from queuectl import errors
from queuectl import paths as places

GENERATED_MARK: Final = "# Made by queuectl service install"
QUERY_TIMEOUT_SECONDS: Final = 30.0


class Service(NamedTuple):
    """A service. To find one, its name, its unit, and `is_system` suffice."""

    name: str  # of the worker, and so of the service
    unit: str  # its name in the manager, without a suffix: queuectl, queuectl-mail
    home: str
    is_system: bool
    program: tuple[str, ...] = ()  # the argument vector that runs queuectl; the first element is an absolute path
    arguments: tuple[str, ...] = ()  # of `worker start`
    environment: Mapping[str, str] = {}
    run_as: str | None = None  # None: the user of the manager
    stop_timeout: float | None = None  # seconds that jobs have to finish when the service stops; None: no limit
    may_sudo: bool = False


class ServiceStatus(NamedTuple):
    """The state of a service, as the manager reports it."""

    enabled: bool
    active: str | None  # as the manager prints it: active, inactive, failed, activating …
    pid: int | None
    since: str | None
    status: str | None  # the status text that the worker sends, see sd_notify.py
    restarts: int


NO_STATUS: Final = ServiceStatus(enabled=False, active=None, pid=None, since=None, status=None, restarts=0)


CommandResult = subprocess.CompletedProcess[str]


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
        return subprocess.run(  # noqa: S603 - fixed arguments
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=QUERY_TIMEOUT_SECONDS if is_query else None,
        )
    except subprocess.TimeoutExpired:
        return CommandResult(arguments, 1, "", f"{arguments[0]} does not answer")
    except OSError as exc:
        manager = "systemd" if arguments[0] == "systemctl" else "launchd"
        raise errors.ServiceManagerMissing(manager, f"{arguments[0]}: {(exc.strerror or str(exc)).lower()}") from exc


def is_ours(text: str) -> bool:
    """Whether queuectl wrote this file: it changes no other."""
    return text.startswith(GENERATED_MARK) or "<key>ProgramArguments</key>" in text


def require_success(result: CommandResult, what: str) -> CommandResult:
    if result.returncode:
        raise errors.ServiceFailed(f"{what}: {first_line(result.stderr) or f'exit {result.returncode}'}")
    return result


def first_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    # systemctl prints advice after the reason.
    return " ".join(lines[0].split()) if lines else ""


# ── systemd ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

STATE_ROOT: Final = "/var/lib/"
# Time that a stop takes after the stop timeout of the jobs: SIGTERM, kill grace period, SIGKILL, recording the results.
STOP_MARGIN_SECONDS: Final = 30

# The cgroup of the worker itself, beside those of its runs: the name that process/cgroups.py uses.
SUBGROUP: Final = "queuectl-worker"
SUBGROUPS_SINCE: Final = 254  # the version of systemd that introduced DelegateSubgroup=

# For a system service: none of these restricts what the user of a job may do, except sudo, which NoNewPrivileges forbids.
HARDENING: Final = (
    "NoNewPrivileges=yes",
    "RestrictSUIDSGID=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectHostname=yes",
)


def unit_text(service: Service, *, knows_subgroups: bool = True) -> str:
    """Render the unit. `knows_subgroups`: this version of systemd has `DelegateSubgroup=`."""
    return "\n".join(_unit_lines(service, knows_subgroups=knows_subgroups)) + "\n"


def _unit_lines(service: Service, *, knows_subgroups: bool) -> Iterator[str]:
    scope = "" if service.is_system else "--user "
    yield f"{GENERATED_MARK}, which overwrites it. Your own changes: systemctl edit {scope}{service.unit}"
    yield "[Unit]"
    yield f"Description=queuectl worker {service.name}"
    if service.is_system:
        yield "Wants=network-online.target"
        yield "After=local-fs.target network-online.target"
    yield "StartLimitIntervalSec=0"
    yield ""
    yield "[Service]"
    yield "Type=notify"
    if service.run_as is not None:
        yield f"User={service.run_as}"
    if service.is_system and (folder := _state_directory(service.home)):
        yield f"StateDirectory={folder}"
        yield "StateDirectoryMode=0700"
    for name, value in service.environment.items():
        yield f"Environment={quoted(f'{name}={value}')}"
    yield f"ExecStart={_exec_line(service, 'worker', 'start', '--name', service.name, *service.arguments)}"
    reload = _exec_line(service, "worker", "restart", service.name)
    yield f"ExecReload={reload}"
    timeout = "none" if service.stop_timeout is None else f"{service.stop_timeout:g}s"
    arguments = ("service", "end", service.name, "--timeout", timeout, *(("--system",) if service.is_system else ()))
    yield f"ExecStop=-{_exec_line(service, *arguments)} --unit %n"
    yield "KillMode=process"
    stop = service.stop_timeout
    yield f"TimeoutStopSec={'infinity' if stop is None else math.ceil(stop) + STOP_MARGIN_SECONDS}"
    yield "TimeoutStartSec=2min"
    yield "WatchdogSec=2min"
    yield "WatchdogSignal=SIGKILL"
    yield "Restart=on-failure"
    yield "RestartSec=2s"
    yield "SuccessExitStatus=130 143"
    yield "OOMPolicy=continue"
    yield "Delegate=cpu memory pids"
    if knows_subgroups:
        yield f"DelegateSubgroup={SUBGROUP}"
    if service.is_system and not service.may_sudo:
        yield from HARDENING
    yield ""
    yield "[Install]"
    yield f"WantedBy={'multi-user.target' if service.is_system else 'default.target'}"


def _state_directory(home: str) -> str | None:
    """The data directory relative to /var/lib if systemd can create it; None: it has to exist."""
    inner = home.removeprefix(STATE_ROOT)
    plain = inner.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    return inner if inner != home and plain.isascii() and plain.isalnum() and ".." not in inner else None


def _exec_line(service: Service, *arguments: str) -> str:
    # In the program path systemd expands % but not $, and it refuses a path with quotes.
    program, *before = service.program
    if any(c in "'\"\\" or not c.isprintable() for c in program):
        program, *before = "/bin/sh", "-c", 'exec "$0" "$@"', *service.program
    return " ".join([quoted(program), *(quoted(one, expands=True) for one in (*before, *arguments))])


def quoted(text: str, *, expands: bool = False) -> str:
    """Quote one argument of a unit. `expands`: systemd expands $NAME there."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    inner = "".join(c if c.isprintable() else "".join(f"\\x{byte:02x}" for byte in c.encode()) for c in inner)
    if expands:
        inner = inner.replace("$", "$$")
    is_plain = inner == text.replace("%", "%%") and text and not any(c in " '#;" for c in text)
    return inner if is_plain else f'"{inner}"'


BOOTED: Final = "/run/systemd/system"  # exists if systemd is running, see sd_booted(3)
PROPERTIES: Final = ("ActiveState", "MainPID", "ActiveEnterTimestamp", "StatusText", "NRestarts", "UnitFileState")


class Systemd:
    def __init__(self, *, is_system: bool, config: str) -> None:
        """`config`: the configuration directory of the user, such as ~/.config."""
        self.name = "systemd"
        self._scope = () if is_system else ("--user",)
        self._folder = "/etc/systemd/system" if is_system else os.path.join(config, "systemd", "user")

    def path(self, service: Service) -> str:
        return os.path.join(self._folder, f"{service.unit}.service")

    def text(self, service: Service) -> str:
        return unit_text(service, knows_subgroups=self._version() >= SUBGROUPS_SINCE)

    def _version(self) -> int:
        """The version of systemd. Without systemd the unit is for another host: assume a current version."""
        try:
            parts = run_command("systemctl", "--version").stdout.split()
        except errors.ServiceManagerMissing:
            return SUBGROUPS_SINCE
        return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else SUBGROUPS_SINCE

    def check(self) -> None:
        """Raises ServiceManagerMissing unless systemd runs here and answers."""
        if not os.path.isdir(BOOTED):
            raise errors.ServiceManagerMissing("systemd", "this system was not started by systemd")
        result = self._ask("show-environment")
        if result.returncode:
            raise errors.ServiceManagerMissing("systemd", first_line(result.stderr) or "it does not answer")

    def begin(self, service: Service, *, is_changed: bool) -> None:
        """Enable and start a service whose file has been written. Raises ServiceFailed."""
        unit = f"{service.unit}.service"
        if is_changed:
            self._do("daemon-reload")
        self._do("enable", "--quiet", unit)
        try:
            # A restart interrupts no job: running jobs continue, and the new worker adopts them.
            self._do("restart" if is_changed else "start", unit)
        except errors.ServiceFailed as failed:
            hint = f"journalctl {' '.join((*self._scope, '-u', unit))} shows its log"
            raise errors.ServiceFailed(failed.message, hint=hint) from failed

    def end(self, service: Service) -> None:
        """Stop the service gracefully and disable it. Its file still exists."""
        self._do("disable", "--quiet", "--now", f"{service.unit}.service")

    def forget(self, service: Service) -> None:
        self._do("daemon-reload")
        self._ask("reset-failed", f"{service.unit}.service")  # fails if the unit had not failed

    def status(self, service: Service) -> ServiceStatus:
        result = self._do("show", f"--property={','.join(PROPERTIES)}", f"{service.unit}.service")
        facts = dict(line.partition("=")[::2] for line in result.stdout.splitlines())
        pid = facts.get("MainPID", "0")
        return ServiceStatus(
            enabled=facts.get("UnitFileState", "").startswith("enabled"),
            active=facts.get("ActiveState", "unknown"),
            pid=int(pid) if pid.isdecimal() and pid != "0" else None,
            since=facts.get("ActiveEnterTimestamp") or None,
            status=facts.get("StatusText") or None,
            restarts=int(facts["NRestarts"]) if facts.get("NRestarts", "").isdecimal() else 0,
        )

    def is_restarting(self, unit: str) -> bool:
        """Whether the current stop is part of a restart. False if that is unknown."""
        result = self._ask("list-jobs", "--no-legend", "--plain", unit)
        return any(line.split()[1:3] == [unit, "restart"] for line in result.stdout.splitlines())

    def _ask(self, *arguments: str) -> CommandResult:
        return run_command("systemctl", *self._scope, *arguments)

    def _do(self, *arguments: str) -> CommandResult:
        return require_success(self._ask(*arguments), f"systemctl {arguments[0]}")


# ── launchd ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
        if result.returncode:
            raise errors.ServiceManagerMissing("launchd", first_line(result.stderr) or "it does not answer")

    def begin(self, service: Service, *, is_changed: bool) -> None:
        target = f"{self._domain}/{label(service)}"
        is_loaded = run_command("launchctl", "print", target).returncode == 0
        if is_loaded and not is_changed:
            return
        if is_loaded:
            self._do("bootout", target)
        self._do("bootstrap", self._domain, self.path(service))

    def end(self, service: Service) -> None:
        target = f"{self._domain}/{label(service)}"
        if run_command("launchctl", "print", target).returncode == 0:
            self._do("bootout", target)

    def forget(self, service: Service) -> None:
        """Nothing to do: launchd forgets a service that is not loaded."""

    def status(self, service: Service) -> ServiceStatus:
        result = run_command("launchctl", "print", f"{self._domain}/{label(service)}")
        facts = dict(line.strip().partition(" = ")[::2] for line in result.stdout.splitlines())
        is_loaded, pid = result.returncode == 0, facts.get("pid", "")
        return ServiceStatus(
            enabled=is_loaded,
            active="active" if pid else "inactive",
            pid=int(pid) if pid.isdecimal() else None,
            since=None,
            status=None,
            restarts=0,
        )

    def _do(self, *arguments: str) -> CommandResult:
        return require_success(run_command("launchctl", *arguments), f"launchctl {arguments[0]}")


Manager = Systemd | Launchd
