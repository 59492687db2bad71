"""The log of a job on the screen, as it grows: read by a thread, and never faster than it can be shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as StillWaiting
from typing import Final

from rich.text import Text
from textual.widgets import RichLog

from queuectl.clock import Left
from queuectl.errors import Unavailable
from queuectl.queue import logs
from queuectl.queue.logs import LogView
from queuectl.tui.lines import MOST, Lines, safe
from queuectl.tui.seat import Room, Seat

AGAIN_AFTER: Final = 1.0


class LogPane(RichLog):
    """The last lines of a log. Scrolls along with new lines unless the user has scrolled up."""

    def __init__(self, *, id: str, begun: Callable[[Text], None]) -> None:
        """`begun` is given the line that has not ended yet, whenever it changes."""
        super().__init__(
            id=id, max_lines=MOST, wrap=True, markup=False, highlight=False, min_width=20, auto_scroll=False
        )
        self._begun = begun

    async def follow(self, room: Room, job_id: str) -> None:
        """Until the job has ended for good, or the room is closed. A store that goes away for a moment is waited for."""
        loop = asyncio.get_running_loop()
        while True:
            self.clear()
            self._begun(Text("it has printed nothing yet", style="dim"))
            lines = Lines()

            def show(data: bytes, lines: Lines = lines) -> None:
                self._show(lines, data)

            def work(seat: Seat, show: Callable[[bytes], None] = show) -> None:
                reads = seat.find()
                view = LogView(tail=MOST)
                for piece in logs.follow(reads, seat.clock, [job_id], view, host=seat.host) if reads else ():
                    _hand_over(seat, loop, show, piece.data)

            try:
                await room.ask(work)
            except Left:
                return
            except Unavailable:  # the line below says so already
                await asyncio.sleep(AGAIN_AFTER)
                continue
            self._add(lines.feed(b"", final=True))
            self._begun(Text() if self.lines else Text("it has printed nothing", style="dim"))
            return

    def _show(self, lines: Lines, data: bytes) -> None:
        self._add(lines.feed(data))
        self._begun(safe(lines.begun))

    def _add(self, lines: Sequence[str]) -> None:
        # The target, not the position: a key press that scrolls up is animated and has not moved the view yet.
        follows = self.scroll_target_y >= self.max_scroll_y
        if follows:
            self.anchor()
        top = None if follows else self.lines[int(self.scroll_target_y)]
        for line in lines:
            self.write(safe(line))
        if top is None or top is self.lines[int(self.scroll_target_y)]:
            return
        # Lines above the view were dropped to stay within `max_lines`: keep showing the same ones.
        kept = next((number for number, line in enumerate(self.lines) if line is top), 0)
        self.scroll_to(y=kept, animate=False)


def _hand_over(seat: Seat, loop: asyncio.AbstractEventLoop, show: Callable[[bytes], None], data: bytes) -> None:
    """Returns when it is on the screen: a job that prints without end must not fill the memory with what is yet to be shown."""

    async def on_screen() -> None:
        show(data)

    task = asyncio.run_coroutine_threadsafe(on_screen(), loop)
    while True:
        try:
            task.result(0.1)
        except StillWaiting:
            if seat.clock.left.is_set():
                task.cancel()
                raise Left from None
            continue
        seat.clock.sleep(0)  # ends here if nobody looks any more
        return
