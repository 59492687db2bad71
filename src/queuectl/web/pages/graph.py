"""Draw the dependency graph of a job as SVG: parents on the left, children on the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from typing import Final, NamedTuple

from queuectl.jobs.model import Job
from queuectl.operations.graph import Graph
from queuectl.web.pages.render import command

MAX_BOXES: Final = 60  # more would be unreadable
BOX_WIDTH, BOX_HEIGHT = 190, 44
COLUMN_WIDTH, ROW_HEIGHT = 250, 60
LABEL_LENGTH: Final = 21


class Box(NamedTuple):
    id: str
    x: int
    y: int
    state: str
    label: str
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
    kept = _closest(graph)
    columns = _columns(graph, kept)
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
    before = _count(graph.root, ((link.child, link.parent) for link in graph.links))
    after = _count(graph.root, ((link.parent, link.child) for link in graph.links))
    summary = f"{before:,} before it and {after:,} after it"
    size = (max(rows) * COLUMN_WIDTH + BOX_WIDTH + 16, (tallest - 1) * ROW_HEIGHT + BOX_HEIGHT + 16)
    return GraphDrawing(boxes, arrows, *size, len(graph.nodes) - len(boxes), summary)


def _closest(graph: Graph) -> set[str]:
    """The jobs to draw, level by level from the job itself."""
    kept, level = {graph.root}, {graph.root}
    while level and len(kept) < MAX_BOXES:
        reached = set()
        for link in graph.links:
            for one, other in ((link.parent, link.child), (link.child, link.parent)):
                if one in level and other not in kept and len(kept) < MAX_BOXES:
                    kept.add(other)
                    reached.add(other)
        level = reached
    return kept


def _columns(graph: Graph, kept: set[str]) -> Mapping[str, int]:
    """The column of each job, to the right of all its parents."""
    parents: dict[str, list[str]] = {job_id: [] for job_id in kept}
    for link in graph.links:
        if link.parent in kept and link.child in kept:
            parents[link.child].append(link.parent)
    columns: dict[str, int] = {}
    for job_id in TopologicalSorter(parents).static_order():
        columns[job_id] = max((columns[parent] + 1 for parent in parents[job_id]), default=0)
    return columns


def _count(root: str, links: Iterable[tuple[str, str]]) -> int:
    """The number of jobs that are reachable from the root."""
    leads: dict[str, list[str]] = {}
    for one, other in links:
        leads.setdefault(one, []).append(other)
    found, level = {root}, {root}
    while level:
        level = {other for one in level for other in leads.get(one, ())} - found
        found |= level
    return len(found) - 1


def _box(job: Job, at: tuple[int, int], *, is_root: bool) -> Box:
    text = command(job)
    label = text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 1] + "…"
    return Box(job.id, *at, job.state.value, label, f"{job.id}: {text}", is_root)


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    to_x, to_y = end[0], end[1] + BOX_HEIGHT // 2
    bend = (to_x - x) // 2
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
