"""The tables of queues, workers, schedules and batches, and their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.binding import Binding

from queuectl.cron import operations as cron
from queuectl.cron.operations import ScheduleDetails
from queuectl.operations.wait import Progress
from queuectl.store.types import StopMode
from queuectl.text import escape_control, plural
from queuectl.tui import tables
from queuectl.tui.session import Session, read_batches, read_schedules
from queuectl.tui.widgets import HELP_BINDING, Rows
from queuectl.units import humanize_time

if TYPE_CHECKING:
    from queuectl.tui.app import Top


class QueueTable(Rows):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        HELP_BINDING,
        Binding("enter", "select_cursor", "jobs"),
        Binding("p", "app.pause_queue", "pause or resume"),
    ]

    app: Top

    def __init__(self, *, id: str, is_panel: bool) -> None:
        super().__init__(id=id)
        self._is_panel = is_panel
        self.border_title = "Queues"

    async def load(self) -> None:
        """The snapshot has the queues."""
        self.draw()

    def draw(self) -> None:
        if (snapshot := self.app.snapshot) is not None:
            columns = tables.queue_columns(self.space, is_panel=self._is_panel)
            self.present(columns, [tables.queue_row(one, columns) for one in snapshot.queues])

    def on_data_table_row_selected(self, event: Rows.RowSelected) -> None:
        self.app.list_jobs("queue", event.row_key.value)


class WorkerTable(Rows):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        HELP_BINDING,
        Binding("enter", "select_cursor", "jobs"),
        Binding("x", "stop('finish')", "stop"),
        Binding("X", "stop('now')", "stop now"),
        Binding("R", "stop('restart')", "restart"),
    ]

    app: Top

    def __init__(self, *, id: str, is_panel: bool) -> None:
        super().__init__(id=id)
        self._is_panel = is_panel
        self.border_title = "Workers"

    async def load(self) -> None:
        """The snapshot has the workers."""
        self.draw()

    def draw(self) -> None:
        if (snapshot := self.app.snapshot) is not None:
            columns = tables.worker_columns(self.space, is_panel=self._is_panel)
            self.present(columns, [tables.worker_row(one, snapshot.now_ms, columns) for one in snapshot.workers])
            self.show_hint("none: queuectl worker start")

    def on_data_table_row_selected(self, event: Rows.RowSelected) -> None:
        self.app.list_jobs("worker", event.row_key.value)

    def action_stop(self, mode: str) -> None:
        snapshot, name = self.app.snapshot, self.selected
        worker = next((one for one in (snapshot.workers if snapshot else ()) if one.id == name), None)
        if worker is None:
            self.app.say("select a worker first", style="bold yellow")
            return
        asked = StopMode(mode)
        verb = "Restart" if asked is StopMode.RESTART else "Stop"
        about = {
            StopMode.FINISH: f"It claims no more jobs and stops after its {plural(worker.busy, 'running job')}.",
            StopMode.NOW: f"{plural(worker.busy, 'running job')} will be terminated and requeued.",
            StopMode.RESTART: "Its running jobs continue.",
        }[asked]

        def stop(session: Session) -> str:
            session.open_store().claims.request_stop(worker.id, asked)
            return f"asked {worker.id} to {verb.lower()}"

        self.app.confirm(f"{verb} worker {worker.id}?", about, stop)


class ScheduleTable(Rows):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        HELP_BINDING,
        Binding("R", "run", "run now"),
        Binding("p", "pause", "pause or resume"),
        Binding("d,delete", "remove", "remove", key_display="d"),
    ]

    app: Top

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = "Schedules"
        self.schedules: list[ScheduleDetails] = []
        self.now_ms = 0

    async def load(self) -> None:
        self.schedules = await self.app.threads.reads.ask(read_schedules)
        self.draw()

    def draw(self) -> None:
        columns = tables.schedule_columns(self.space)
        now_ms = self.app.snapshot.now_ms if self.app.snapshot else 0
        self.present(columns, [tables.schedule_row(one, now_ms, columns) for one in self.schedules])
        if self.app.snapshot is not None:
            self.show_hint("none: queuectl cron add NAME SCHEDULE COMMAND")

    def on_data_table_row_highlighted(self, _: Rows.RowHighlighted) -> None:
        self.app.on_cursor_moved()

    @property
    def schedule(self) -> ScheduleDetails | None:
        name = self.selected
        return next((one for one in self.schedules if one.schedule.name == name), None)

    def _chosen(self) -> ScheduleDetails | None:
        if (found := self.schedule) is None:
            self.app.say("select a schedule first", style="bold yellow")
        return found

    def action_run(self) -> None:
        if (found := self._chosen()) is None:
            return
        name = found.schedule.name
        about = tables.schedule_command(found.schedule)[:200]
        self.app.confirm(
            f"Run the schedule {name} now?", about, lambda session: f"enqueued {session.schedules.run(name).id}"
        )

    def action_pause(self) -> None:
        if (found := self._chosen()) is None:
            return
        name, is_paused = found.schedule.name, found.schedule.is_paused

        def change(session: Session) -> str:
            (session.schedules.resume if is_paused else session.schedules.pause)(name)
            return f"{'resumed' if is_paused else 'paused'} the schedule {name}"

        about = "" if is_paused else "No runs until it is resumed. Missed runs are not caught up."
        self.app.confirm(f"{'Resume' if is_paused else 'Pause'} the schedule {name}?", about, change)

    def action_remove(self) -> None:
        if (found := self._chosen()) is None:
            return
        name = found.schedule.name

        def remove(session: Session) -> str:
            session.schedules.remove(name)
            return f"removed the schedule {name}"

        self.app.confirm(f"Remove the schedule {name}?", "Its jobs are not removed.", remove)


MAX_TICKS_SHOWN: Final = 20


def schedule_preview(session: Session, name: str) -> Text:
    """The details and the last runs of a schedule."""
    reads = session.reads
    shown, now_ms = cron.show(reads, name), reads.now_ms()
    schedule = shown.schedule
    upcoming = [tables.until(at, now_ms) for at in cron.upcoming(reads, name, 3)]
    lines = [
        Text(tables.schedule_command(schedule)),
        Text(escape_control(f"{schedule.expression}  {schedule.tz}  overlap {schedule.overlap.value}"), style="dim"),
        Text(f"next runs: {', '.join(upcoming) or 'none'}" + ("  (paused)" if schedule.is_paused else ""), style="dim"),
    ]
    for run in shown.ticks[:MAX_TICKS_SHOWN]:
        state = Text(run.state.value, style=tables.STYLE[run.state]) if run.state else Text("")
        what = "  ".join(filter(None, (run.job or "", run.error or "", run.reason or "")))
        lines.append(
            Text.assemble(f"{humanize_time(min(now_ms, run.at_ms), now_ms):<10}", state, "  ", escape_control(what))
        )
    return Text("\n").join(lines)


class BatchTable(Rows):
    BINDINGS = [HELP_BINDING, Binding("enter", "select_cursor", "jobs")]  # noqa: RUF012 - as textual declares it

    app: Top

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = "Batches"
        self.batches: list[Progress] = []

    async def load(self) -> None:
        self.batches = await self.app.threads.reads.ask(read_batches)
        self.draw()

    def draw(self) -> None:
        columns = tables.batch_columns(self.space)
        self.present(columns, [tables.batch_row(one, columns) for one in self.batches])
        if self.app.snapshot is not None:
            self.show_hint("none: queuectl enqueue --batch NAME")

    def on_data_table_row_selected(self, event: Rows.RowSelected) -> None:
        self.app.list_jobs("batch", event.row_key.value)
