"""What a worker starts first, for it takes time that can be used for the rest."""

from __future__ import annotations

from queuectl import paths as places
from queuectl.cli.app import App
from queuectl.errors import SupervisorGone
from queuectl.process.raising import Raised, raise_keeper
from queuectl.process.spawn import forbid_inheritance
from queuectl.store.enqueue import new_worker_id


def early_supervisor(app: App, name: str | None) -> tuple[str, Raised | None]:
    """The name of the worker, made if it has none, and its keeper; None: let the worker try, and say what is wrong."""
    name = name or new_worker_id()
    forbid_inheritance()  # or it would hold what we were started with
    try:
        return name, raise_keeper(places.runs_file(app.home, name), app.environ)
    except SupervisorGone:
        return name, None
