"""Flags + environment + stored settings -> one frozen `Settings`, each value with its origin.

Also the address of the environment: nobody else reads environment variables, the current directory or the host's name.
What the keys are, and what each accepts, is in job/settings.py.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput, UsageError
from queuectl.job.audit import Actor
from queuectl.job.settings import KEYS, Entry, Key, Settings, Value, resolve_key

__all__ = [
    "KEYS",
    "Entry",
    "Here",
    "Key",
    "Settings",
    "actor",
    "change_settings",
    "check_environment",
    "db_address",
    "environ",
    "faults",
    "file_path",
    "here",
    "home_path",
    "host_name",
    "job_environment_base",
    "load_settings",
    "resolve_key",
    "user_directory",
    "working_directory",
]

PREFIX: Final = "QUEUECTL_"
# Set for one job only: a worker that is itself started by a job must not hand its own down.
JOB_VARIABLES: Final = frozenset(
    PREFIX + name
    for name in ("JOB_ID", "RUN", "ATTEMPT", "QUEUE", "WORKER", "SLOT", "PARENTS", "PARENT_LOGS", "ARRAY_INDEX")
)
# The key to the HTTP API: who starts a worker in the same shell does not mean to give it to every job.
TOKEN_VARIABLE: Final = PREFIX + "TOKEN"
# What the service manager has told the worker, and no one else: see worker/notify.py.
MANAGER_VARIABLES: Final = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
NO_FLAGS: Final[Mapping[str, str]] = {}


def load_settings(
    stored: Mapping[str, str], environ: Mapping[str, str], flags: Mapping[str, str] = NO_FLAGS
) -> Settings:
    """What is in force: flag > environment > stored > default.

    `stored` and `flags` map names of keys to text. Keys in `stored` that this version does not know are ignored: a newer
    version may have written them. Raises InvalidInput, naming the key or variable, for a value that cannot be.
    """
    flagged = {resolve_key(name).name: text for name, text in flags.items()}
    values: dict[str, Value] = {}
    origins: dict[str, str] = {}
    for key in KEYS:
        variable = _variable(key, environ)
        if key.name in flagged:
            value, origin = key.parse(flagged[key.name], subject=key.name), "flag"
        elif variable is not None:
            value, origin = key.parse(environ[variable], subject=variable), "env"
        elif key.name in stored:
            value, origin = _parse_stored(key, stored[key.name]), "stored"
        else:
            value, origin = key.default, "default"
        values[key.attribute] = value
        origins[key.name] = origin
    return Settings.of(values, origins)


def check_environment(environ: Mapping[str, str]) -> None:
    """Raise InvalidInput for a variable that no command could use, whether or not this one would have looked at it."""
    for key in KEYS:
        if (variable := _variable(key, environ)) is not None:
            key.parse(environ[variable], subject=variable)
    # Of one alone only a store can tell: it may hold the other.
    if all(_variable(resolve_key(name), environ) for name in ("lease", "heartbeat")):
        load_settings({}, environ)


def faults(stored: Mapping[str, str], environ: Mapping[str, str]) -> list[UsageError]:
    """All that is wrong with what would be in force: each variable, each stored value, and if these are right each by itself,
    all of them together."""
    found: list[UsageError] = []
    for key in KEYS:
        try:
            if (variable := _variable(key, environ)) is not None:
                key.parse(environ[variable], subject=variable)
        except UsageError as error:
            found.append(error)
        try:
            if key.name in stored:
                _parse_stored(key, stored[key.name])
        except UsageError as error:
            found.append(error)
    if not found:
        try:
            load_settings(stored, environ)
        except UsageError as error:
            found.append(error)
    return found


def change_settings(stored: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """What to write for `wanted` (None: back to the default), in canonical names and forms.

    Raises UnknownName or InvalidInput, also if what is then stored could not be in force together. A stored value that
    cannot be read counts as the default here: this is how it is repaired.
    """
    changes = {}
    values: dict[str, Value] = {key.attribute: key.default for key in KEYS}
    for key in KEYS:
        if key.name in stored:
            try:
                values[key.attribute] = key.parse(stored[key.name], subject=key.name)
            except InvalidInput:
                continue
    for name, text in wanted.items():
        key = resolve_key(name)
        value = key.default if text is None else key.parse(text, subject=key.name)
        values[key.attribute] = value
        changes[key.name] = None if text is None else key.text(value)
    Settings.of(values, {})
    return changes


def _variable(key: Key, environ: Mapping[str, str]) -> str | None:
    found = [name for name in key.variables if name in environ]
    if not found:
        return None
    if key.name == "ageing":
        raise InvalidInput(
            found[0],
            "ageing belongs to the store: it cannot come from the environment",
            hint="unset the variable and use: queuectl config set ageing VALUE",
        )
    for other in found[1:]:
        if environ[other] != environ[found[0]]:
            raise InvalidInput(other, f"means the same as {found[0]} and says otherwise", hint="unset one of the two")
    return found[0]


def _parse_stored(key: Key, text: str) -> Value:
    try:
        return key.parse(text, subject=f"the stored {key.name}")
    except InvalidInput as error:
        raise InvalidInput(
            error.subject,
            error.problem,
            hint=f"queuectl config unset {key.name}, or config set {key.name} to {key.form}",
        ) from error


# ── the environment ─────────────────────────────────────────────────────────────────────────────────────────────────


# `env` is the environment to look at, os.environ unless a caller brings another.


def environ() -> Mapping[str, str]:
    return os.environ


def home_path(
    flag: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None, *, spelled: str = "--home"
) -> str:
    """The absolute path of the home: the flag, else $QUEUECTL_HOME, else ~/.queuectl. It need not exist.

    `spelled` is how the caller's user gave the flag.
    """
    env = os.environ if env is None else env
    path = _given(flag, "home", env, spelled=spelled) or "~/.queuectl"
    if path == "~" or path.startswith("~/"):
        # Not from a shell, which would have put something in its place: from a unit file, a container, an API.
        path = (env.get("HOME") or user_directory(os.getuid())) + path[1:]
    path = path if os.path.isabs(path) else os.path.join(working_directory(), path)
    return _readable(os.path.normpath(path), "home")


def file_path(given: str, *, spelled: str) -> str:
    """The absolute path of a file that somebody has named by this option: also for who works elsewhere."""
    if not given or "\0" in given:
        raise InvalidInput(spelled, "holds a NUL" if given else "empty", hint=f"give a file, or leave {spelled} away")
    return _readable(os.path.normpath(os.path.join(working_directory(), given)), spelled)


def user_directory(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError as error:
        raise InvalidInput("home", f"user {uid} has no directory", hint="set HOME, or give --home DIR") from error


def db_address(
    flag: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None, *, spelled: str = "--db"
) -> str | None:
    """Where the store is: the flag, else $QUEUECTL_DB, else None: in the home."""
    return _given(flag, "db", os.environ if env is None else env, spelled=spelled)


class Here(NamedTuple):
    """Where we are. `host` is a name, which may be given twice; `machine` tells two of one name apart, one before and after
    it was started anew, and a container that sees other processes than we do: nobody there can tell whether one here lives.
    """

    host: str
    machine: str


def here(env: Mapping[str, str] | None = None) -> Here:
    """By what the system says, or both by $QUEUECTL_HOST."""
    if given := _host(env):
        return Here(given, given)
    import hashlib

    name = host_name(env)
    facts = [name, *map(_fact, ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"))]
    with contextlib.suppress(OSError):
        facts.append(os.readlink("/proc/self/ns/pid"))
    return Here(name, hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16])


def host_name(env: Mapping[str, str] | None = None) -> str:
    """The `host` of `here`, in a fraction of the time."""
    return _host(env) or os.uname().nodename


def actor(env: Mapping[str, str] | None = None) -> Actor:
    """Who this process works for: what it changes is recorded under this name."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:  # in a container, for example
        user = None
    return Actor(uid, user, host_name(env), os.path.basename(sys.argv[0]) or "python")


def _host(env: Mapping[str, str] | None) -> str | None:
    return _given(None, "host", os.environ if env is None else env, spelled="")


def _fact(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()
    return ""


def working_directory() -> str:
    try:
        path = os.getcwd()
    except FileNotFoundError as error:
        raise InvalidInput(
            "the current directory", "it does not exist any more", hint="cd to a directory that does"
        ) from error
    return _readable(path, "the current directory")


def job_environment_base(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that every job of this worker starts from."""
    held_back = JOB_VARIABLES | MANAGER_VARIABLES | {TOKEN_VARIABLE}
    return {name: value for name, value in (os.environ if env is None else env).items() if name not in held_back}


def _given(flag: str | os.PathLike[str] | None, name: str, env: Mapping[str, str], *, spelled: str) -> str | None:
    variable = PREFIX + name.upper()
    subject, text = (variable, env.get(variable)) if flag is None else (spelled, os.fspath(flag))
    if text is None or (text and "\0" not in text):
        return text
    raise InvalidInput(subject, "holds a NUL" if text else "empty", hint=f"give a value, or leave {subject} away")


def _readable(path: str, subject: str) -> str:
    # Paths are kept as text in the store and shown in JSON, which other bytes cannot be.
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            subject, f"the path is not UTF-8: {path!r}", hint="use a directory whose name is UTF-8"
        ) from error
    return path
