"""Taking back what was done last."""

from __future__ import annotations

from queuectl.errors import QueuectlError
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, back_to
from queuectl.web.pages.notices import Notice, refused


def undo(desk: Desk, ask: Ask, notice: Notice | None) -> Done:
    to = back_to(ask.form, "/")
    if notice is None or notice.undo is None:
        return Done(to, refused("That cannot be taken back any more", "it was done already, or long ago"))
    try:
        return Done(to, notice.undo(desk))
    except QueuectlError as error:
        return Done(to, refused(error.message, error.hint))
