"""Stopping workers and waiting for it: `worker stop`, and what systemd calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from queuectl.cli.app import App
from queuectl.cli.progress import progress
from queuectl.cli.style import took
from queuectl.cli.workers import hands
from queuectl.errors import QueuectlError, WorkerNotFound
from queuectl.job.model import Worker
from queuectl.queue.stop import Silent, stop_workers
from queuectl.store.protocol import StopMode

FAREWELL: Final = 5.0  # what a worker that was woken to end gets beyond the kill-grace of its jobs, in seconds


def named_workers(
    app: App, registered: Sequence[Worker], ids: Sequence[str], *, everywhere: bool
) -> tuple[list[Worker], list[tuple[str, QueuectlError]]]:
    """The workers that are meant, without ids those of this home; and the ids of which there is none."""
    if not ids:
        return [found for found in registered if everywhere or found.home == app.home], []
    known = {found.id: found for found in registered}
    refused: list[tuple[str, QueuectlError]] = [(name, WorkerNotFound(name)) for name in ids if name not in known]
    return [known[name] for name in dict.fromkeys(ids) if name in known], refused


def stop_and_wait(app: App, targets: Sequence[Worker], *, mode: StopMode, timeout: float | None) -> list[str]:
    """Those that have ended, when all have."""
    ends = mode is StopMode.NOW or timeout is not None
    with progress(app, "finishing") as advance:
        most = sum(target.busy for target in targets)
        return stop_workers(
            app.open_store(),
            app.clock,
            targets,
            mode=mode,
            timeout=timeout,
            patience=app.settings.kill_grace_ms / 1000 + FAREWELL,
            lease=app.settings.lease_ms / 1000,
            hands=hands(app),
            on_progress=lambda left: advance(most - sum(target.busy for target in left), most),
            on_silent=lambda silent: app.warn(_silent_words(app, silent, ends=ends)),
        )


def _silent_words(app: App, silent: Silent, *, ends: bool) -> str:
    name, pid = silent.worker.id, silent.worker.pid
    if not silent.is_stopped:
        return f"worker {name} does not answer: no sign of it for {took(app.settings.lease_ms)}; still waiting"
    more = "when it is time, it is woken to end" if ends else f"kill -CONT {pid} lets it go on, --now ends it"
    return f"worker {name} does not answer: its process {pid} is stopped; {more}"
