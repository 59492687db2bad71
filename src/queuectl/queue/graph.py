"""The jobs around a job: all that it waits for, directly or not, and all that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.job.graph import EdgeState, Need
from queuectl.job.model import Job
from queuectl.queue.pick import AT_ONCE, find
from queuectl.store.insight import Link
from queuectl.store.protocol import Reads

MOST: Final = 10_000  # edges that are followed in each direction
NAMED: Final = 5  # parents that a sentence names

_NEEDS: Final = {Need.COMPLETED: "complete", Need.ENDED: "end", Need.FAILED: "fail for good"}

Ask = Callable[[Sequence[str], int], list[Link]]


class Graph(NamedTuple):
    root: str
    nodes: dict[str, Job]  # in the order of enqueue
    links: list[Link]
    is_cut: bool  # there is more of it

    def parents(self, job_id: str) -> list[Link]:
        return [link for link in self.links if link.child == job_id]

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.root,
            "nodes": [
                {
                    "id": job.id,
                    "state": job.state.value,
                    "queue": job.queue,
                    "command": job.command,
                    "argv": None if job.argv is None else list(job.argv),
                    "error": job.error,
                }
                for job in self.nodes.values()
            ],
            "edges": [
                {
                    "parent": link.parent,
                    "child": link.child,
                    "when": link.when.value,
                    "else": link.otherwise.value,
                    "state": link.state.value,
                }
                for link in self.links
            ],
            "more": self.is_cut,
        }


def graph(store: Reads, ref: str) -> Graph:
    """Around the job that `ref` names. Raises JobNotFound or AmbiguousId."""
    root = store.resolve(ref)
    above, cut_above = _follow(root, lambda ids, limit: store.parents(ids, limit=limit), lambda link: link.parent)
    below, cut_below = _follow(root, lambda ids, limit: store.children(ids, limit=limit), lambda link: link.child)
    links = [*above, *below]
    jobs = find(store, dict.fromkeys([root, *(id_ for link in links for id_ in (link.parent, link.child))]))
    if root not in jobs:
        store.get(root)  # removed in between: says so
    nodes = {job.id: job for job in sorted(jobs.values(), key=lambda job: job.seq)}
    there = [link for link in links if link.parent in nodes and link.child in nodes]
    return Graph(root, nodes, there, cut_above or cut_below)


def waits_for(store: Reads, job_id: str) -> tuple[str, list[dict[str, str]]]:
    """The parents that a blocked job still waits for, in words, and each with what it has to do and what it does now."""
    waiting = [link for link in store.parents([job_id], limit=MOST) if link.state is EdgeState.WAITING]
    named = [f"{link.parent} to {_NEEDS[link.when]} ({link.parent_state} now)" for link in waiting[:NAMED]]
    more = [f"{len(waiting) - NAMED:,} more"] if len(waiting) > NAMED else []
    *others, last = [*named, *more] or ["other jobs to end"]
    cards = [
        {"id": link.parent, "state": link.parent_state.value, "when": link.when.value, "else": link.otherwise.value}
        for link in waiting
    ]
    return (f"{', '.join(others)} and {last}" if others else last), cards


def _follow(root: str, ask: Ask, far: Callable[[Link], str]) -> tuple[list[Link], bool]:
    """Level by level. Whether there was more than anybody would want."""
    found: dict[tuple[str, str], Link] = {}
    seen, level = {root}, [root]
    while level:
        reached: list[str] = []
        for start in range(0, len(level), AT_ONCE):
            room = MOST - len(found)
            links = ask(level[start : start + AT_ONCE], room + 1)
            for link in links[:room]:
                found[link.parent, link.child] = link
                if (other := far(link)) not in seen:
                    seen.add(other)
                    reached.append(other)
            if len(links) > room:
                return list(found.values()), True
        level = reached
    return list(found.values()), False
