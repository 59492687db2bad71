"""The jobs around a job as a drawing: what has to come first on the left, what comes after on the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from queuectl.job.model import Job
from queuectl.queue.graph import Graph
from queuectl.web.pages.wording import command

MOST: Final = 60  # boxes; more of them nobody can read
WIDE, TALL = 190, 44
ACROSS, DOWN = 250, 60
LETTERS: Final = 21


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


class Family(NamedTuple):
    boxes: list[Box]
    arrows: list[Arrow]
    width: int
    height: int
    left_out: int
    words: str


def family(graph: Graph) -> Family | None:
    """None for a job that is alone."""
    if not graph.links:
        return None
    kept = _nearest(graph)
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
        job_id: (8 + column * ACROSS, 8 + round((row + (tallest - rows[column]) / 2) * DOWN))
        for job_id, (column, row) in places.items()
    }
    boxes = [_box(graph.nodes[job_id], at[job_id], is_root=job_id == graph.root) for job_id in at]
    arrows = [
        Arrow(
            _way(at[link.parent], at[link.child]), link.state.value, f"{link.parent} → {link.child}: {link.when.value}"
        )
        for link in graph.links
        if link.parent in at and link.child in at
    ]
    before = _count(graph.root, ((link.child, link.parent) for link in graph.links))
    after = _count(graph.root, ((link.parent, link.child) for link in graph.links))
    words = f"{before:,} before it and {after:,} after it"
    size = (max(rows) * ACROSS + WIDE + 16, (tallest - 1) * DOWN + TALL + 16)
    return Family(boxes, arrows, *size, len(graph.nodes) - len(boxes), words)


def _nearest(graph: Graph) -> set[str]:
    """As many as can be drawn, level by level from the job itself."""
    kept, level = {graph.root}, {graph.root}
    while level and len(kept) < MOST:
        reached = set()
        for link in graph.links:
            for one, other in ((link.parent, link.child), (link.child, link.parent)):
                if one in level and other not in kept and len(kept) < MOST:
                    kept.add(other)
                    reached.add(other)
        level = reached
    return kept


def _columns(graph: Graph, kept: set[str]) -> Mapping[str, int]:
    """Each one to the right of all that it waits for."""
    columns = dict.fromkeys(kept, 0)
    links = [link for link in graph.links if link.parent in kept and link.child in kept]
    # Within a batch a parent may come after its children, so once through is not enough; none waits for itself, so it ends.
    for _ in kept:
        before = dict(columns)
        for link in links:
            columns[link.child] = max(columns[link.child], columns[link.parent] + 1)
        if columns == before:
            break
    return columns


def _count(root: str, ways: Iterable[tuple[str, str]]) -> int:
    """How many are reached from there."""
    leads: dict[str, list[str]] = {}
    for one, other in ways:
        leads.setdefault(one, []).append(other)
    found, level = {root}, {root}
    while level:
        level = {other for one in level for other in leads.get(one, ())} - found
        found |= level
    return len(found) - 1


def _box(job: Job, at: tuple[int, int], *, is_root: bool) -> Box:
    words = command(job)
    label = words if len(words) <= LETTERS else words[: LETTERS - 1] + "…"
    return Box(job.id, *at, job.state.value, label, f"{job.id}: {words}", is_root)


def _way(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + WIDE, start[1] + TALL // 2
    to_x, to_y = end[0], end[1] + TALL // 2
    bend = (to_x - x) // 2
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
