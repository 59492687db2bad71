"""queuectl: a durable background job queue for shell commands.

The public Python API is what `__all__` names; each name is imported when it is first used, so that a command line that
needs none of them does not pay for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queuectl import errors
    from queuectl.client import Queue
    from queuectl.jobs.model import Job
    from queuectl.jobs.states import State
    from queuectl.operations.job_input import read_env_file

__version__ = "0.9.0"
__all__ = ["Job", "Queue", "State", "__version__", "errors", "read_env_file"]

_HOMES = {
    "Queue": "queuectl.client",
    "Job": "queuectl.jobs.model",
    "State": "queuectl.jobs.states",
    "read_env_file": "queuectl.operations.job_input",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "errors":
        return import_module("queuectl.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'queuectl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
