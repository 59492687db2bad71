"""The words of `service`, and what they stand for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from queuectl.cli.app import App
from queuectl.cli.workerwords import queues_and_weights, slot_count, worker_name
from queuectl.config import file_path, user_directory
from queuectl.errors import InvalidInput, ServiceFailed
from queuectl.home import TRUST_VARIABLE, trusts_home
from queuectl.job.duration import parse_duration_ms

if TYPE_CHECKING:
    from queuectl.service.manager import Manager
    from queuectl.service.order import Service, Standing

SYSTEM_HOME: Final = "/var/lib/queuectl"
SYSTEM_USER: Final = "queuectl"
STOP_TIMEOUT: Final = "90s"
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?")


def trust_variables(app: App, home: str) -> dict[str, str]:
    """For a service that was installed with --trust-home."""
    return {TRUST_VARIABLE: home} if trusts_home(home, app.environ, flag=app.flags.trust_home) else {}


def home_of(app: App, *, is_system: bool) -> str:
    is_named = app.flags.home is not None or "QUEUECTL_HOME" in app.environ
    return SYSTEM_HOME if is_system and not is_named else app.home


def user_of(run_as: str | None) -> str:
    if run_as is not None and not USER.fullmatch(run_as):
        raise InvalidInput("--run-as", f"not the name of a user: {run_as!r}", hint="like --run-as queuectl")
    return run_as or SYSTEM_USER


def serving_words(
    count: str | None,
    queues: tuple[str, ...],
    drain: bool,
    idle_timeout: str | None,
    log_format: str,
    policy: str | None,
) -> Iterator[str]:
    """The same words for `worker start`, each one looked at: what it would refuse is refused now."""
    if count is not None:
        yield from ("--count", str(slot_count(count)))
    queues_and_weights(queues)
    for queue in queues:
        yield from ("--queue", queue)
    if drain:
        yield "--drain"
    if idle_timeout is not None:
        yield from ("--idle-timeout", f"{parse_duration_ms(idle_timeout, subject='--idle-timeout') / 1000:g}s")
    if log_format != "text":
        yield from ("--log-format", log_format)
    if policy is not None:
        yield from ("--policy", file_path(policy, spelled="--policy"))


def name_of(app: App, name: str | None) -> str:
    if name is not None:
        return worker_name(name)
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", app.host)[:64].lstrip("._-")
    return plain or "main"


def unit_of(name: str | None) -> str:
    return "queuectl" if name is None else f"queuectl-{name}"


def patience_of(text: str) -> float | None:
    return None if text == "none" else parse_duration_ms(text, subject="--stop-timeout") / 1000


def program_words() -> tuple[str, ...]:
    """The words that run this very queuectl, wherever they are said."""
    script = os.path.join(os.path.dirname(sys.executable), "queuectl")
    if os.access(script, os.X_OK):
        return (script,)
    return (sys.executable, "-P", "-m", "queuectl")  # -P: what lies in the current directory is not ours


def store_variables(app: App) -> dict[str, str]:
    if app.db is None:
        return {}
    from queuectl.store.address import PostgresUrl, parse_address
    from queuectl.store.open import store_path

    address = parse_address(app.db, base=app.home)
    if isinstance(address, PostgresUrl) and address.shown() != address.url:
        raise InvalidInput(
            "--db",
            "it holds a password, and others can read what services are told",
            hint='put it into queuectl.toml in the home (db = "…", mode 600), or the password into ~/.pgpass',
        )
    return {"QUEUECTL_DB": store_path(app.home, app.db)}


def given_variables(app: App, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not VARIABLE.fullmatch(name):
            raise InvalidInput("--env", f"not the name of a variable: {name!r}", hint="like --env PATH or --env TZ=UTC")
        if not equals and name not in app.environ:
            raise InvalidInput("--env", f"{name} is not set here", hint=f"give a value: --env {name}=…")
        found[name] = value if equals else app.environ[name]
    return found


def manager_of(app: App, named: str | None, *, is_system: bool) -> Manager:
    from queuectl.service.manager import Launchd, Systemd

    if (named or ("launchd" if sys.platform == "darwin" else "systemd")) == "launchd":
        return Launchd(is_system=is_system, uid=os.getuid(), user_home=_user_home(app))
    config = app.environ.get("XDG_CONFIG_HOME") or os.path.join(_user_home(app), ".config")
    return Systemd(is_system=is_system, config=config)


def _user_home(app: App) -> str:
    return app.environ.get("HOME") or user_directory(os.getuid())


def known_service(app: App, name: str | None, *, is_system: bool) -> Service:
    """As much of it as tells which one is meant."""
    from queuectl.service.order import Service

    named = name_of(app, name)
    return Service(named, unit_of(name), (), (), {}, app.home, is_system, None, None, may_sudo=False)


def check_root(wanted: Service) -> None:
    import pwd

    if os.geteuid() != 0:
        raise ServiceFailed("only root can install a service of the system", hint="use sudo, or leave --system away")
    try:
        pwd.getpwnam(wanted.run_as or "")
    except KeyError as error:
        make = f"useradd --system --home-dir {wanted.home} --shell /usr/sbin/nologin {wanted.run_as}"
        raise InvalidInput("--run-as", f"there is no user {wanted.run_as}", hint=f"make one: {make}") from error


def as_json(manager: Manager, known: Service, standing: Standing | None) -> dict[str, object]:
    return {
        "name": known.name,
        "unit": known.unit,
        "manager": manager.name,
        "path": manager.path(known),
        "installed": standing is not None,
        "enabled": standing is not None and standing.is_enabled,
        "active": None if standing is None else standing.active,
        "pid": None if standing is None else standing.pid,
        "since": None if standing is None else standing.since,
        "status": None if standing is None else standing.status,
        "restarts": 0 if standing is None else standing.restarts,
    }


def linger_words(app: App, manager: str, *, is_system: bool) -> Iterator[str]:
    """A manager of a user goes with their last session, unless it is told to stay."""
    if is_system or manager != "systemd":
        return
    import pwd

    user = pwd.getpwuid(os.getuid()).pw_name
    if not os.path.exists(f"/var/lib/systemd/linger/{user}"):
        yield "it ends when you log out, unless you say once: loginctl enable-linger"
