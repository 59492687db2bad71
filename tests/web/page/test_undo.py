"""What a preview says is what is done; taking that back takes back nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.web.desk import Desk
from queuectl.web.pages import act
from queuectl.web.pages.asked import Ask, Fields, Pairs
from tests.factories import NO_POLICY


@pytest.mark.parametrize("chosen", [[("id", "before"), ("id", "now")], [("all", "1")]], ids=["ticked", "all"])
def test_what_was_held_before_stays_so_when_a_hold_is_taken_back(home: Path, chosen: Pairs) -> None:
    with Desk(home, gate=NO_POLICY) as desk:
        for name in ("before", "now"):
            desk.enqueue("true", id=name)
        desk.hold("before")
        done = act.do(desk, Ask({}, Fields(), Fields([("action", "hold"), *chosen]), may_change=True, url="/jobs"))
        assert desk.get("now").held
        assert done.notice is not None
        assert done.notice.undo is not None
        done.notice.undo(desk)
        assert (desk.get("before").held, desk.get("now").held) == (True, False)


@pytest.mark.parametrize("ticked", [True, False], ids=["ticked", "all"])
@pytest.mark.parametrize(
    "action, meant", [("hold", ["free"]), ("release", ["held"]), ("cancel", ["free", "held"]), ("purge", [])]
)
def test_a_preview_counts_and_names_those_that_it_would_be_done_to(
    home: Path, action: str, meant: list[str], ticked: bool
) -> None:
    with Desk(home, gate=NO_POLICY) as desk:
        for name in ("ended", "held", "free"):
            desk.enqueue("true", id=name)
        desk.hold("held")
        desk.cancel("ended")
        chosen = [("id", "free"), ("id", "held"), ("id", "ended")] if ticked else [("all", "1")]
        query = Fields([("action", action), *chosen])
        said = act.preview(desk, Ask({}, query, Fields(), may_change=True, url="/act")).values
        assert [job.id for job in said["first"]] == meant
        assert (said["count"], said["others"]) == (len(meant), 3 - len(meant))
