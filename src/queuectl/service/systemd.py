"""systemd: the text of a unit, and running `systemctl`. docs/guides/systemd.md explains each line of the unit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Final

from queuectl import errors
from queuectl.service.manager import (
    GENERATED_MARK,
    CommandResult,
    Service,
    ServiceStatus,
    first_line,
    require_success,
    run_command,
)

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
    return "\n".join(_lines(service, knows_subgroups=knows_subgroups)) + "\n"


def _lines(service: Service, *, knows_subgroups: bool) -> Iterator[str]:
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
    yield f"ExecStart={_command(service, 'worker', 'start', '--name', service.name, *service.arguments)}"
    reload = _command(service, "worker", "restart", service.name)
    yield f"ExecReload={reload}"
    timeout = "none" if service.stop_timeout is None else f"{service.stop_timeout:g}s"
    arguments = ("service", "end", service.name, "--timeout", timeout, *(("--system",) if service.is_system else ()))
    yield f"ExecStop=-{_command(service, *arguments)} --unit %n"
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


def _command(service: Service, *arguments: str) -> str:
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
            parts = run_command("systemctl", "--version").out.split()
        except errors.ServiceManagerMissing:
            return SUBGROUPS_SINCE
        return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else SUBGROUPS_SINCE

    def check(self) -> None:
        if not os.path.isdir(BOOTED):
            raise errors.ServiceManagerMissing("systemd", "this system was not started by systemd")
        result = self._ask("show-environment")
        if result.code:
            raise errors.ServiceManagerMissing("systemd", first_line(result.err) or "it does not answer")

    def begin(self, service: Service, *, is_changed: bool) -> None:
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
        self._do("disable", "--quiet", "--now", f"{service.unit}.service")

    def forget(self, service: Service) -> None:
        self._do("daemon-reload")
        self._ask("reset-failed", f"{service.unit}.service")  # fails if the unit had not failed

    def status(self, service: Service) -> ServiceStatus:
        result = self._do("show", f"--property={','.join(PROPERTIES)}", f"{service.unit}.service")
        facts = dict(line.partition("=")[::2] for line in result.out.splitlines())
        pid = facts.get("MainPID", "0")
        return ServiceStatus(
            is_enabled=facts.get("UnitFileState", "").startswith("enabled"),
            active=facts.get("ActiveState", "unknown"),
            pid=int(pid) if pid.isdecimal() and pid != "0" else None,
            since=facts.get("ActiveEnterTimestamp") or None,
            status=facts.get("StatusText") or None,
            restarts=int(facts["NRestarts"]) if facts.get("NRestarts", "").isdecimal() else 0,
        )

    def is_restarting(self, unit: str) -> bool:
        """Whether the current stop is part of a restart. False if that is unknown."""
        result = self._ask("list-jobs", "--no-legend", "--plain", unit)
        return any(line.split()[1:3] == [unit, "restart"] for line in result.out.splitlines())

    def _ask(self, *arguments: str) -> CommandResult:
        return run_command("systemctl", *self._scope, *arguments)

    def _do(self, *arguments: str) -> CommandResult:
        return require_success(self._ask(*arguments), f"systemctl {arguments[0]}")
