"""Who may: secrets that are shown at the door, and what each allows.

A token is compared by its digest, in constant time and always with all of them: how long an answer takes tells nothing about
how much of a guess was right.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from enum import StrEnum
from typing import Final, NamedTuple

from queuectl.errors import FileUnreadable, InvalidInput

SHORTEST: Final = 16  # characters: nobody guesses that many over a network
_COOKIE_OF: Final = b"queuectl cookie"


class Right(StrEnum):
    FULL = "full"
    READ = "read"  # to look, and to change nothing


class Token(NamedTuple):
    name: str
    right: Right
    secret: str

    def cookie(self) -> str:
        """What a browser keeps in its place: who finds it cannot make the token of it."""
        return hmac.new(self.secret.encode(), _COOKIE_OF, hashlib.sha256).hexdigest()


class Tokens:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
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
    """A token a line: `[[NAME] full|read] TOKEN`; `#` begins a comment. The file has to be its owner's alone."""
    try:
        # Asked of what was opened: the name may stand for another file a moment later.
        with open(path, encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            text = file.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise FileUnreadable(path, getattr(exc, "strerror", None) or "it is not UTF-8") from exc
    if about.st_uid not in {os.getuid(), 0} or stat.S_IMODE(about.st_mode) & 0o077:
        problem = f"others may read it (mode {stat.S_IMODE(about.st_mode):o})"
        raise InvalidInput("--token-file", f"{path}: {problem}", hint=f"keep it for yourself: chmod 600 {path}")
    # A # within a token is a part of it: cut off there, what is left would be easier to guess.
    lines = ((number, re.split(r"(?:^|\s)#", line)[0].split()) for number, line in enumerate(text.splitlines(), 1))
    tokens = [_read_line(words, f"--token-file, line {number}") for number, words in lines if words]
    if not tokens:
        raise InvalidInput("--token-file", f"{path} has no token", hint="write one into it, a line each")
    return tokens


def _read_line(words: list[str], subject: str) -> Token:
    *about, secret = words
    if len(about) > 2 or (about and about[-1] not in set(Right)):
        raise InvalidInput(subject, "expected [[NAME] full|read] TOKEN", hint=f"like: grafana read {'x' * SHORTEST}")
    right = Right(about[-1]) if about else Right.FULL
    return Token(about[0] if len(about) == 2 else "own", right, _checked(secret, subject))


def _checked(secret: str, subject: str) -> str:
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInput(
            subject,
            f"a token has {SHORTEST} or more visible ASCII characters",
            hint="make one: python3 -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return secret


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _find(given: str, known: list[tuple[bytes, Token]]) -> Token | None:
    digest, found = _digest(given), None
    for other, token in known:
        if hmac.compare_digest(digest, other):
            found = token
    return found
