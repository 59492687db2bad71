"""The end of what a job printed, for its page."""

from __future__ import annotations

from typing import Final, NamedTuple

from queuectl.config import host_name
from queuectl.errors import NotFound, Unavailable
from queuectl.queue import logs
from queuectl.queue.logs import LogView
from queuectl.store.protocol import Reads
from queuectl.web.pages.ansi import Painter, Piece

TAIL: Final = 500  # lines
MOST: Final = 256 * 1024  # bytes: a line may be long


class LogLine(NamedTuple):
    pieces: list[Piece]
    is_mark: bool  # one of ours, about where a run begins or ends
    is_hit: bool


class Log(NamedTuple):
    lines: list[LogLine]
    is_cut: bool  # there is more before it
    hits: int
    problem: str | None = None


def read_log(reads: Reads, job_id: str, *, run: int | None, find: str | None) -> Log:
    data, is_cut = bytearray(), False
    try:
        for piece in logs.read(reads, job_id, LogView(run=run, tail=TAIL), host=host_name()):
            data += piece
            if len(data) > 2 * MOST:
                del data[:-MOST]
                is_cut = True
    except (NotFound, Unavailable) as error:
        return Log([], False, 0, error.message)
    if len(data) > MOST:
        del data[:-MOST]
        is_cut = True
    text = bytes(data).decode("utf-8", "replace").removesuffix("\n")
    painted = Painter().lines(text) if text else []
    lines = [_line(pieces, find) for pieces in painted]
    return Log(lines, is_cut or len(lines) >= TAIL, sum(line.is_hit for line in lines))


def _line(pieces: list[Piece], find: str | None) -> LogLine:
    text = "".join(piece.text for piece in pieces)
    is_hit = find is not None and find.lower() in text.lower()
    return LogLine(pieces, text.startswith(("--- START ", "--- END ")), is_hit)
