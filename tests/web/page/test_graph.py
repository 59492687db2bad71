from __future__ import annotations

from pathlib import Path

from queuectl import Queue
from queuectl.operations.inspect import graph
from queuectl.store_threads import WebSession
from queuectl.units import from_ms
from queuectl.web.pages.charts import MAX_BOXES, draw_graph
from queuectl.web.pages.job import timeline
from tests.factories import NO_POLICY


def test_a_job_without_dependencies_has_no_graph(home: Path) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        session.enqueue("true", id="alone")
        assert draw_graph(graph(session.reads, "alone")) is None


def test_each_job_is_drawn_to_the_right_of_its_parents(home: Path) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        jobs = [("d", ["b"]), ("c", ["a", "b"]), ("b", ["a"]), ("a", [])]
        session.enqueue_many([{"id": name, "command": "true", "depends_on": parents} for name, parents in jobs])
        drawn = draw_graph(graph(session.reads, "b"))
    assert drawn is not None
    places = {box.id: box.x for box in drawn.boxes}
    assert places["a"] < places["b"] < places["c"] == places["d"]
    assert drawn.summary == "1 upstream, 2 downstream"
    assert len(drawn.arrows) == 3


def test_of_a_large_graph_the_closest_jobs_are_drawn(home: Path) -> None:
    with WebSession(home, gate=NO_POLICY) as session:
        session.enqueue("true", id="root")
        session.enqueue_many([{"command": f"echo {number}", "depends_on": ["root"]} for number in range(100)])
        drawn = draw_graph(graph(session.reads, "root"))
    assert drawn is not None
    assert len(drawn.boxes) == MAX_BOXES
    assert drawn.left_out == 101 - MAX_BOXES
    assert drawn.summary == "0 upstream, 100 downstream"


def test_a_timeline_has_no_run_before_the_first(home: Path) -> None:
    with Queue(home) as queue:
        job = queue.enqueue("true")
    drawn = timeline(job, [], round(job.created_at.timestamp() * 1000) + 5000)
    assert drawn.bars == []
    assert drawn.summary == "5s since it was enqueued: no runs yet"
    assert from_ms(drawn.begin_ms) == job.created_at
