from __future__ import annotations

from pathlib import Path

from queuectl import Queue
from queuectl.job.model import from_ms
from queuectl.queue.graph import graph
from queuectl.web.desk import Desk
from queuectl.web.pages import family as drawing
from queuectl.web.pages.family import family
from queuectl.web.pages.timeline import timeline
from tests.factories import NO_POLICY


def test_a_job_that_is_alone_has_no_drawing(home: Path) -> None:
    with Desk(home, gate=NO_POLICY) as desk:
        desk.enqueue("true", id="alone")
        assert family(graph(desk.reads, "alone")) is None


def test_each_job_is_drawn_to_the_right_of_all_that_it_waits_for(home: Path) -> None:
    with Desk(home, gate=NO_POLICY) as desk:
        jobs = [("d", ["b"]), ("c", ["a", "b"]), ("b", ["a"]), ("a", [])]
        desk.enqueue_many([{"id": name, "command": "true", "depends_on": parents} for name, parents in jobs])
        drawn = family(graph(desk.reads, "b"))
    assert drawn is not None
    places = {box.id: box.x for box in drawn.boxes}
    assert places["a"] < places["b"] < places["c"] == places["d"]
    assert drawn.words == "1 before it and 2 after it"
    assert len(drawn.arrows) == 3


def test_of_a_large_family_the_nearest_are_drawn(home: Path) -> None:
    with Desk(home, gate=NO_POLICY) as desk:
        desk.enqueue("true", id="root")
        desk.enqueue_many([{"command": f"echo {number}", "depends_on": ["root"]} for number in range(100)])
        drawn = family(graph(desk.reads, "root"))
    assert drawn is not None
    assert len(drawn.boxes) == drawing.MOST
    assert drawn.left_out == 101 - drawing.MOST
    assert drawn.words == "0 before it and 100 after it"


def test_a_timeline_has_no_run_before_the_first(home: Path) -> None:
    with Queue(home) as queue:
        job = queue.enqueue("true")
    drawn = timeline(job, [], round(job.created_at.timestamp() * 1000) + 5000)
    assert drawn.stretches == []
    assert drawn.words == "5s since it was enqueued: it has not run yet"
    assert from_ms(drawn.begin_ms) == job.created_at
