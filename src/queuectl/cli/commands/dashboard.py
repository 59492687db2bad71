"""queuectl dashboard"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.printable import printable
from queuectl.cli.result import Nothing, Result
from queuectl.errors import ExtraMissing, InvalidInput

if TYPE_CHECKING:
    from queuectl.web.tokens import Token


@command(
    "dashboard",
    examples="""
        # on this machine only; prints the address to open
        queuectl dashboard
        # for programs: they send it as Authorization: Bearer
        queuectl dashboard --token-file ~/.queuectl-tokens
        # for other machines, over TLS
        queuectl dashboard --host 0.0.0.0 --token-file tokens --tls-cert cert.pem --tls-key key.pem
    """,
)
@click.option(
    "--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; 127.0.0.1 unless told otherwise."
)
@click.option(
    "--port", default="8420", metavar="N", help="The port; 8420 unless told otherwise, 0 for any that is free."
)
@click.option("--token-file", metavar="FILE", help="Tokens of your own, one a line: [[NAME] full|read] TOKEN.")
@click.option("--tls-cert", metavar="FILE", help="A certificate, for https.")
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy before this one speaks https with the browsers.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A name by which it may be called.")
def dashboard(
    app: App,
    host: str,
    port: str,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    hosts: tuple[str, ...],
) -> Result:
    """The web dashboard and the HTTP API, until Ctrl-C.

    The printed address carries a token that is made at each start, unless there is one of your own in a file or in
    $QUEUECTL_TOKEN. To listen for other machines needs one of your own, and TLS files or --behind-proxy.
    """
    number = _port(port)
    try:
        from queuectl.web import serve, tokens
    except ImportError as exc:
        raise ExtraMissing("the dashboard", "dashboard") from exc
    own = _own_tokens(app, token_file)
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("--tls-cert", "goes with --tls-key", hint="give both, or neither")
    if not serve.is_loopback(host) and not (own and (tls_cert or behind_proxy)):
        raise InvalidInput(
            "--host",
            f"{host} is reached by others: whoever has the token runs commands here",
            hint="give --token-file and --tls-cert with --tls-key, or --token-file and --behind-proxy",
        )
    made = None if own else tokens.new_token()
    plan = serve.Plan(
        host, number, tokens.Tokens([made] if made else own), frozenset(hosts), tls_cert, tls_key, behind_proxy
    )
    listener = serve.bind(host, number)

    def say(bound: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        address = f"{'https' if tls_cert else 'http'}://{shown}:{bound}/"
        app.print(address + (f"?token={made.secret}" if made else ""), flush=True)
        app.say(f"the dashboard of {printable(app.home)} is at this address; Ctrl-C ends it")

    from queuectl.web.desk import Desk

    home, db = app.home, app.db
    serve.serve(lambda: Desk(home, db), plan, listener, started=say)
    return Nothing()


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65_536:
        return int(text)
    raise InvalidInput("--port", f"not a port: {text!r}", hint="a number from 0 to 65535; 0 for any that is free")


def _own_tokens(app: App, token_file: str | None) -> list[Token]:
    from queuectl.web.tokens import own_token, read_token_file

    found = [] if token_file is None else read_token_file(token_file)
    if (secret := app.environ.get("QUEUECTL_TOKEN")) is not None:
        found.append(own_token(secret, subject="QUEUECTL_TOKEN"))
    return found
