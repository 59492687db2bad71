"""queuectl dashboard"""

from __future__ import annotations

import json
import logging
import os
import re
from typing import TYPE_CHECKING, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.numbers import port_number
from queuectl.cli.printable import printable
from queuectl.cli.result import Nothing, Result
from queuectl.clock import Clock
from queuectl.config import file_path
from queuectl.errors import ExtraMissing, InvalidInput
from queuectl.gate import open_gate
from queuectl.process.dispositions import start_programs_with_default_signals

if TYPE_CHECKING:
    from queuectl.web.serve import Plan
    from queuectl.web.tokens import Token

_PACKAGES: Final = frozenset({"anyio", "h11", "jinja2", "markupsafe", "starlette", "uvicorn"})
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@command(
    "dashboard",
    examples="""
        # on this machine only; prints the address to open
        queuectl dashboard
        # for programs: they send it as Authorization: Bearer
        queuectl dashboard --token-file ~/.queuectl-tokens
        # for other machines, over TLS
        queuectl dashboard --host 0.0.0.0 --token-file tokens --tls-cert cert.pem --tls-key key.pem
        # clients may add alerts that run a command, as far as the policy allows it
        queuectl dashboard --allow-alert-commands --policy /etc/queuectl/policy.toml
        # behind a proxy that speaks https and passes the Host on
        queuectl dashboard --token-file tokens --behind-proxy --allow-host queue.example.org
    """,
)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; else 127.0.0.1.")
@click.option("--port", default="8420", metavar="N", help="The port; else 8420. 0: any that is free.")
@click.option("--token-file", metavar="FILE", help="Tokens of your own, one a line: [[NAME] full|read] TOKEN.")
@click.option("--tls-cert", metavar="FILE", help="A certificate, for https.")
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy before this one speaks https with the browsers.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A name by which it may be called.")
@click.option("--allow-alert-commands", is_flag=True, help="Accept alerts with a command over HTTP.")
@click.option("--policy", metavar="FILE", help="Policy for alert commands (default: policy.toml of the home).")
def dashboard(
    app: App,
    host: str,
    port: str,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    hosts: tuple[str, ...],
    allow_alert_commands: bool,
    policy: str | None,
) -> Result:
    """The web dashboard and the HTTP API, until Ctrl-C.

    The printed address carries a token that is made at each start, unless there is one of your own in a file or in
    $QUEUECTL_TOKEN. To listen for other machines needs one of your own, and TLS files or --behind-proxy.
    """
    number = port_number(port)
    names = frozenset(map(_host_name, hosts))
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("--tls-cert", "goes with --tls-key", hint="give both, or neither")
    try:
        from queuectl.web import serve, tokens
    except ImportError as exc:
        if (exc.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise ExtraMissing("the dashboard", "dashboard") from exc
    gate = open_gate(app.home, None if policy is None else file_path(policy, spelled="--policy"), app.environ)
    own = _own_tokens(app, token_file)
    if not serve.is_loopback(host) and not (own and (tls_cert or behind_proxy)):
        raise InvalidInput(
            "--host",
            f"{host} is reached by others: whoever has the token runs commands here",
            hint="give --token-file and --tls-cert with --tls-key, or --token-file and --behind-proxy",
        )
    if tls_cert is not None and tls_key is not None:
        serve.check_tls(tls_cert, tls_key)
    made = None if own else tokens.new_token()
    plan = serve.Plan(host, number, tokens.Tokens([made] if made else own), names, tls_cert, tls_key, behind_proxy)
    listener = serve.bind(host, number)
    _log_to(app)

    from queuectl.web.desk import Desk

    start_programs_with_default_signals()  # the commands of alerts
    home, db = app.home, app.db

    def make_desk(clock: Clock) -> Desk:
        # The data directory was checked before the command began.
        return Desk(home, db, gate=gate, accepts_alert_commands=allow_alert_commands, clock=clock, trust_home=True)

    serve.serve(make_desk, plan, listener, started=lambda bound: _say(app, plan, bound, made))
    return Nothing()


def _say(app: App, plan: Plan, bound: int, made: Token | None) -> None:
    shown = f"[{plan.host}]" if ":" in plan.host else plan.host
    address = f"{'https' if plan.certificate else 'http'}://{shown}:{bound}/"
    url = f"{address}?token={made.secret}" if made else address
    app.print(json.dumps({"url": url, "pid": os.getpid()}) if app.flags.json else url, flush=True)
    whose = "the token in it is for this time only" if made else "it asks for your token"
    app.say(f"the dashboard of {printable(app.home)} is at this address; {whose}. Ctrl-C ends it")


class _Log(logging.Handler):
    """Onto stderr, a line each: what goes wrong in a server, nobody else is told."""

    def __init__(self, app: App) -> None:
        super().__init__(logging.WARNING)
        self._stream = app.stderr

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            self._stream.write(f"queuectl: {printable(line)}\n")
        self._stream.flush()


def _log_to(app: App) -> None:
    ours, servers = logging.getLogger("queuectl.web"), logging.getLogger("uvicorn.error")
    ours.addHandler(_Log(app))
    ours.propagate = False
    # It says nothing that ours has not said, but for what strangers send that is no HTTP.
    servers.setLevel(logging.CRITICAL)


def _host_name(text: str) -> str:
    if _NAME.fullmatch(text.lower()):
        return text.lower()
    raise InvalidInput(
        "--allow-host", f"not the name of a host: {text!r}", hint="like queue.example.org, without a port"
    )


def _own_tokens(app: App, token_file: str | None) -> list[Token]:
    from queuectl.web.tokens import own_token, read_token_file

    found = [] if token_file is None else read_token_file(token_file)
    if (secret := app.environ.get("QUEUECTL_TOKEN")) is not None:
        found.append(own_token(secret, subject="QUEUECTL_TOKEN"))
    return found
