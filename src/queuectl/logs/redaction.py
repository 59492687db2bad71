"""Redact a run's secrets from its output before the output is written to the log.

Each secret becomes `***`, and that is final: the log, the database and their readers never hold the secret. Each line of a
secret counts by itself; lines shorter than four bytes stay, since they would match everywhere. Output arrives in pieces, and
a secret may arrive in several of them: bytes that may begin a secret are held back until that is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

STARS: Final = b"***"
SHORTEST_SECRET: Final = 4


class Redactor:
    def __init__(self, secrets: Iterable[bytes]) -> None:
        lines = (line for value in secrets for line in value.splitlines())
        self._secrets = list(dict.fromkeys(line for line in lines if len(line) >= SHORTEST_SECRET))
        self._held = b""
        self._redacted = 0  # the first bytes of `_held` that belong to a secret whose stars are out already

    def feed(self, data: bytes, *, is_last: bool = False) -> bytes:
        """Return the output that can be written now. `is_last`: hold nothing back, no more comes for a while."""
        text = self._held + data
        cut = len(text) if is_last else self._may_begin(text)
        out, end = bytearray(), self._redacted
        for start, stop in sorted(self._find(text)):
            if start >= cut:
                break
            if start >= end:
                out += text[end:start] + STARS
            end = max(end, stop)  # secrets that overlap become one
        out += text[end:cut]
        self._held, self._redacted = text[cut:], max(0, end - cut)
        return bytes(out)

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def _find(self, text: bytes) -> Iterator[tuple[int, int]]:
        for secret in self._secrets:
            place = text.find(secret)
            while place >= 0:
                yield place, place + len(secret)
                place = text.find(secret, place + 1)

    def _may_begin(self, text: bytes) -> int:
        """Return the first place from which all the rest of the text is the beginning of a secret."""
        first = len(text)
        for secret in self._secrets:
            place = text.find(secret[:1], max(0, len(text) - len(secret) + 1), first)
            while place >= 0:
                if secret.startswith(text[place:]):
                    first = place
                    break
                place = text.find(secret[:1], place + 1, first)
        return first
