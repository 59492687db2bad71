"""Taking back what was done, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.web.desk import Desk
from queuectl.web.pages import act
from queuectl.web.pages.asked import Ask, Fields, Pairs


@pytest.mark.parametrize("chosen", [[("id", "before"), ("id", "now")], [("all", "1")]], ids=["ticked", "all"])
def test_what_was_held_before_stays_so_when_a_hold_is_taken_back(home: Path, chosen: Pairs) -> None:
    with Desk(home) as desk:
        for name in ("before", "now"):
            desk.enqueue("true", id=name)
        desk.hold("before")
        done = act.do(desk, Ask({}, Fields(), Fields([("action", "hold"), *chosen]), may_change=True, url="/jobs"))
        assert desk.get("now").held
        assert done.notice is not None
        assert done.notice.undo is not None
        done.notice.undo(desk)
        assert (desk.get("before").held, desk.get("now").held) == (True, False)
