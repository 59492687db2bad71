"""queuectl graph"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.jobs import command_text
from queuectl.cli.printable import printable
from queuectl.cli.result import Result, Sheet
from queuectl.cli.style import STATE_STYLE
from queuectl.job.graph import Need, Otherwise
from queuectl.queue.graph import MOST, Graph
from queuectl.queue.graph import graph as graph_of
from queuectl.store.insight import Link

WIDE: Final = 10  # jobs that are drawn side by side
DEEP: Final = 30  # below each other


@command(
    "graph",
    examples="""
        queuectl graph last
        # all that still has to end before it can run
        queuectl graph deploy --json | jq -r '.edges[] | select(.state == "waiting") | .parent'
    """,
)
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
def graph(app: App, id: str) -> Result:
    """What a job waits for, drawn above it, and what waits for it, below; each with its state.

    A job that can be reached on two ways is drawn where it is met first and marked with ^ after that. Of many side by side the
    first are drawn and the others counted. With --json all of it, as nodes and edges.
    """
    found = graph_of(app.open_reads(), id)
    return Sheet(found.to_dict(), people=lambda: _Drawing(app, found).lines(), id=found.root)


class _Drawing:
    def __init__(self, app: App, graph: Graph) -> None:
        self._app = app
        self._graph = graph
        self._drawn: set[str] = set()
        self._above: dict[str, list[Link]] = {}
        self._below: dict[str, list[Link]] = {}
        for link in graph.links:
            self._above.setdefault(link.child, []).append(link)
            self._below.setdefault(link.parent, []).append(link)

    def lines(self) -> Iterator[str]:
        root = self._graph.root
        yield from self._parents(root, "", DEEP)
        yield self._node(root, "", None)
        yield from self._children(root, "", DEEP)
        if self._graph.is_cut:
            yield self._app.paint(f"there is more of it than the {MOST:,} that were followed", "dim")

    def _parents(self, job_id: str, margin: str, depth: int) -> Iterator[str]:
        """Top down: the parents of a parent stand above it."""
        links, rest = self._few(self._above.get(job_id, []), depth)
        if rest:
            yield self._rest(f"{margin}┌─ ", rest)
        for at, link in enumerate(links):
            is_first, mark = at == 0 and not rest, self._mark(link.parent)
            yield from self._once(link.parent, margin + ("   " if is_first else "│  "), depth, self._parents)
            yield self._node(link.parent, margin + ("┌─ " if is_first else "├─ "), link, mark)

    def _children(self, job_id: str, margin: str, depth: int) -> Iterator[str]:
        links, rest = self._few(self._below.get(job_id, []), depth)
        for at, link in enumerate(links):
            is_last = at == len(links) - 1 and not rest
            yield self._node(link.child, margin + ("└─ " if is_last else "├─ "), link, self._mark(link.child))
            yield from self._once(link.child, margin + ("   " if is_last else "│  "), depth, self._children)
        if rest:
            yield self._rest(f"{margin}└─ ", rest)

    def _once(
        self, job_id: str, margin: str, depth: int, draw: Callable[[str, str, int], Iterator[str]]
    ) -> Iterator[str]:
        if job_id not in self._drawn:
            self._drawn.add(job_id)
            yield from draw(job_id, margin, depth - 1)

    def _few(self, links: Sequence[Link], depth: int) -> tuple[Sequence[Link], int]:
        shown = links[: WIDE if depth > 0 else 0]
        return shown, len(links) - len(shown)

    def _rest(self, branch: str, count: int) -> str:
        return branch + self._app.paint(f"… {count:,} more", "dim")

    def _mark(self, job_id: str) -> str:
        return " ^" if job_id in self._drawn else ""

    def _node(self, job_id: str, branch: str, link: Link | None, mark: str = "") -> str:
        app, job = self._app, self._graph.nodes[job_id]
        words = [
            app.paint(printable(job_id), "bold" if link is None else None) + mark,
            app.paint(job.state.value, STATE_STYLE[job.state]),
        ]
        if link is not None and (said := _said(link)):
            words.append(app.paint(said, "dim"))
        words.append(app.paint(_cut(printable(command_text(job))), "dim"))
        return branch + "  ".join(words)


def _said(link: Link) -> str:
    """What is special about an edge."""
    words = {Need.COMPLETED: "", Need.ENDED: "any end", Need.FAILED: "if it fails"}[link.when]
    otherwise = "else runs all the same" if link.otherwise is Otherwise.RUN else ""
    told = ", ".join(filter(None, (words, otherwise)))
    return f"({told})" if told else ""


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
