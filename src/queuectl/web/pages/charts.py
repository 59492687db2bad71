"""The drawing of the dependency graph of a job, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Final, NamedTuple

from queuectl.jobs.model import Job
from queuectl.operations.inspect import Graph
from queuectl.web.pages.render import command


def rounded(value: float) -> float:
    """For coordinates."""
    return round(value, 2)


MAX_BOXES: Final = 60  # more would be unreadable
BOX_WIDTH, BOX_HEIGHT = 190, 44
COLUMN_WIDTH, ROW_HEIGHT = 250, 60
MAX_TEXT: Final = 60  # more does not fit into a box; the browser truncates the rest


class Box(NamedTuple):
    id: str
    x: int
    y: int
    state: str
    label: str  # the ID
    note: str  # the state and the command
    title: str
    is_root: bool


class Arrow(NamedTuple):
    path: str
    state: str
    title: str


class GraphDrawing(NamedTuple):
    boxes: list[Box]
    arrows: list[Arrow]
    width: int
    height: int
    left_out: int
    summary: str


def draw_graph(graph: Graph) -> GraphDrawing | None:
    """None for a job without dependencies."""
    if not graph.links:
        return None
    parents: dict[str, list[str]] = {job_id: [] for job_id in graph.nodes}
    children: dict[str, list[str]] = {job_id: [] for job_id in graph.nodes}
    for link in graph.links:
        parents[link.child].append(link.parent)
        children[link.parent].append(link.child)
    kept = _reach(graph.root, parents, children)[:MAX_BOXES]
    columns = _columns({job_id: [one for one in parents[job_id] if one in kept] for job_id in kept})
    places: dict[str, tuple[int, int]] = {}
    rows: dict[int, int] = {}
    for job_id in graph.nodes:
        if job_id in kept:
            column = columns[job_id]
            places[job_id] = (column, rows.get(column, 0))
            rows[column] = rows.get(column, 0) + 1
    tallest = max(rows.values())
    at = {
        job_id: (8 + column * COLUMN_WIDTH, 8 + round((row + (tallest - rows[column]) / 2) * ROW_HEIGHT))
        for job_id, (column, row) in places.items()
    }
    boxes = [_box(graph.nodes[job_id], at[job_id], is_root=job_id == graph.root) for job_id in at]
    arrows = [
        Arrow(
            _curve(at[link.parent], at[link.child]),
            link.state.value,
            f"{link.parent} → {link.child}: {link.when.value}",
        )
        for link in graph.links
        if link.parent in at and link.child in at
    ]
    before, after = (len(_reach(graph.root, links)) - 1 for links in (parents, children))
    summary = f"{before:,} upstream, {after:,} downstream"
    size = (max(rows) * COLUMN_WIDTH + BOX_WIDTH + 16, (tallest - 1) * ROW_HEIGHT + BOX_HEIGHT + 16)
    return GraphDrawing(boxes, arrows, *size, len(graph.nodes) - len(boxes), summary)


def _reach(root: str, *links: Mapping[str, Sequence[str]]) -> list[str]:
    """The root and the jobs that are reachable from it by these links, the closest first."""
    found = [root]
    known = {root}
    for job_id in found:  # grows
        for other in (other for neighbours in links for other in neighbours[job_id]):
            if other not in known:
                known.add(other)
                found.append(other)
    return found


def _columns(parents: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """The column of each job, to the right of all its parents."""
    columns: dict[str, int] = {}
    for job_id in TopologicalSorter(parents).static_order():
        columns[job_id] = max((columns[parent] + 1 for parent in parents[job_id]), default=0)
    return columns


def _box(job: Job, at: tuple[int, int], *, is_root: bool) -> Box:
    text = command(job)
    note = f"{job.state.value} · {text}"[:MAX_TEXT]
    return Box(job.id, *at, job.state.value, job.id[:MAX_TEXT], note, f"{job.id}: {text}", is_root)


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    to_x, to_y = end[0], end[1] + BOX_HEIGHT // 2
    bend = (to_x - x) // 2
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
