"""Secrets in files: one file for each, in a directory of the data directory that only its user can read."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from queuectl import paths as places
from queuectl.errors import FileUnwritable, HomeUnusable, SecretNotFound, SecretUnusable
from queuectl.secrets.rules import MAX_TOTAL_BYTES, is_entry

OTHERS = 0o077


def names(home: str) -> list[str]:
    """All secrets that have a file, usable or not."""
    try:
        return sorted(name for name in os.listdir(places.secrets(home)) if is_entry(name))
    except OSError:
        return []


def read(home: str, name: str, *, user: int) -> bytes | None:
    """Return the value without its final newline; None if there is no file. Raises SecretUnusable if users other than `user` and root
    could have read or written it."""
    folder = places.secrets(home)
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise _unusable(name, exc) from exc
    _refuse(name, folder, found, user, is_right=stat.S_ISDIR(found.st_mode), kind="a directory", mode="700")
    path = places.secret_file(home, name)
    try:
        # No symbolic links: they would lead out of the directory that was checked.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise _unusable(name, exc) from exc
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        _refuse(name, path, found, user, is_right=stat.S_ISREG(found.st_mode), kind="a file", mode="600")
        try:
            value = file.read(MAX_TOTAL_BYTES + 2)
        except OSError as exc:
            raise _unusable(name, exc) from exc
    return check_value(name, value)


def check_value(name: str, value: bytes) -> bytes:
    """Return the value without one final newline. Raises SecretUnusable if it cannot be an environment variable."""
    value = value.removesuffix(b"\n")
    if len(value) > MAX_TOTAL_BYTES:
        raise SecretUnusable(
            name, f"it is longer than {MAX_TOTAL_BYTES:,} bytes", hint="let the job read a file instead"
        )
    if b"\0" in value:
        raise SecretUnusable(
            name, "it contains a NUL byte", hint="a variable cannot: encode it, for example with base64"
        )
    return value


def write(home: str, name: str, value: bytes) -> None:
    """Write atomically, readable by this user only, whatever the umask is."""
    check_value(name, value)
    places.make_home(home)
    folder = _real_folder(home)
    part = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise FileUnwritable(folder, exc.strerror or str(exc)) from exc
    try:
        with open(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(value)
            file.flush()
            os.fsync(fd)
        os.rename(part, places.secret_file(home, name))
        _sync(folder)
    except OSError as exc:
        raise FileUnwritable(places.secret_file(home, name), exc.strerror or str(exc)) from exc
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def remove(home: str, name: str) -> None:
    _real_folder(home)
    path = places.secret_file(home, name)
    try:
        os.unlink(path)
    except FileNotFoundError as exc:
        raise SecretNotFound(name) from exc
    except OSError as exc:
        raise HomeUnusable(home, f"cannot remove {path}: {exc.strerror}") from exc


def _real_folder(home: str) -> str:
    """Return the directory of the secrets. Raises HomeUnusable if it is a symbolic link, which leads out of the data directory."""
    folder = places.secrets(home)
    if os.path.islink(folder):
        raise HomeUnusable(home, f"{folder} is a symbolic link", hint="replace it with a directory")
    return folder


def unusable(home: str, *, user: int) -> Iterator[tuple[str, SecretUnusable]]:
    """The secrets that no job can use, with the reason."""
    for name in names(home):
        try:
            read(home, name, user=user)
        except SecretUnusable as error:
            yield name, error


def _refuse(name: str, path: str, found: os.stat_result, user: int, *, is_right: bool, kind: str, mode: str) -> None:
    if not is_right:
        raise SecretUnusable(name, f"{path} is not {kind}", hint=f"queuectl secret set {name} creates one")
    if found.st_uid not in (0, user):
        raise SecretUnusable(name, f"{path} is not owned by the user of the worker", hint=f"chown it to user {user}")
    if found.st_mode & OTHERS:
        shown = f"{stat.S_IMODE(found.st_mode):04o}"
        raise SecretUnusable(name, f"other users can access {path} (mode {shown})", hint=f"chmod {mode} {path}")


def _unusable(name: str, exc: OSError) -> SecretUnusable:
    return SecretUnusable(name, f"{exc.filename}: {(exc.strerror or str(exc)).lower()}", hint="queuectl doctor")


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
