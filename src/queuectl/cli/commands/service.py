"""queuectl service: a worker that the service manager of the system keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.printable import printable
from queuectl.cli.result import Lines, Nothing, Result, Sheet
from queuectl.cli.servicewords import (
    STOP_TIMEOUT,
    SYSTEM_USER,
    as_json,
    check_root,
    given_variables,
    home_of,
    known_service,
    linger_words,
    manager_of,
    name_of,
    patience_of,
    program_words,
    serving_words,
    store_variables,
    trust_variables,
    unit_of,
    user_of,
)
from queuectl.cli.workerwords import serving_options
from queuectl.errors import QueuectlError, UsageError

_HERE: Final = "queuectl.cli.commands.service"
LOOK_EVERY: Final = 0.05
LEAVING: Final = 30.0  # seconds a worker gets to go when what it runs goes on: it only writes down what has ended

service = group(
    "service",
    "A worker that is always there: started with the system, watched, and restarted without disturbing its jobs.",
    {
        "install": Entry(_HERE, "service_install", "Have the system keep a worker."),
        "status": Entry(_HERE, "service_status", "How the service stands."),
        "uninstall": Entry(_HERE, "service_uninstall", "Stop the worker and forget the service."),
        "end": Entry(_HERE, "service_end", "What systemd calls to stop the worker.", hidden=True),
    },
    examples="""
        queuectl service install --count 4
        queuectl service status
        queuectl service uninstall
    """,
)

_NAME = click.option("--name", metavar="NAME", help="The worker's id, for several services; else the host's name.")
_SYSTEM = click.option("--system", "is_system", is_flag=True, help="Of the whole machine, not of you; needs root.")


@command(
    "install",
    any_home=True,
    examples="""
        # yours: it runs as you, on your own home
        queuectl service install --count 4
        # of the machine: as the user queuectl, in /var/lib/queuectl
        sudo queuectl service install --system --count 4
        # only look at what would be installed
        queuectl service install --count 4 --print
        # a second one beside it
        queuectl service install --name mail --queue mail --count 2
    """,
)
@_SYSTEM
@serving_options
@_NAME
@click.option("--run-as", metavar="USER", help=f"With --system: who worker and jobs run as; else {SYSTEM_USER}.")
@click.option(
    "--stop-timeout",
    metavar="TIME",
    default=STOP_TIMEOUT,
    show_default=True,
    help="How long jobs may finish at a stop, before they go back to the line; none: as long as they take.",
)
@click.option(
    "--env",
    "env",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="A variable for worker and jobs; NAME alone: as it is now.",
)
@click.option("--allow-sudo", is_flag=True, help="With --system: let jobs gain rights by sudo and the like.")
@click.option("--print", "print_only", is_flag=True, help="Print the unit or property list, and change nothing.")
@click.option("--manager", type=click.Choice(["systemd", "launchd"]), hidden=True)
def service_install(
    app: App,
    is_system: bool,
    count: str | None,
    queues: tuple[str, ...],
    drain: bool,
    idle_timeout: str | None,
    log_format: str,
    policy: str | None,
    name: str | None,
    run_as: str | None,
    stop_timeout: str,
    env: tuple[str, ...],
    allow_sudo: bool,
    print_only: bool,
    manager: str | None,
) -> Result:
    """Have the system keep a worker: a unit of systemd, on macOS a property list of launchd.

    It is started now and with the system, watched, and started again when it fails. A restart disturbs no job: what runs goes on.
    A second time changes what is said otherwise, and no more.
    """
    if not is_system and (run_as is not None or allow_sudo):
        option = "--allow-sudo" if allow_sudo else "--run-as"
        raise UsageError(f"{option} is for a service of the system", hint="add --system, or leave it away")
    from queuectl.service import keep
    from queuectl.service.order import Service

    chosen = manager_of(app, manager, is_system=is_system)
    home = home_of(app, is_system=is_system)
    wanted = Service(
        name=name_of(app, name),
        unit=unit_of(name),
        program=program_words(),
        words=tuple(serving_words(count, queues, drain, idle_timeout, log_format, policy)),
        environment={
            "QUEUECTL_HOME": home,
            **trust_variables(app, home),
            **store_variables(app),
            **given_variables(app, env),
        },
        home=home,
        is_system=is_system,
        run_as=user_of(run_as) if is_system else None,
        stop_timeout=patience_of(stop_timeout),
        may_sudo=allow_sudo,
    )
    if print_only:
        text = chosen.text(wanted)
        value = {"name": wanted.name, "manager": chosen.name, "path": chosen.path(wanted), "text": text}
        return Lines(text.splitlines(), value)
    if is_system:
        check_root(wanted)
    done = keep.install(chosen, wanted)
    told = {"changed": done.is_changed, **as_json(chosen, wanted, done.standing)}
    how = "is installed" if done.is_changed else "was installed already, and nothing has changed"
    line = f"the service {wanted.unit} {how}: {printable(done.path)}; it is {done.standing.active}"
    return Sheet(told, people=lambda: [line, *linger_words(app, chosen.name, is_system=is_system)], id=wanted.name)


@command("status", any_home=True, examples="queuectl service status")
@_SYSTEM
@_NAME
@click.option("--manager", type=click.Choice(["systemd", "launchd"]), hidden=True)
def service_status(app: App, is_system: bool, name: str | None, manager: str | None) -> Result:
    """How the service stands: whether it is installed, starts with the system and runs, and what its worker says."""
    from queuectl.service import keep

    chosen, known = manager_of(app, manager, is_system=is_system), known_service(app, name, is_system=is_system)
    if keep.read(chosen.path(known)) is None:
        return Lines([f"there is no service {known.unit}: queuectl service install"], as_json(chosen, known, None))
    chosen.check()
    standing = chosen.standing(known)

    def lines() -> Iterator[str]:
        runs = f", pid {standing.pid}" if standing.pid else ""
        since = f", since {standing.since}" if standing.since else ""
        starts = "starts with the system" if standing.is_enabled else "does not start with the system"
        yield f"{known.unit} is {standing.active}{runs}{since}; it {starts}"
        if standing.status:
            yield f"  {printable(standing.status)}"
        if standing.restarts:
            yield f"  started again {standing.restarts} times by {chosen.name}"
        yield f"  {printable(chosen.path(known))}"

    return Sheet(as_json(chosen, known, standing), people=lines, id=known.name)


@command("uninstall", any_home=True, examples="queuectl service uninstall")
@_SYSTEM
@_NAME
@click.option("--manager", type=click.Choice(["systemd", "launchd"]), hidden=True)
def service_uninstall(app: App, is_system: bool, name: str | None, manager: str | None) -> Result:
    """Stop the worker, as `systemctl stop` does, and forget the service. Home, store and jobs stay."""
    from queuectl.service import keep

    chosen, known = manager_of(app, manager, is_system=is_system), known_service(app, name, is_system=is_system)
    is_done = keep.uninstall(chosen, known)
    line = f"the service {known.unit} is gone" if is_done else f"there is no service {known.unit}"
    return Lines([line], {"done": [known.name] if is_done else [], "refused": []})


@command("end", examples="queuectl service end web1 --timeout 90s --unit queuectl.service")
@click.argument("name")
@click.option("--timeout", metavar="TIME", default=STOP_TIMEOUT)
@click.option("--unit", metavar="UNIT", required=True)
@_SYSTEM
def service_end(app: App, name: str, timeout: str, unit: str, is_system: bool) -> Result:
    """Stop a worker for systemd: before it is started again, leave what runs to the next one; else let it finish."""
    from queuectl.process.leaving import tell_to_leave
    from queuectl.process.table import lives
    from queuectl.service.manager import Systemd

    patience = patience_of(timeout)
    pid = app.environ.get("MAINPID", "")
    manager = Systemd(is_system=is_system, config="")
    try:
        is_restart = manager.is_restarting(unit)
    except QueuectlError:
        is_restart = False
    if is_restart and pid.isdecimal() and tell_to_leave(int(pid)):
        deadline = app.clock.monotonic() + LEAVING
        while lives(int(pid)) and app.clock.monotonic() < deadline:
            app.clock.sleep(LOOK_EVERY)
        return Nothing()
    from queuectl.cli.stopping import named_workers, stop_and_wait
    from queuectl.store.protocol import StopMode

    targets, _ = named_workers(app, app.open_reads().workers(), [name], everywhere=False)
    stop_and_wait(app, targets, mode=StopMode.FINISH, timeout=patience)
    return Nothing()
