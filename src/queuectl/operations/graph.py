"""The dependency graph of a job: its ancestors and descendants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.jobs.dependencies import DependencyState, Need
from queuectl.jobs.model import Job
from queuectl.operations.bulk import BULK_BATCH_SIZE, find_jobs
from queuectl.store.reads import Reads
from queuectl.store.types import Link

MAX_DEPENDENCIES: Final = 10_000  # in each direction
MAX_NAMED_PARENTS: Final = 5

_NEEDS: Final = {Need.COMPLETED: "complete", Need.ENDED: "end", Need.FAILED: "fail for good"}

Ask = Callable[[Sequence[str], int], list[Link]]


class Graph(NamedTuple):
    root: str
    nodes: dict[str, Job]  # in the order of enqueue
    links: list[Link]
    is_cut: bool  # truncated at MAX_DEPENDENCIES

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
    """The graph of the job `ref`. Raises JobNotFound or AmbiguousId."""
    root = store.resolve(ref)
    above, cut_above = _follow(root, lambda ids, limit: store.parents(ids, limit=limit), lambda link: link.parent)
    below, cut_below = _follow(root, lambda ids, limit: store.children(ids, limit=limit), lambda link: link.child)
    links = [*above, *below]
    jobs = find_jobs(store, dict.fromkeys([root, *(id_ for link in links for id_ in (link.parent, link.child))]))
    if root not in jobs:
        store.get(root)  # raises JobNotFound if it was removed meanwhile
    nodes = {job.id: job for job in sorted(jobs.values(), key=lambda job: job.seq)}
    there = [link for link in links if link.parent in nodes and link.child in nodes]
    return Graph(root, nodes, there, cut_above or cut_below)


def waits_for(store: Reads, job_id: str) -> tuple[str, list[dict[str, str]]]:
    """The unfinished parents of a blocked job: as a phrase, and each with its need and its state."""
    waiting = [
        link for link in store.parents([job_id], limit=MAX_DEPENDENCIES) if link.state is DependencyState.WAITING
    ]
    named = [f"{link.parent} to {_NEEDS[link.when]} ({link.parent_state} now)" for link in waiting[:MAX_NAMED_PARENTS]]
    more = [f"{len(waiting) - MAX_NAMED_PARENTS:,} more"] if len(waiting) > MAX_NAMED_PARENTS else []
    *others, last = [*named, *more] or ["other jobs to end"]
    cards = [
        {"id": link.parent, "state": link.parent_state.value, "when": link.when.value, "else": link.otherwise.value}
        for link in waiting
    ]
    return (f"{', '.join(others)} and {last}" if others else last), cards


def _follow(root: str, ask: Ask, far: Callable[[Link], str]) -> tuple[list[Link], bool]:
    """Breadth first. Returns the dependencies, and whether there are more than MAX_DEPENDENCIES."""
    found: dict[tuple[str, str], Link] = {}
    seen, level = {root}, [root]
    while level:
        reached: list[str] = []
        for start in range(0, len(level), BULK_BATCH_SIZE):
            left = MAX_DEPENDENCIES - len(found)
            links = ask(level[start : start + BULK_BATCH_SIZE], left + 1)
            for link in links[:left]:
                found[link.parent, link.child] = link
                if (other := far(link)) not in seen:
                    seen.add(other)
                    reached.append(other)
            if len(links) > left:
                return list(found.values()), True
        level = reached
    return list(found.values()), False
