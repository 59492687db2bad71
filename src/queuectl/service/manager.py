"""Asking the service manager: systemd by `systemctl`, launchd by `launchctl`. The only callers of these."""

from __future__ import annotations

import os
import subprocess
from typing import Final, NamedTuple, Protocol

from queuectl import errors
from queuectl.service.order import Service, Standing
from queuectl.service.plist import label, plist_text
from queuectl.service.unit import MADE, SUBGROUPS_SINCE, unit_text

BOOTED: Final = "/run/systemd/system"  # as sd_booted(3) has it
PROPERTIES: Final = ("ActiveState", "MainPID", "ActiveEnterTimestamp", "StatusText", "NRestarts", "UnitFileState")
LONGEST_CALL: Final = 30.0


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Manager(Protocol):
    """One of a kind: of the whole system, or of this user. `name` is what people call it."""

    name: str

    def path(self, service: Service) -> str: ...

    def text(self, service: Service) -> str: ...

    def check(self) -> None:
        """Raises ServiceManagerMissing unless it is there and can be asked."""
        ...

    def begin(self, service: Service, *, is_changed: bool) -> None:
        """The file is in its place: from now on it is started with the system, and it runs now, as the file says.

        Raises ServiceFailed.
        """
        ...

    def end(self, service: Service) -> None:
        """Stop it, in peace, and start it no more. The file is still there."""
        ...

    def forget(self, service: Service) -> None:
        """The file is gone."""
        ...

    def standing(self, service: Service) -> Standing: ...


class Systemd:
    def __init__(self, *, is_system: bool, config: str) -> None:
        """`config`: the directory of the user's settings, such as ~/.config."""
        self.name = "systemd"
        self._scope = () if is_system else ("--user",)
        self._folder = "/etc/systemd/system" if is_system else os.path.join(config, "systemd", "user")

    def path(self, service: Service) -> str:
        return os.path.join(self._folder, f"{service.unit}.service")

    def text(self, service: Service) -> str:
        return unit_text(service, knows_subgroups=self._version() >= SUBGROUPS_SINCE)

    def _version(self) -> int:
        """Where there is none, that of those to come: the unit is made for another machine."""
        try:
            words = _call("systemctl", "--version").out.split()
        except errors.ServiceManagerMissing:
            return SUBGROUPS_SINCE
        return int(words[1]) if len(words) > 1 and words[1].isdecimal() else SUBGROUPS_SINCE

    def check(self) -> None:
        if not os.path.isdir(BOOTED):
            raise errors.ServiceManagerMissing("systemd", "this system was not started by systemd")
        said = self._ask("show-environment")
        if said.code:
            raise errors.ServiceManagerMissing("systemd", _last_line(said.err) or "it does not answer")

    def begin(self, service: Service, *, is_changed: bool) -> None:
        unit = f"{service.unit}.service"
        if is_changed:
            self._do("daemon-reload")
        self._do("enable", "--quiet", unit)
        try:
            # A restart costs no job: what runs goes on, and the worker that comes looks after it.
            self._do("restart" if is_changed else "start", unit)
        except errors.ServiceFailed as failed:
            raise errors.ServiceFailed(failed.problem, hint=self._where_to_look(unit)) from failed

    def end(self, service: Service) -> None:
        self._do("disable", "--quiet", "--now", f"{service.unit}.service")

    def forget(self, service: Service) -> None:
        self._do("daemon-reload")
        self._ask("reset-failed", f"{service.unit}.service")  # says so if it had not failed

    def standing(self, service: Service) -> Standing:
        said = self._do("show", f"--property={','.join(PROPERTIES)}", f"{service.unit}.service")
        facts = dict(line.partition("=")[::2] for line in said.out.splitlines())
        pid = facts.get("MainPID", "0")
        return Standing(
            is_enabled=facts.get("UnitFileState", "").startswith("enabled"),
            active=facts.get("ActiveState", "unknown"),
            pid=int(pid) if pid.isdecimal() and pid != "0" else None,
            since=facts.get("ActiveEnterTimestamp") or None,
            status=facts.get("StatusText") or None,
            restarts=int(facts["NRestarts"]) if facts.get("NRestarts", "").isdecimal() else 0,
        )

    def is_restarting(self, unit: str) -> bool:
        """Whether the stop that goes on is one half of a restart. False if nobody can tell."""
        said = self._ask("list-jobs", "--no-legend", "--plain", unit)
        return any(line.split()[1:3] == [unit, "restart"] for line in said.out.splitlines())

    def _where_to_look(self, unit: str) -> str:
        return f"journalctl {' '.join((*self._scope, '-u', unit))} shows what it said"

    def _ask(self, *words: str) -> Said:
        return _call("systemctl", *self._scope, *words)

    def _do(self, *words: str) -> Said:
        return _unless_failed(self._ask(*words), f"systemctl {words[0]}")


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
        said = _call("launchctl", "print", self._domain)
        if said.code:
            raise errors.ServiceManagerMissing("launchd", _last_line(said.err) or "it does not answer")

    def begin(self, service: Service, *, is_changed: bool) -> None:
        target = f"{self._domain}/{label(service)}"
        is_loaded = _call("launchctl", "print", target).code == 0
        if is_loaded and not is_changed:
            return
        if is_loaded:
            self._do("bootout", target)
        self._do("bootstrap", self._domain, self.path(service))

    def end(self, service: Service) -> None:
        target = f"{self._domain}/{label(service)}"
        if _call("launchctl", "print", target).code == 0:
            self._do("bootout", target)

    def forget(self, service: Service) -> None:
        """It knows nothing more of what is not loaded."""

    def standing(self, service: Service) -> Standing:
        said = _call("launchctl", "print", f"{self._domain}/{label(service)}")
        facts = dict(line.strip().partition(" = ")[::2] for line in said.out.splitlines())
        is_loaded, pid = said.code == 0, facts.get("pid", "")
        return Standing(
            is_enabled=is_loaded,
            active="active" if pid else "inactive",
            pid=int(pid) if pid.isdecimal() else None,
            since=None,
            status=None,
            restarts=0,
        )

    def _do(self, *words: str) -> Said:
        return _unless_failed(_call("launchctl", *words), f"launchctl {words[0]}")


def _call(*words: str) -> Said:
    """Raises ServiceManagerMissing if there is no such program."""
    try:
        # No limit of time where something is started or stopped: the manager has one of its own.
        is_question = words[-1] in ("show-environment", "--version") or "list-jobs" in words
        done = subprocess.run(  # noqa: S603 - words of our own
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=LONGEST_CALL if is_question else None,
        )
    except subprocess.TimeoutExpired:
        return Said(1, "", f"{words[0]} does not answer")
    except OSError as exc:
        manager = "systemd" if words[0] == "systemctl" else "launchd"
        raise errors.ServiceManagerMissing(manager, f"{words[0]}: {(exc.strerror or str(exc)).lower()}") from exc
    return Said(done.returncode, done.stdout, done.stderr)


def is_ours(text: str) -> bool:
    """Whether a file in that place was written by us: any other is not for us to change."""
    return text.startswith(MADE) or "<key>ProgramArguments</key>" in text


def _unless_failed(said: Said, what: str) -> Said:
    if said.code:
        raise errors.ServiceFailed(f"{what}: {_last_line(said.err) or f'exit {said.code}'}")
    return said


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    # systemctl follows the reason by a line of advice.
    return " ".join(lines[0].split()) if lines else ""
