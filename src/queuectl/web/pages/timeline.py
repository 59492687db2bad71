"""The life of one job on a line: when it waited, and each of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from queuectl.job.lifecycle import is_final
from queuectl.job.model import Job, Run, to_ms
from queuectl.job.outcome import Ending
from queuectl.web.pages.charts import r
from queuectl.web.pages.wording import span

WIDTH: Final = 1000
THINNEST: Final = 4.0  # so that a short run is still seen
MOST: Final = 100


class Stretch(NamedTuple):
    x: float
    width: float
    kind: str
    title: str


class Timeline(NamedTuple):
    stretches: list[Stretch]
    begin_ms: int
    end_ms: int
    words: str  # for those who do not see it


def timeline(job: Job, history: Sequence[Run], now_ms: int) -> Timeline:
    runs = [run for run in history if run.started_at is not None][-MOST:]
    begin = to_ms(job.created_at)
    # Of one that waits for another chance only its last run has ended.
    end = to_ms(job.finished_at) if is_final(job.state) and job.finished_at is not None else now_ms
    if runs and runs[0].started_at is not None and len(runs) == MOST:
        begin = to_ms(runs[0].started_at)
    end = max(end, begin + 1, *(to_ms(run.finished_at) for run in runs if run.finished_at is not None), 0)
    stretches = [_stretch(run, begin, end, now_ms) for run in runs]
    said = [f"run {run.number} {run.outcome.value}" for run in runs]
    words = f"{span(end - begin)} since it was enqueued: " + (", ".join(said) if said else "it has not run yet")
    return Timeline(stretches, begin, end, words)


def _stretch(run: Run, begin: int, end: int, now_ms: int) -> Stretch:
    assert run.started_at is not None
    start = to_ms(run.started_at)
    stop = now_ms if run.finished_at is None else to_ms(run.finished_at)
    scale = WIDTH / (end - begin)
    wide = max(THINNEST, (stop - start) * scale)
    x = min(max(0.0, (start - begin) * scale), WIDTH - wide)
    title = f"run {run.number}: {run.outcome.value} after {span(stop - start)}"
    return Stretch(r(max(0.0, x)), r(wide), _kind(run.outcome), title)


def _kind(outcome: Ending) -> str:
    match outcome:
        case Ending.RUNNING:
            return "processing"
        case Ending.COMPLETED:
            return "completed"
        case Ending.CANCELLED | Ending.RELEASED:
            return "cancelled"
        case _:
            return "failed"
