"""A progress bar on stderr, for people who wait: only on a terminal, and rich is loaded only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queuectl.cli.app import App

# Below this nobody waits long enough to want a bar, and its drawing would only flicker.
PATIENCE_SECONDS = 0.4

# done, total: the total may become known, or grow, on the way.
Advance = Callable[[int, int | None], None]


@contextmanager
def progress(app: App, title: str, *, total: int | None = None) -> Iterator[Advance]:
    """Gives a function to call with how much is done, and of how much; cheap when there is nobody to show it to."""
    if not app.is_talking:
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
        self._next = self._since + PATIENCE_SECONDS
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

        console = Console(file=self._app.stderr, no_color=not self._app.colour_on(self._app.stderr))
        # No thread of rich's own: main leaves by os._exit.
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
