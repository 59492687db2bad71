"""What can be wrong with schedules as things are."""

from __future__ import annotations

from queuectl.errors import Conflict, NotFound


class ScheduleNotFound(NotFound):
    code = "schedule-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule {name!r}", hint="queuectl cron list shows the schedules there are")
        self.name = name


class ScheduleExists(Conflict):
    code = "schedule-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already", hint="choose another name, or add --replace")
        self.name = name
