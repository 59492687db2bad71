"""Authentication: tokens, session cookies, and protection against DNS rebinding and cross-site requests.

A request is refused, in this order, for a Host header that is not this server (421: DNS rebinding), an Origin of another site (403),
a missing or invalid token (401), and a change with a read-only token (403).

A signed-in browser may send requests from any page that is open in it. The cookie is SameSite=Strict, but the port is no part of a
site, so Origin and Sec-Fetch-Site are checked, too.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import stat
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from queuectl.errors import FileUnreadable, InvalidInput
from queuectl.text import short_repr
from queuectl.web.middleware import Refused

MIN_TOKEN_LENGTH: Final = 16  # characters: too long to guess over a network
_COOKIE_CONTEXT: Final = b"queuectl cookie"


class Right(StrEnum):
    FULL = "full"
    READ = "read"


class Token(NamedTuple):
    name: str
    right: Right
    secret: str

    def cookie(self) -> str:
        """The value of the session cookie. The token cannot be derived from it."""
        return hmac.new(self.secret.encode(), _COOKIE_CONTEXT, hashlib.sha256).hexdigest()


class Tokens:
    def __init__(self, tokens: list[Token]) -> None:
        self._by_secret = [(_digest(token.secret), token) for token in tokens]
        self._by_cookie = [(_digest(token.cookie()), token) for token in tokens]

    def find(self, secret: str) -> Token | None:
        return _find(secret, self._by_secret)

    def find_cookie(self, value: str) -> Token | None:
        return _find(value, self._by_cookie)


def new_token() -> Token:
    return Token("start", Right.FULL, secrets.token_urlsafe(32))


def own_token(secret: str, *, subject: str) -> Token:
    return Token("own", Right.FULL, _checked(secret, subject))


def read_token_file(path: str) -> list[Token]:
    """Read one token per line: `[[NAME] full|read] TOKEN`; `#` begins a comment. Only the owner may have access to the file."""
    try:
        # fstat: the path may name another file a moment later.
        with open(path, encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            text = file.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise FileUnreadable(path, getattr(exc, "strerror", None) or "it is not UTF-8") from exc
    if about.st_uid not in {os.getuid(), 0} or stat.S_IMODE(about.st_mode) & 0o077:
        problem = f"others can read it (mode {stat.S_IMODE(about.st_mode):o})"
        raise InvalidInput("--token-file", f"{path}: {problem}", hint=f"restrict it: chmod 600 {path}")
    # A # within a token is part of it: a shorter token would be easier to guess.
    lines = ((number, re.split(r"(?:^|\s)#", line)[0].split()) for number, line in enumerate(text.splitlines(), 1))
    tokens = [_read_line(parts, f"--token-file, line {number}") for number, parts in lines if parts]
    if not tokens:
        raise InvalidInput("--token-file", f"{path} has no token", hint="write one token per line")
    return tokens


def _read_line(parts: list[str], subject: str) -> Token:
    *about, secret = parts
    if len(about) > 2 or (about and about[-1] not in set(Right)):
        raise InvalidInput(
            subject, "expected [[NAME] full|read] TOKEN", hint=f"for example: grafana read {'x' * MIN_TOKEN_LENGTH}"
        )
    right = Right(about[-1]) if about else Right.FULL
    return Token(about[0] if len(about) == 2 else "own", right, _checked(secret, subject))


def _checked(secret: str, subject: str) -> str:
    if len(secret) < MIN_TOKEN_LENGTH or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInput(
            subject,
            f"a token has {MIN_TOKEN_LENGTH} or more visible ASCII characters",
            hint="generate one: python3 -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return secret


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _find(given: str, known: list[tuple[bytes, Token]]) -> Token | None:
    """Compare with every token, in constant time."""
    digest = _digest(given)
    found = [token for other, token in known if hmac.compare_digest(digest, other)]
    return found[-1] if found else None


SAFE: Final = frozenset({"GET", "HEAD"})
PUBLIC_PATHS: Final = frozenset({"/healthz", "/login", "/logout"})  # without a token
OWN_SITES: Final = frozenset({"same-origin", "none"})  # none: the user entered the address
API_PATHS: Final = ("/api/", "/metrics")  # no page is below these paths
INVALID_CREDENTIALS: Final = "the token is invalid or has expired"


class AuthConfig(NamedTuple):
    """How clients reach this server. `hosts`: host names that are accepted besides IP addresses and localhost."""

    tokens: Tokens
    port: int
    loopback: bool
    secure: bool  # the browser uses TLS, to this server or to a proxy in front of it
    hosts: frozenset[str] = frozenset()

    @property
    def cookie(self) -> str:
        # Browsers share cookies between the ports of a host: the port in the name keeps two servers apart.
        return f"queuectl-{self.port}"


def authenticate(scope: Scope, auth: AuthConfig) -> Token | None:
    """Return the token of a request; None for a public path. Raises Refused."""
    headers = check_host(scope, auth)
    origin = headers.get("origin")
    if origin is not None and not _is_same(origin, headers["host"], auth):
        raise _foreign(origin)
    path, is_change = scope["path"], scope["method"] not in SAFE
    if path.startswith(API_PATHS) and (site := headers.get("sec-fetch-site", "none")) not in OWN_SITES:
        raise _foreign(site)
    if path in PUBLIC_PATHS or path.startswith("/static/"):
        return None
    token, by_cookie = _find_token(headers, auth)
    if is_change and by_cookie and origin is None:
        # Every browser sends Origin with a change.
        raise _foreign("nowhere")
    if is_change and token.right is Right.READ:
        raise Refused(HTTPStatus.FORBIDDEN, "read-only", "the token is read-only", hint="use a token with write access")
    return token


def check_host(scope: Scope, auth: AuthConfig) -> Headers:
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if len(headers.getlist("host")) != 1 or not _is_own_host(host, auth):
        raise Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            "foreign-host",
            f"this server is not {short_repr(host)}",
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
        f"requests from {short_repr(origin)} are not allowed",
        hint="open the dashboard at its own address, or send the token in the Authorization header",
    )


def _find_token(headers: Mapping[str, str], auth: AuthConfig) -> tuple[Token, bool]:
    """Find the token of a request, and whether it came from a cookie. Raises Refused."""
    given = headers.get("authorization")
    by_cookie = given is None  # the header takes precedence
    if given is None:
        secret = cookie_parser(headers.get("cookie", "")).get(auth.cookie)
    else:
        kind, _, secret = given.partition(" ")
        secret = secret.strip() if kind.lower() == "bearer" else None
    if not secret:
        raise no_token("a token is required")
    token = auth.tokens.find_cookie(secret) if by_cookie else auth.tokens.find(secret)
    if token is None:
        raise no_token(INVALID_CREDENTIALS)
    return token, by_cookie


def _is_own_host(host: str, auth: AuthConfig) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.username is not None or parts.path or parts.query or parts.fragment or not name:
        return False
    if name in auth.hosts:
        return True  # with any port: that of a proxy or a tunnel
    if port != auth.port and not (port is None and auth.port in {80, 443}):
        return False
    if name == "localhost":
        return True
    try:
        # DNS rebinding needs a name: IP addresses are safe.
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not auth.loopback


def _is_same(origin: str, host: str, auth: AuthConfig) -> bool:
    return origin == f"{'https' if auth.secure else 'http'}://{host}"


class AuthMiddleware:
    """Authenticates requests and stores the token in `scope["state"]["token"]`."""

    def __init__(self, app: ASGIApp, auth: AuthConfig) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            app = self._sign_in(scope) or app
            if app is self._app:
                scope.setdefault("state", {})["token"] = authenticate(scope, self._auth)
        await app(scope, receive, send)

    def _sign_in(self, scope: Scope) -> Response | None:
        """If the URL of a page contains the token, redirect to the same URL without it and set a cookie: URLs end up in histories
        and messages."""
        given = parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
        secret = next((value for name, value in given if name == "token"), None)
        if secret is None or scope["method"] not in SAFE or scope["path"].startswith(API_PATHS):
            return None
        check_host(scope, self._auth)
        token = self._auth.tokens.find(secret)
        if token is None:
            raise no_token(INVALID_CREDENTIALS)
        rest = urlencode([(name, value) for name, value in given if name != "token"])
        path = quote("/" + scope["path"].lstrip("/"))  # two slashes would name another host
        return with_cookie(RedirectResponse(path + (f"?{rest}" if rest else ""), 303), token, self._auth)


def with_cookie(response: Response, token: Token, auth: AuthConfig) -> Response:
    response.set_cookie(auth.cookie, token.cookie(), httponly=True, samesite="strict", secure=auth.secure, path="/")
    return response
