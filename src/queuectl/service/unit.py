"""The text of a systemd unit. Pure: what is written is decided here and nowhere else.

Why each line is as it is: docs/how-to/run-under-systemd.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from queuectl.service.order import Service

MADE: Final = "# Made by queuectl service install, which writes it anew. Your own changes: systemctl edit "
STATE: Final = "/var/lib/"
# What a stop takes beyond the time of the jobs: TERM, kill-grace, KILL, writing it down.
MARGIN: Final = 30

# The control group of the worker itself, beside those of its runs: the one that process/cgroups.py knows.
SUBGROUP: Final = "queuectl-worker"
SUBGROUPS_SINCE: Final = 254

# Of a system service: none of it keeps a job from anything that its user may do. What needs other rights is sudo's
# business, and the first line of these is what forbids that.
HARDENING: Final = (
    "NoNewPrivileges=yes",
    "RestrictSUIDSGID=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectHostname=yes",
)


def unit_text(service: Service, *, knows_subgroups: bool = True) -> str:
    """`knows_subgroups`: systemd has `DelegateSubgroup=`, see SUBGROUPS_SINCE."""
    return "\n".join(_lines(service, knows_subgroups=knows_subgroups)) + "\n"


def _lines(service: Service, *, knows_subgroups: bool) -> Iterator[str]:
    scope = "" if service.is_system else "--user "
    yield f"{MADE}{scope}{service.unit}"
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
    yield f"ExecStart={_command(service, 'worker', 'start', '--name', service.name, *service.words)}"
    reload = _command(service, "worker", "restart", service.name)
    yield f"ExecReload={reload}"
    patience = "none" if service.stop_timeout is None else f"{service.stop_timeout:g}s"
    words = ("service", "end", service.name, "--timeout", patience, *(("--system",) if service.is_system else ()))
    yield f"ExecStop=-{_command(service, *words)} --unit %n"
    yield "KillMode=process"
    yield f"TimeoutStopSec={_stop_seconds(service.stop_timeout)}"
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


def _stop_seconds(patience: float | None) -> str:
    return "infinity" if patience is None else str(math.ceil(patience) + MARGIN)


def _state_directory(home: str) -> str | None:
    """Where systemd makes the home for the user of the service; None: it has to be there."""
    inner = home.removeprefix(STATE)
    plain = inner.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    return inner if inner != home and plain.isascii() and plain.isalnum() and ".." not in inner else None


def _command(service: Service, *words: str) -> str:
    # Of the program itself systemd expands % and no $; and it takes none whose path has a quote in it.
    program, *before = service.program
    if any(c in "'\"\\" or not c.isprintable() for c in program):
        program, *before = "/bin/sh", "-c", 'exec "$0" "$@"', *service.program
    return " ".join([quoted(program), *(quoted(word, expands=True) for word in (*before, *words))])


def quoted(text: str, *, expands: bool = False) -> str:
    """One word of a unit that stands for exactly `text`. `expands`: where $NAME would be put in for."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    inner = "".join(c if c.isprintable() else _escaped(c) for c in inner)
    if expands:
        inner = inner.replace("$", "$$")
    is_plain = inner == text.replace("%", "%%") and text and not any(c in " '#;" for c in text)
    return inner if is_plain else f'"{inner}"'


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
