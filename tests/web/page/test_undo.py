"""An action does what its preview shows; its undo reverts nothing else."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from queuectl.store_threads import WebSession
from queuectl.web.pages import actions, cron, queues
from queuectl.web.pages.render import Fields, PageRequest, Pairs
from tests.factories import NO_POLICY


@pytest.mark.parametrize("chosen", [[("id", "before"), ("id", "now")], [("all", "1")]], ids=["ticked", "all"])
def test_undoing_a_hold_keeps_jobs_that_were_held_before(home: Path, chosen: Pairs) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        for name in ("before", "now"):
            session.enqueue("true", id=name)
        session.hold("before")
        done = actions.do(
            session, PageRequest({}, Fields(), Fields([("action", "hold"), *chosen]), may_change=True, url="/jobs")
        )
        assert session.get("now").held
        assert done.notice is not None
        assert done.notice.undo is not None
        done.notice.undo(session)
        assert (session.get("before").held, session.get("now").held) == (True, False)


@pytest.mark.parametrize("ticked", [True, False], ids=["ticked", "all"])
@pytest.mark.parametrize(
    "action, meant", [("hold", ["free"]), ("release", ["held"]), ("cancel", ["free", "held"]), ("prune", ["ended"])]
)
def test_a_preview_counts_and_lists_the_affected_jobs(home: Path, action: str, meant: list[str], ticked: bool) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        for name in ("ended", "held", "free"):
            session.enqueue("true", id=name)
        session.hold("held")
        session.cancel("ended")
        chosen = [("id", "free"), ("id", "held"), ("id", "ended")] if ticked else [("all", "1")]
        query = Fields([("action", action), *chosen])
        said = actions.preview(session, PageRequest({}, query, Fields(), may_change=True, url="/act")).values
        assert [job.id for job in said["first"]] == meant
        assert (said["count"], said["others"]) == (len(meant), 3 - len(meant))


@pytest.mark.parametrize("page", [queues, cron], ids=["queue", "schedule"])
def test_a_second_pause_has_no_undo(home: Path, page: ModuleType) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        session.schedules.add("x", "0 2 * * *", tz="UTC", command="true")
        ask = PageRequest({"name": "x"}, Fields(), Fields([("confirmed", "1")]), may_change=True, url="/")
        first, second = (page.set_paused(session, ask, paused=True) for _ in range(2))
        assert second.text.endswith("x is already paused")
        assert second.undo is None
        assert first.undo(session).text.endswith("x resumed")
