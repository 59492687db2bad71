"""Load the settings in force (environment > stored > default), each value with its origin.

The only module that reads environment variables, the current directory and the host name. settings.py has the table of keys.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs.audit import Actor
from queuectl.settings import KEYS, Key, Settings, Value, resolve_key

PREFIX: Final = "QUEUECTL_"
# Set for one job only: a worker that is itself started by a job does not pass them on.
JOB_VARIABLES: Final = frozenset(
    PREFIX + name
    for name in ("JOB_ID", "RUN", "ATTEMPT", "QUEUE", "WORKER", "SLOT", "PARENTS", "PARENT_LOGS", "ARRAY_INDEX")
)
# The token of the HTTP API: a worker started in the same shell must not pass it on to every job.
TOKEN_VARIABLE: Final = PREFIX + "TOKEN"
DB_ALIAS: Final = PREFIX + "DB_PATH"
# Set by the service manager for the worker only, see service/sd_notify.py.
MANAGER_VARIABLES: Final = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})


def load_settings(stored: Mapping[str, str], environ: Mapping[str, str]) -> Settings:
    """The settings in force: environment > stored > default. Options of commands take precedence over them.

    `stored` maps names of keys to text. Unknown keys are ignored: a newer version may have written them. Raises InvalidInput, which
    names the key or variable, for an invalid value.
    """
    values: dict[str, Value] = {}
    origins: dict[str, str] = {}
    for key in KEYS:
        if (given := _from_environment(key, environ)) is not None:
            (value,), origin = given, "env"
        elif key.name in stored:
            value, origin = _parse_stored(key, stored[key.name]), "stored"
        else:
            value, origin = key.default, "default"
        values[key.attribute] = value
        origins[key.name] = origin
    return Settings.of(values, origins)


def check_environment(environ: Mapping[str, str]) -> None:
    """Raise InvalidInput for an invalid variable, even if this command does not use it."""
    for key in KEYS:
        _from_environment(key, environ)
    # One alone can only be checked together with the stored settings: they may hold the other.
    if all(_from_environment(resolve_key(name), environ) for name in ("lease", "heartbeat")):
        load_settings({}, environ)


def faults(stored: Mapping[str, str], environ: Mapping[str, str]) -> list[UsageError]:
    """All errors in the settings: of each variable, of each stored value, and, if there are none, of their combination."""
    found: list[UsageError] = []

    def check(read: Callable[[], object]) -> None:
        try:
            read()
        except UsageError as error:
            found.append(error)

    for key in KEYS:
        check(partial(_from_environment, key, environ))
        if key.name in stored:
            check(partial(_parse_stored, key, stored[key.name]))
    if not found:
        check(lambda: load_settings(stored, environ))
    return found


def change_settings(stored: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """Validate `wanted` (None: the default) and return what to store, in canonical names and forms.

    Raises UnknownName or InvalidInput, also if the stored settings would contradict each other. An invalid stored value
    counts as the default here, so that it can be repaired.
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


def _from_environment(key: Key, environ: Mapping[str, str]) -> tuple[Value] | None:
    """The value of the variable of this key; None if there is none."""
    found = [name for name in key.variables if name in environ]
    if not found:
        return None
    if key.name == "ageing":
        raise InvalidInput(
            found[0],
            "ageing belongs to the database: it cannot come from the environment",
            hint="unset the variable and use: queuectl config set ageing VALUE",
        )
    for other in found[1:]:
        if environ[other] != environ[found[0]]:
            raise InvalidInput(other, f"is an alias of {found[0]} with another value", hint="unset one of the two")
    return (key.parse(environ[found[0]], subject=found[0]),)


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
# `env` is the environment to use, os.environ by default.


def environ() -> Mapping[str, str]:
    return os.environ


def home_path(
    flag: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None, *, spelled: str = "--home"
) -> str:
    """The absolute path of the data directory: the flag, else $QUEUECTL_HOME, else ~/.queuectl. It need not exist.

    `spelled` is the name of the flag in messages.
    """
    env = os.environ if env is None else env
    path = _given(flag, "home", env, spelled=spelled) or "~/.queuectl"
    if path == "~" or path.startswith("~/"):
        # A shell would have expanded it: this comes from a unit file, a container or an API.
        path = (env.get("HOME") or user_directory(os.getuid())) + path[1:]
    path = path if os.path.isabs(path) else os.path.join(working_directory(), path)
    return _readable(os.path.normpath(path), "home")


def file_path(given: str, *, spelled: str) -> str:
    """The absolute path of a file that this option names: another process may have another working directory."""
    if not given or "\0" in given:
        raise InvalidInput(spelled, "holds a NUL" if given else "empty", hint=f"give a file, or omit {spelled}")
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
    """The address of the database: the flag, else $QUEUECTL_DB or its alias, else None for the one in the data directory."""
    env = os.environ if env is None else env
    given = _given(flag, "db", env, spelled=spelled)
    if flag is None and DB_ALIAS in env and given != (alias := _given(None, "db_path", env, spelled=spelled)):
        if given is not None:
            raise InvalidInput(DB_ALIAS, f"is an alias of {PREFIX}DB with another value", hint="unset one of the two")
        return alias
    return given


class Here(NamedTuple):
    """The host of this process. `host` is a name, which two hosts may share.

    `machine` differs between two hosts of one name, before and after a reboot, and between containers: only processes with
    the same `machine` can see each other.
    """

    host: str
    machine: str


def here(env: Mapping[str, str] | None = None) -> Here:
    """From the system, or both from $QUEUECTL_HOST."""
    if given := _host(env):
        return Here(given, given)
    import hashlib

    name = host_name(env)
    facts = [name, *map(_fact, ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"))]
    with contextlib.suppress(OSError):
        facts.append(os.readlink("/proc/self/ns/pid"))
    return Here(name, hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16])


def host_name(env: Mapping[str, str] | None = None) -> str:
    """The `host` of `here`, without the cost of finding the machine."""
    return _host(env) or os.uname().nodename


def actor(env: Mapping[str, str] | None = None) -> Actor:
    """The user of this process, for the audit log."""
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
    """The environment that every job of this worker starts from. Jobs get the database as QUEUECTL_DB."""
    held_back = JOB_VARIABLES | MANAGER_VARIABLES | {TOKEN_VARIABLE, DB_ALIAS}
    return {name: value for name, value in (os.environ if env is None else env).items() if name not in held_back}


def _given(flag: str | os.PathLike[str] | None, name: str, env: Mapping[str, str], *, spelled: str) -> str | None:
    variable = PREFIX + name.upper()
    subject, text = (variable, env.get(variable)) if flag is None else (spelled, os.fspath(flag))
    if text is None or (text and "\0" not in text):
        return text
    raise InvalidInput(subject, "holds a NUL" if text else "empty", hint=f"give a value, or omit {subject}")


def _readable(path: str, subject: str) -> str:
    # Paths are stored as text and printed as JSON, which cannot hold invalid UTF-8.
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            subject, f"the path is not UTF-8: {path!r}", hint="use a directory whose name is UTF-8"
        ) from error
    return path
