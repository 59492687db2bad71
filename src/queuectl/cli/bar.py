"""A batch as one line: a bar, and what has become of its jobs."""

from __future__ import annotations

from typing import Final

from queuectl.cli.app import App
from queuectl.cli.style import took
from queuectl.queue.batches import Progress

WIDTH: Final = 24
SHORTEST: Final = 8
EVERY: Final = 0.2  # seconds between two drawings


def bar_line(app: App, progress: Progress, *, width: int | None = None) -> str:
    """`width`: as many columns as there are at most. The bar gets shorter first, then what tells least is left out."""
    total = max(1, progress.batch.added)
    ended = progress.done + progress.failed
    words = [
        f"{ended:,} of {progress.batch.added:,}",
        f"{progress.done:,} done",
        f"{progress.failed:,} failed",
        f"{progress.running:,} running",
    ]
    if progress.rate is not None:
        words.append(f"{progress.rate:.3g}/s")
        if progress.batch.open and progress.left_ms is not None:
            words.append(f"{took(progress.left_ms)} left")
    told = f" {100 * ended // total:3} %  {', '.join(words)}"
    while width is not None and len(words) > 1 and len(told) + SHORTEST > width:
        del words[-2 if len(words) > 4 else -1]  # the rate before the time that is left
        told = f" {100 * ended // total:3} %  {', '.join(words)}"
    length = WIDTH if width is None else max(SHORTEST, min(WIDTH, width - len(told)))
    good, bad = (min(length, length * count // total) for count in (progress.done, progress.failed))
    bar = app.paint("█" * good, "green") + app.paint("█" * bad, "red") + "░" * max(0, length - good - bad)
    return f"{bar}{told}"


class Bar:
    """The line, drawn again and again in its place: only on a terminal."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._next = 0.0
        self._is_drawn = False

    def show(self, progress: Progress) -> None:
        now = self._app.clock.monotonic()
        if not self._app.is_talking or (now < self._next and progress.batch.open):
            return
        self._next = now + EVERY
        # One column less than there are: where the last one is written to, some terminals go on to the next line.
        line = bar_line(self._app, progress, width=self._app.width_of(self._app.stderr) - 1)
        self._app.stderr.write(f"\r\x1b[K{line}")
        self._app.stderr.flush()
        self._is_drawn = True

    def close(self) -> None:
        if self._is_drawn:
            self._app.stderr.write("\n")
            self._app.stderr.flush()
