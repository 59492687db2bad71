"""Output that is updated in place: `--watch` and progress bars."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from queuectl.cli.app import App
from queuectl.cli.render import to_json as json_line
from queuectl.operations.wait import retry_store

T = TypeVar("T")

POLL: Final = 0.1
# Ages grow and workers die without a write: a terminal is refreshed at least this often.
REFRESH: Final = 1.0

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"


def watch(
    app: App, look: Callable[[], T], *, to_lines: Callable[[T], Sequence[str]], to_json: Callable[[T], Any]
) -> Iterator[bytes]:
    """Frames on a terminal, blocks in a pipe, or lines of JSON, until Ctrl-C."""

    def look_again() -> T:
        return retry_store(app.clock, look)

    if app.flags.json:
        for seen in _changes(app, look_again):
            yield f"{json_line(to_json(seen))}\n".encode()
    elif app.stdout_is_terminal:
        yield from _frames(app, look_again, to_lines)
    else:
        between = ""
        for seen in _changes(app, look_again):
            yield "".join([between, *(f"{line}\n" for line in to_lines(seen))]).encode()
            between = "\n"


def _changes(app: App, look: Callable[[], T]) -> Iterator[T]:
    """The results of `look` that differ from the one before."""
    before: T | None = None
    _has_changed(app)
    looked = app.clock.monotonic()
    seen = look()
    while True:
        if before is None or _without_age(seen) != _without_age(before):
            before = seen
            yield seen
        app.clock.sleep(POLL)
        if _has_changed(app) or app.clock.monotonic() - looked >= REFRESH:
            looked = app.clock.monotonic()
            seen = look()


def _has_changed(app: App) -> bool:
    return retry_store(app.clock, lambda: app.open_reads().changed())


def _without_age(seen: Any) -> Any:
    """A value without its age, whose growth is not a change."""
    return seen._replace(oldest_waiting_ms=None)


def _frames(app: App, look: Callable[[], T], to_lines: Callable[[T], Sequence[str]]) -> Iterator[bytes]:
    height = 0
    try:
        while True:
            _has_changed(app)
            lines = to_lines(look())
            # One write per frame, and erasing only behind the new text, avoid flicker.
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


# Shorter operations show no bar, which would only flicker.
BAR_DELAY_SECONDS = 0.4

# (done, total): the total may become known, or grow, during the operation.
Advance = Callable[[int, int | None], None]


@contextmanager
def progress(app: App, title: str, *, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar on stderr, on a terminal only. Yields a function to call with the number done and the total."""
    if not app.shows_messages:
        yield lambda done, of: None
        return
    bar = _Bar(app, title, total)
    try:
        yield bar.advance
    finally:
        bar.close()


class _Bar:
    def __init__(self, app: App, title: str, total: int | None) -> None:
        self._app = app
        self._title = title
        self._total = total
        self._since = app.clock.monotonic()
        self._next = self._since + BAR_DELAY_SECONDS
        self._show: Callable[[int, int | None], None] | None = None
        self._stop: Callable[[], None] = lambda: None

    def advance(self, done: int, of: int | None) -> None:
        now = self._app.clock.monotonic()
        if now < self._next:
            return
        self._next = now + 0.1
        if self._show is None:
            self._open()
        assert self._show is not None
        self._show(done, of)

    def close(self) -> None:
        self._stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(file=self._app.stderr, no_color=not self._app.color_on(self._app.stderr))
        # Without a thread of rich: main exits by os._exit.
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            auto_refresh=False,
        )
        task = bar.add_task(self._title, total=self._total)
        bar.start()

        def show(done: int, of: int | None) -> None:
            bar.update(task, completed=done, total=of)
            bar.refresh()

        self._show, self._stop = show, bar.stop
