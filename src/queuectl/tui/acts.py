"""What a person does to jobs and queues from the view, key by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from queuectl.job.lifecycle import WAITING, is_final
from queuectl.job.model import Job
from queuectl.tui import cells
from queuectl.tui.dialogs import Ask, Confirm
from queuectl.tui.seat import Seat

if TYPE_CHECKING:
    from textual.app import App

    Base = App[None]
else:
    Base = object


class Acts(Base):
    """The actions behind the keys. Each says what it did, in the line below the jobs."""

    if TYPE_CHECKING:

        @property
        def job(self) -> Job | None: ...
        @property
        def queue(self) -> str | None: ...
        def is_paused(self, queue: str) -> bool: ...
        def say(self, words: str, *, style: str = "") -> None: ...
        def act(self, question: Callable[[Seat], str], *, takes_long: bool = False) -> None: ...

    def action_cancel(self) -> None:
        if (job := self._chosen()) is None:
            return
        if is_final(job.state):
            self.say(f"{job.id} is {job.state.value}: there is nothing to cancel", style="bold yellow")
            return

        def cancel(seat: Seat) -> str:
            seat.cancel(job.id)
            return f"cancelled {job.id}"

        def answered(yes: bool | None) -> None:
            if yes:
                self.say(f"cancelling {job.id} …")
                self.act(cancel, takes_long=True)

        self.push_screen(Confirm(f"Cancel {job.id}, which is {job.state.value}?", cells.command(job)[:200]), answered)

    def action_retry(self) -> None:
        if (job := self._chosen()) is not None:
            self.act(lambda seat: f"{seat.retry(job.id).id} runs again")

    def action_hold(self) -> None:
        if (job := self._chosen()) is None:
            return
        if job.held and job.state in WAITING:
            self.act(lambda seat: f"released {seat.release(job.id).id}")
        else:
            self.act(lambda seat: f"holding {seat.hold(job.id).id}")

    def action_priority(self, step: int) -> None:
        if (job := self._chosen()) is None:
            return

        def change(seat: Seat) -> str:
            # From what it is now: the screen may be behind somebody who types fast.
            edited = seat.edit(job.id, priority=seat.get(job.id).priority + step)
            return f"{edited.id} has priority {edited.priority}"

        self.act(change)

    def action_pause(self) -> None:
        queue = self.queue
        if queue is None:
            self.say("choose a job or a queue first", style="bold yellow")
            return
        paused = not self.is_paused(queue)

        def change(seat: Seat) -> str:
            seat.set_queue(queue, paused=paused)
            return f"{'paused' if paused else 'resumed'} the queue {queue}"

        self.act(change)

    def action_enqueue(self) -> None:
        def take(command: str | None) -> None:
            if command and command.strip():
                self.act(lambda seat: f"enqueued {seat.enqueue(command).id}")

        self.push_screen(Ask("enqueue this command, for the shell"), take)

    def _chosen(self) -> Job | None:
        if (job := self.job) is None:
            self.say("choose a job first", style="bold yellow")
        return job
