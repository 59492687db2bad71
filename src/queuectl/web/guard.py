"""The door: who may come in, before anything is done for them.

In this order, each a reason to be turned away: a host that is not ours (421: a name that somebody has pointed at this address),
a page of another origin (403), no token or a wrong one (401), a token that may only look (403).

What is asked for by the browser of somebody who knows the token may come from any page that is open in it. The cookie does not
come along from another site; the port is no part of a site, so Origin and Sec-Fetch-Site are looked at, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from queuectl.job.shown import shown
from queuectl.web.problems import Refused
from queuectl.web.tokens import Right, Token, Tokens

SAFE: Final = frozenset({"GET", "HEAD"})
OPEN: Final = frozenset({"/healthz", "/login", "/logout"})  # what has nothing to tell
OWN_SITES: Final = frozenset({"same-origin", "none"})  # none: no page has asked, but a person
PROGRAMS: Final = ("/api/", "/metrics")  # what no address of a page leads to
WRONG: Final = "this token is not, or no longer, the right one"


class Door(NamedTuple):
    """What this server is to the outside. `hosts` are names besides addresses and localhost by which it may be called."""

    tokens: Tokens
    port: int
    loopback: bool
    secure: bool  # the browser speaks TLS, with us or with a proxy before us
    hosts: frozenset[str] = frozenset()

    @property
    def cookie(self) -> str:
        # A browser sends the cookies of a host to all its ports: with the number in the name, two servers do not
        # overwrite each other's.
        return f"queuectl-{self.port}"


def admit(scope: Scope, door: Door) -> Token | None:
    """Whoever this is; None where nobody needs to be known. Raises Refused."""
    headers = check_host(scope, door)
    origin = headers.get("origin")
    if origin is not None and not _is_same(origin, headers["host"], door):
        raise _foreign(origin)
    path, is_change = scope["path"], scope["method"] not in SAFE
    if path.startswith(PROGRAMS) and (site := headers.get("sec-fetch-site", "none")) not in OWN_SITES:
        raise _foreign(site)
    if path in OPEN or path.startswith("/static/"):
        return None
    token, by_cookie = _token(headers, door)
    if is_change and by_cookie and origin is None:
        # Every browser says where a change comes from. Who does not is no page of ours.
        raise _foreign("nowhere")
    if is_change and token.right is Right.READ:
        raise Refused(
            HTTPStatus.FORBIDDEN, "read-only", "this token may only look", hint="use one that may change things, too"
        )
    return token


def check_host(scope: Scope, door: Door) -> Headers:
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if len(headers.getlist("host")) != 1 or not _is_ours(host, door):
        raise Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            "foreign-host",
            f"this server is not {shown(host)}",
            hint="use the address that queuectl dashboard printed, or start it with --allow-host NAME",
        )
    return headers


def no_token(detail: str) -> Refused:
    return Refused(
        HTTPStatus.UNAUTHORIZED,
        "no-token",
        detail,
        hint="send it as Authorization: Bearer TOKEN, or open the address that queuectl dashboard printed",
        headers={"WWW-Authenticate": 'Bearer realm="queuectl"'},
    )


def _foreign(origin: str) -> Refused:
    return Refused(
        HTTPStatus.FORBIDDEN,
        "foreign-origin",
        f"not from {shown(origin)}",
        hint="only pages of this server may do that",
    )


def _token(headers: Mapping[str, str], door: Door) -> tuple[Token, bool]:
    """The token that was given, and whether by a cookie. Raises Refused."""
    given = headers.get("authorization")
    if given is not None:  # said on purpose: what a cookie says does not count beside it
        kind, _, secret = given.partition(" ")
        return _known(secret.strip() if kind.lower() == "bearer" else None, door.tokens.find), False
    return _known(cookie_parser(headers.get("cookie", "")).get(door.cookie), door.tokens.find_cookie), True


def _known(secret: str | None, find: Callable[[str], Token | None]) -> Token:
    if not secret:
        raise no_token("a token is needed")
    token = find(secret)
    if token is None:
        raise no_token(WRONG)
    return token


def _is_ours(host: str, door: Door) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.username is not None or parts.path or parts.query or parts.fragment or not name:
        return False
    if name in door.hosts:
        return True  # its port is the proxy's, or that of a tunnel
    if port != door.port and not (port is None and door.port in {80, 443}):
        return False
    if name == "localhost":
        return True
    try:
        # Nobody can point an address elsewhere: only names can be.
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not door.loopback


def _is_same(origin: str, host: str, door: Door) -> bool:
    return origin == f"{'https' if door.secure else 'http'}://{host}"


class Guard:
    """Lets in who may, and leaves who it is in `scope["state"]["token"]`."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            app = self._welcome(scope) or app
            if app is self._app:
                scope.setdefault("state", {})["token"] = admit(scope, self._door)
        await app(scope, receive, send)

    def _welcome(self, scope: Scope) -> Response | None:
        """For a page whose address carries the token: the same one without it, and a cookie in its place. Addresses are kept in
        histories, sent to others, and seen over shoulders."""
        given = parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
        secret = next((value for name, value in given if name == "token"), None)
        if secret is None or scope["method"] not in SAFE or scope["path"].startswith(PROGRAMS):
            return None
        check_host(scope, self._door)
        token = self._door.tokens.find(secret)
        if token is None:
            raise no_token(WRONG)
        rest = urlencode([(name, value) for name, value in given if name != "token"])
        path = quote("/" + scope["path"].lstrip("/"))  # with two of them it would name another host
        return with_cookie(RedirectResponse(path + (f"?{rest}" if rest else ""), 303), token, self._door)


def with_cookie(response: Response, token: Token, door: Door) -> Response:
    response.set_cookie(door.cookie, token.cookie(), httponly=True, samesite="strict", secure=door.secure, path="/")
    return response
