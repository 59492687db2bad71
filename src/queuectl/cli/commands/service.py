"""queuectl service: a worker under systemd or launchd."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import group
from queuectl.cli.commands.worker import WorkerOptions, worker_name, worker_options
from queuectl.cli.job_options import read_variables
from queuectl.cli.render import Details, Lines, Nothing, Result
from queuectl.config import user_directory
from queuectl.errors import InvalidInput, QueuectlError, ServiceFailed, UsageError
from queuectl.paths import TRUST_VARIABLE, trusts_home
from queuectl.text import escape_control
from queuectl.units import parse_duration_ms

if TYPE_CHECKING:
    from queuectl.service.manager import Manager, Service, ServiceStatus

SYSTEM_HOME: Final = "/var/lib/queuectl"
SYSTEM_USER: Final = "queuectl"
STOP_TIMEOUT: Final = "90s"
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?")


def _unit(name: str | None) -> str:
    return "queuectl" if name is None else f"queuectl-{name}"


def _name(app: App, name: str | None) -> str:
    if name is not None:
        return worker_name(name)
    return re.sub(r"[^A-Za-z0-9._-]", "-", app.host)[:64].lstrip("._-") or "main"


def _stop_seconds(text: str) -> float | None:
    return None if text == "none" else parse_duration_ms(text, subject="--stop-timeout") / 1000


def _program() -> tuple[str, ...]:
    """The command line of this queuectl, independent of the current directory."""
    script = os.path.join(os.path.dirname(sys.executable), "queuectl")
    if os.access(script, os.X_OK):
        return (script,)
    return (sys.executable, "-P", "-m", "queuectl")  # -P: do not import from the current directory


def _environment(app: App, home: str, given: tuple[str, ...]) -> dict[str, str]:
    variables = {"QUEUECTL_HOME": home}
    if trusts_home(home, app.environ, flag=app.flags.trust_home):
        variables[TRUST_VARIABLE] = home
    if app.db is not None:
        from queuectl.store.address import PostgresUrl, parse_address
        from queuectl.store.open import store_path

        address = parse_address(app.db, base=app.home)
        if isinstance(address, PostgresUrl) and address.shown() != address.url:
            raise InvalidInput(
                "--db",
                "it contains a password, which other users could read in the unit",
                hint='put it into queuectl.toml in the data directory (db = "…", mode 600), or the password into ~/.pgpass',
            )
        variables["QUEUECTL_DB"] = store_path(app.home, app.db)
    found = read_variables(given, app.environ)
    if wrong := [name for name in found if not VARIABLE.fullmatch(name)]:
        hint = "for example, --env PATH or --env TZ=UTC"
        raise InvalidInput("--env", f"not the name of a variable: {wrong[0]!r}", hint=hint)
    return {**variables, **found}


def _manager(app: App, named: str | None, *, is_system: bool) -> Manager:
    from queuectl.service.manager import Launchd, Systemd

    user_home = app.environ.get("HOME") or user_directory(os.getuid())
    if (named or ("launchd" if sys.platform == "darwin" else "systemd")) == "launchd":
        return Launchd(is_system=is_system, uid=os.getuid(), user_home=user_home)
    config = app.environ.get("XDG_CONFIG_HOME") or os.path.join(user_home, ".config")
    return Systemd(is_system=is_system, config=config)


def _find(app: App, name: str | None, manager: str | None, *, is_system: bool) -> tuple[Manager, Service]:
    """The manager, and the service as far as it is needed to find it."""
    from queuectl.service.manager import Service

    return _manager(app, manager, is_system=is_system), Service(_name(app, name), _unit(name), app.home, is_system)


def _check_root(wanted: Service) -> None:
    import pwd

    if os.geteuid() != 0:
        raise ServiceFailed("only root can install a system service", hint="use sudo, or omit --system")
    try:
        pwd.getpwnam(wanted.run_as or "")
    except KeyError as error:
        make = f"useradd --system --home-dir {wanted.home} --shell /usr/sbin/nologin {wanted.run_as}"
        raise InvalidInput("--run-as", f"there is no user {wanted.run_as}", hint=f"create one: {make}") from error


def _to_json(manager: Manager, known: Service, status: ServiceStatus | None) -> dict[str, object]:
    from queuectl.service.manager import NO_STATUS

    named = {"name": known.name, "unit": known.unit, "manager": manager.name, "path": manager.path(known)}
    return {**named, "installed": status is not None, **(status or NO_STATUS)._asdict()}


def _linger_hint(manager: str, *, is_system: bool) -> Iterator[str]:
    """The systemd of a user exits with the last session, unless lingering is enabled."""
    if is_system or manager != "systemd":
        return
    import pwd

    user = pwd.getpwuid(os.getuid()).pw_name
    if not os.path.exists(f"/var/lib/systemd/linger/{user}"):
        yield "it stops when you log out, unless you enable lingering: loginctl enable-linger"


POLL_SECONDS: Final = 0.05
RESTART_SECONDS: Final = 30.0  # for a worker to exit while its jobs keep running

service = group(
    "service",
    "Run a worker as a service, which starts at boot and restarts without affecting its jobs.",
    examples="""
        queuectl service install --count 4
        queuectl service status
        queuectl service uninstall
    """,
)

_NAME = click.option("--name", metavar="NAME", help="Name of the worker and service (default: host name).")
_SYSTEM = click.option("--system", "is_system", is_flag=True, help="Use a system service; changing it requires root.")

_MANAGER = click.option("--manager", type=click.Choice(["systemd", "launchd"]), hidden=True)


@service.subcommand("install", "Install and start the service.", any_home=True)
@_SYSTEM
@worker_options
@_NAME
@click.option("--run-as", metavar="USER", help=f"User of a --system service (default: {SYSTEM_USER}).")
@click.option(
    "--stop-timeout",
    metavar="TIME",
    default=STOP_TIMEOUT,
    help=f"Time for running jobs to finish, or none (default: {STOP_TIMEOUT}).",
)
@click.option(
    "--env",
    "env",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Variable for worker and jobs; NAME copies its value.",
)
@click.option("--allow-sudo", is_flag=True, help="Allow sudo and set-user-ID programs, with --system.")
@click.option("--print", "print_only", is_flag=True, help="Print the unit or property list, change nothing.")
@_MANAGER
def service_install(
    app: App,
    is_system: bool,
    name: str | None,
    run_as: str | None,
    stop_timeout: str,
    env: tuple[str, ...],
    allow_sudo: bool,
    print_only: bool,
    manager: str | None,
    options: WorkerOptions,
) -> Result:
    """Install and start a service, as a systemd unit or, on macOS, a launchd property list.

    The service starts now and at boot, and restarts after a failure. A restart does not affect running jobs. To change
    options, run the command again.

    Examples:
        # a user service, with your data directory
        queuectl service install --count 4
        # a system service, as the user queuectl, in /var/lib/queuectl
        sudo queuectl service install --system --count 4
        # only print the unit
        queuectl service install --count 4 --print
        # a second service
        queuectl service install --name mail --queue mail --count 2
    """
    if not is_system and (run_as is not None or allow_sudo):
        option = "--allow-sudo" if allow_sudo else "--run-as"
        raise UsageError(f"{option} requires --system", hint=f"add --system, or omit {option}")
    if run_as is not None and not USER.fullmatch(run_as):
        raise InvalidInput("--run-as", f"not the name of a user: {run_as!r}", hint="for example, --run-as queuectl")
    from queuectl.service import manager as services

    chosen = _manager(app, manager, is_system=is_system)
    has_home = app.flags.home is not None or "QUEUECTL_HOME" in app.environ
    home = SYSTEM_HOME if is_system and not has_home else app.home
    wanted = services.Service(
        name=_name(app, name),
        unit=_unit(name),
        home=home,
        is_system=is_system,
        program=_program(),
        arguments=tuple(options.arguments()),
        environment=_environment(app, home, env),
        run_as=(run_as or SYSTEM_USER) if is_system else None,
        stop_timeout=_stop_seconds(stop_timeout),
        may_sudo=allow_sudo,
    )
    if print_only:
        text = chosen.text(wanted)
        value = {"name": wanted.name, "manager": chosen.name, "path": chosen.path(wanted), "text": text}
        return Lines(text.splitlines(), value)
    if is_system:
        _check_root(wanted)
    done = services.install(chosen, wanted)
    fields = {"changed": done.is_changed, **_to_json(chosen, wanted, done.status)}
    how = "is installed" if done.is_changed else "is already installed and unchanged"
    line = f"the service {wanted.unit} {how}: {escape_control(done.path)}; it is {done.status.active}"
    return Details(fields, text=lambda: [line, *_linger_hint(chosen.name, is_system=is_system)], id=wanted.name)


@service.subcommand("status", "Show the state of the service.", any_home=True, examples="queuectl service status")
@_SYSTEM
@_NAME
@_MANAGER
def service_status(app: App, is_system: bool, name: str | None, manager: str | None) -> Result:
    """Show whether the service is installed, enabled and running, and the status of its worker."""
    from queuectl.service import manager as services

    chosen, known = _find(app, name, manager, is_system=is_system)
    if services.read(chosen.path(known)) is None:
        return Lines([f"there is no service {known.unit}: queuectl service install"], _to_json(chosen, known, None))
    chosen.check()
    status = chosen.status(known)

    def lines() -> Iterator[str]:
        runs = f", pid {status.pid}" if status.pid else ""
        since = f", since {status.since}" if status.since else ""
        starts = "starts with the system" if status.enabled else "does not start with the system"
        yield f"{known.unit} is {status.active}{runs}{since}; it {starts}"
        if status.status:
            yield f"  {escape_control(status.status)}"
        if status.restarts:
            yield f"  restarted {status.restarts} times by {chosen.name}"
        yield f"  {escape_control(chosen.path(known))}"

    return Details(_to_json(chosen, known, status), text=lines, id=known.name)


@service.subcommand(
    "uninstall", "Stop the worker and remove the service.", any_home=True, examples="queuectl service uninstall"
)
@_SYSTEM
@_NAME
@_MANAGER
def service_uninstall(app: App, is_system: bool, name: str | None, manager: str | None) -> Result:
    """Stop the worker, as `systemctl stop` does, and remove the service. The data directory is not removed."""
    from queuectl.service import manager as services

    chosen, known = _find(app, name, manager, is_system=is_system)
    is_done = services.uninstall(chosen, known)
    line = f"removed the service {known.unit}" if is_done else f"there is no service {known.unit}"
    return Lines([line], {"done": [known.name] if is_done else [], "refused": []})


@service.subcommand(
    "end",
    "Stop the worker for systemd.",
    hidden=True,
    examples="queuectl service end web1 --timeout 90s --unit queuectl.service",
)
@click.argument("name")
@click.option("--timeout", metavar="TIME", default=STOP_TIMEOUT, help="Time for running jobs to finish.")
@click.option("--unit", metavar="UNIT", required=True, help="Name of the unit.")
@_SYSTEM
def service_end(app: App, name: str, timeout: str, unit: str, is_system: bool) -> Result:
    """Stop a worker for systemd. On a restart, its running jobs continue; otherwise it waits until they have finished."""
    from queuectl.process import tree
    from queuectl.process.client import tell_to_leave
    from queuectl.service.manager import Systemd

    seconds = _stop_seconds(timeout)
    pid = app.environ.get("MAINPID", "")
    manager = Systemd(is_system=is_system, config="")
    try:
        is_restart = manager.is_restarting(unit)
    except QueuectlError:
        is_restart = False
    if is_restart and pid.isdecimal() and tell_to_leave(int(pid)):
        deadline = app.clock.monotonic() + RESTART_SECONDS
        while tree.is_alive(int(pid)) and app.clock.monotonic() < deadline:
            app.clock.sleep(POLL_SECONDS)
        return Nothing()
    from queuectl.cli.commands.worker import named_workers, stop_and_wait
    from queuectl.store.types import StopMode

    targets, _ = named_workers(app, app.open_reads().workers(), [name], everywhere=False)
    stop_and_wait(app, targets, mode=StopMode.FINISH, timeout=seconds)
    return Nothing()
