"""Something that is shown again whenever it changes: in its place on a terminal, one block after the other in a pipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from queuectl.cli.app import App
from queuectl.cli.render import to_json as json_line
from queuectl.queue.patience import persist

T = TypeVar("T")

POLL: Final = 0.1
# Ages grow and workers die without a write: on a terminal they are shown at least this often.
REFRESH: Final = 1.0

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"


def watch(
    app: App, look: Callable[[], T], *, to_lines: Callable[[T], Sequence[str]], to_json: Callable[[T], Any]
) -> Iterator[bytes]:
    """Frames for people, blocks for a pipe, or a line of JSON each, until Ctrl-C."""

    def patiently() -> T:
        return persist(app.clock, look)

    if app.flags.json:
        for seen in _changes(app, patiently):
            yield f"{json_line(to_json(seen))}\n".encode()
    elif app.stdout_is_terminal:
        yield from _frames(app, patiently, to_lines)
    else:
        between = ""
        for seen in _changes(app, patiently):
            yield "".join([between, *(f"{line}\n" for line in to_lines(seen))]).encode()
            between = "\n"


def _changes(app: App, look: Callable[[], T]) -> Iterator[T]:
    """What `look` sees, whenever it is not what it was."""
    before: T | None = None
    _has_changed(app)
    looked = app.clock.monotonic()
    seen = look()
    while True:
        if before is None or _but_for_age(seen) != _but_for_age(before):
            before = seen
            yield seen
        app.clock.sleep(POLL)
        if _has_changed(app) or app.clock.monotonic() - looked >= REFRESH:
            looked = app.clock.monotonic()
            seen = look()


def _has_changed(app: App) -> bool:
    return persist(app.clock, lambda: app.open_reads().changed())


def _but_for_age(seen: Any) -> Any:
    """An age that grows is not a change."""
    return seen._replace(oldest_waiting_ms=None)


def _frames(app: App, look: Callable[[], T], to_lines: Callable[[T], Sequence[str]]) -> Iterator[bytes]:
    height = 0
    try:
        while True:
            _has_changed(app)
            lines = to_lines(look())
            # One write a frame, each line erased only behind its new text: nothing blinks.
            shown = lines[: _rows(app) - 1]
            up = f"\x1b[{height}A\r" if height else ""
            body = "".join(f"{line}{_ERASE_LINE}\n" for line in shown)
            yield f"{_HIDE_CURSOR}{up}{body}{_ERASE_BELOW}".encode()
            height = len(shown)
            looked = app.clock.monotonic()
            while app.clock.monotonic() - looked < REFRESH:
                app.clock.sleep(POLL)
                if _has_changed(app):
                    break
    finally:
        app.stdout.write(_SHOW_CURSOR)
        app.stdout.flush()


def _rows(app: App) -> int:
    try:
        return os.get_terminal_size(app.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24
