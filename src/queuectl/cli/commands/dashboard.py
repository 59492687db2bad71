"""The web dashboard, and top, the dashboard in the terminal."""

from __future__ import annotations

import json
import logging
import os
import re
from typing import TYPE_CHECKING, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, policy_option
from queuectl.cli.render import Nothing, Result
from queuectl.clock import Clock
from queuectl.errors import ExtraMissing, InvalidInput, UsageError
from queuectl.policy.gate import open_gate
from queuectl.process.spawn import start_programs_with_default_signals
from queuectl.text import escape_control

if TYPE_CHECKING:
    from queuectl.web.auth import Token
    from queuectl.web.server import ServerConfig

_PACKAGES: Final = frozenset({"anyio", "h11", "jinja2", "markupsafe", "starlette", "uvicorn"})
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@command("dashboard")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", default="8420", metavar="N", help="Port (default: 8420; 0: any free one).")
@click.option("--token-file", metavar="FILE", help="File of tokens, one per line: [[NAME] full|read] TOKEN.")
@click.option("--tls-cert", metavar="FILE", help="File with the TLS certificate.")
@click.option("--tls-key", metavar="FILE", help="File with the TLS key.")
@click.option("--behind-proxy", is_flag=True, help="Run behind a reverse proxy that terminates TLS.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Accept requests for this host name; repeatable."
)
@click.option("--allow-alert-commands", is_flag=True, help="Accept alerts with a command over HTTP.")
@policy_option
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
    """Serve the web dashboard and the HTTP API until Ctrl-C.

    The printed URL contains a token, which is generated at each start. To use your own tokens, set --token-file or
    $QUEUECTL_TOKEN. Access from other hosts requires your own token, and TLS files or --behind-proxy.

    Examples:
        # on this host only; prints the URL to open
        queuectl dashboard
        # for programs, with the header Authorization: Bearer
        queuectl dashboard --token-file ~/.queuectl-tokens
        # for other hosts, over TLS
        queuectl dashboard --host 0.0.0.0 --token-file tokens --tls-cert cert.pem --tls-key key.pem
        # clients may add alerts that run a command, if the policy allows it
        queuectl dashboard --allow-alert-commands --policy /etc/queuectl/policy.toml
        # behind a proxy that terminates TLS and forwards Host
        queuectl dashboard --token-file tokens --behind-proxy --allow-host queue.example.org
    """
    number = port_number(port)
    names = frozenset(map(_host_name, hosts))
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("--tls-cert", "goes with --tls-key", hint="give both, or neither")
    try:
        from queuectl.web import auth, server
    except ImportError as exc:
        if (exc.name or "").partition(".")[0] not in _PACKAGES:
            raise
        from queuectl.installation import install_command

        raise ExtraMissing("the dashboard", install_command("dashboard")) from exc
    gate = open_gate(app.home, policy, app.environ)
    own = _configured_tokens(app, token_file)
    if not server.is_loopback(host) and not (own and (tls_cert or behind_proxy)):
        raise InvalidInput(
            "--host",
            f"{host} is reachable from other hosts: clients with the token can run commands here",
            hint="give --token-file and --tls-cert with --tls-key, or --token-file and --behind-proxy",
        )
    if tls_cert is not None and tls_key is not None:
        server.check_tls(tls_cert, tls_key)
    generated = None if own else auth.new_token()
    config = server.ServerConfig(
        host, number, auth.Tokens([generated] if generated else own), names, tls_cert, tls_key, behind_proxy
    )
    listener = server.bind(host, number)
    _set_up_logging(app)

    from queuectl.store_threads import WebSession

    start_programs_with_default_signals()  # the commands of alerts
    home, db = app.home, app.db

    def make_session(clock: Clock) -> WebSession:
        # The data directory was checked before the command began.
        return WebSession(
            home, db, gate=gate, accepts_alert_commands=allow_alert_commands, clock=clock, trust_home=True
        )

    server.serve(make_session, config, listener, started=lambda bound: _print_url(app, config, bound, generated))
    return Nothing()


def _print_url(app: App, config: ServerConfig, bound: int, generated: Token | None) -> None:
    shown = f"[{config.host}]" if ":" in config.host else config.host
    address = f"{'https' if config.certificate else 'http'}://{shown}:{bound}/"
    url = f"{address}?token={generated.secret}" if generated else address
    app.print(json.dumps({"url": url, "pid": os.getpid()}) if app.flags.json else url, flush=True)
    whose = "The token is valid until the server stops." if generated else "Sign in with your token."
    app.say(f"Open this URL for the dashboard of {escape_control(app.home)}. {whose} Ctrl-C stops the server.")


class _Log(logging.Handler):
    """Prints warnings and errors of the server on stderr, a line each."""

    def __init__(self, app: App) -> None:
        super().__init__(logging.WARNING)
        self._stream = app.stderr

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            self._stream.write(f"queuectl: {escape_control(line)}\n")
        self._stream.flush()


def _set_up_logging(app: App) -> None:
    ours, servers = logging.getLogger("queuectl.web"), logging.getLogger("uvicorn.error")
    ours.addHandler(_Log(app))
    ours.propagate = False
    # Only reports of invalid HTTP from any client are lost: our log has all other problems.
    servers.setLevel(logging.CRITICAL)


def _host_name(text: str) -> str:
    if _NAME.fullmatch(text.lower()):
        return text.lower()
    raise InvalidInput(
        "--allow-host", f"not the name of a host: {text!r}", hint="for example, queue.example.org, without a port"
    )


def _configured_tokens(app: App, token_file: str | None) -> list[Token]:
    from queuectl.web.auth import own_token, read_token_file

    found = [] if token_file is None else read_token_file(token_file)
    if (secret := app.environ.get("QUEUECTL_TOKEN")) is not None:
        found.append(own_token(secret, subject="QUEUECTL_TOKEN"))
    return found


@command("top")
def top(app: App) -> Result:
    """Show queues, workers, jobs and logs live in the terminal. Press ? for all keys, and q to quit.

    This command requires the extra tui. If the extra is missing, the command prints how to install it.

    Examples:
        queuectl top
        # a shared database
        queuectl --db postgresql://queue@db/jobs top
    """
    if app.flags.json or not (app.stdin.isatty() and app.stdout_is_terminal and app.stderr_is_terminal):
        raise UsageError("top needs a terminal", hint="without one, use queuectl status --watch")
    try:
        from queuectl.tui.app import Top
    except ImportError as exc:
        from queuectl.installation import install_command

        raise ExtraMissing("top", install_command("tui")) from exc
    app.open_reads().changed()  # report an error now: later ones are retried
    app.close()
    view = Top(app.home, app.db, colour=app.color_on(app.stdout))
    try:
        view.run()
    finally:
        view.threads.close()
    if view.fault is not None:
        raise view.fault
    return Nothing()


def port_number(text: str) -> int:
    if re.fullmatch("[0-9]{1,5}", text) and int(text) < 65_536:
        return int(text)
    hint = "for example, --port 8420; 0 for any free one"
    raise InvalidInput("--port", f"expected an integer from 0 to 65535, got {text!r}", hint=hint)
