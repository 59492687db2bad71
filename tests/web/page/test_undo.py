"""An action does what its preview shows; its undo reverts nothing else."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from queuectl.errors import StaleEdit
from queuectl.store_threads import WebSession
from queuectl.units import to_ms
from queuectl.web.pages import actions, cron, job_form, queues
from queuectl.web.pages.render import Fields, Notice, PageRequest, Pairs, Redirect
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


def edited(session: WebSession, job_id: str, **fields: str) -> Notice:
    job = session.get(job_id)
    values = {**job_form.values_of(job), "as_of": str(to_ms(job.updated_at)), **fields}
    form = Fields(list(values.items()))
    to = job_form.edit(session, PageRequest({"id": job_id}, Fields(), form, may_change=True, url="/"))
    assert isinstance(to, Redirect)
    assert to.notice is not None
    return to.notice


def test_an_undo_of_an_edit_reverts_no_later_change(home: Path) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        session.enqueue("true", id="x", priority=1)
        undo = edited(session, "x", priority="2").undo
        session.edit("x", priority=3)
        assert undo is not None
        with pytest.raises(StaleEdit):
            undo(session)
        assert session.get("x").priority == 3


def test_a_time_in_the_past_that_cannot_be_restored_has_no_undo(home: Path) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        session.enqueue("true", id="x")
        assert edited(session, "x", start="2h").undo is None
        later = edited(session, "x", start="3h")
        before = session.get("x").run_at
        assert later.undo is not None
        later.undo(session)
        assert session.get("x").run_at < before
