"""Logs of several jobs in one stream: each line says whose it is."""

from __future__ import annotations

from typing import Final

# A line longer than this is printed in parts, so that no line, however long, is held in memory.
LONGEST_HELD: Final = 64 * 1024


class PrefixedLines:
    """Takes pieces of logs as they come and gives whole lines, each with `id | ` before it."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}  # the beginnings of lines that have not ended
        self._open: str | None = None  # whose line stands printed without its end

    def feed(self, job_id: str, data: bytes) -> bytes:
        text = self._held.pop(job_id, b"") + data
        whole, newline, rest = text.rpartition(b"\n")
        out = self._print(job_id, whole + newline) if newline else b""
        if len(rest) > LONGEST_HELD:
            out += self._print(job_id, rest)
        elif rest:
            self._held[job_id] = rest
        return out

    def flush(self) -> bytes:
        """What is left, with the ends of lines that it lacks."""
        out = b"".join(self._print(job_id, rest + b"\n") for job_id, rest in self._held.items())
        self._held.clear()
        return out + self._end_open_line()

    def _print(self, job_id: str, text: bytes) -> bytes:
        prefix = f"{job_id} | ".encode()
        out = b"" if self._open == job_id else self._end_open_line() + prefix
        is_whole = text.endswith(b"\n")
        self._open = None if is_whole else job_id
        body = text.replace(b"\n", b"\n" + prefix)
        return out + (body.removesuffix(prefix) if is_whole else body)

    def _end_open_line(self) -> bytes:
        was_open, self._open = self._open, None
        return b"" if was_open is None else b"\n"
