"""Installing, looking at and removing a service: the file in its place, and the manager told about it."""

from __future__ import annotations

import os
from typing import NamedTuple

from queuectl import errors
from queuectl.service.manager import Manager, is_ours
from queuectl.service.order import Service, Standing


class Installed(NamedTuple):
    path: str
    is_changed: bool  # the file was not there, or said something else
    standing: Standing


def install(manager: Manager, service: Service) -> Installed:
    """Idempotent: a second time with the same words changes nothing, and with others what differs."""
    manager.check()
    path, text = manager.path(service), manager.text(service)
    before = read(path)
    if before is not None and not is_ours(before):
        raise errors.FileExists(path)
    is_changed = before != text
    if is_changed:
        _write(path, text, mode=0o644 if service.is_system else 0o600)
    manager.begin(service, is_changed=is_changed)
    return Installed(path, is_changed, manager.standing(service))


def uninstall(manager: Manager, service: Service) -> bool:
    """False if there was none. What it runs gets the time of a stop to finish."""
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
    """What stands there; None if nothing does."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise errors.FileUnreadable(path, exc.strerror or str(exc)) from exc


def _write(path: str, text: str, *, mode: int) -> None:
    """All of it or nothing: the manager may look at any time."""
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
