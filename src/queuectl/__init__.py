"""queuectl: a durable background job queue for shell commands.

The public Python API is what `__all__` names; each name is imported when it is first used, so that a command line that
needs none of them does not pay for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queuectl import errors
    from queuectl.client import Queue
    from queuectl.job.lifecycle import State
    from queuectl.job.model import Job
    from queuectl.queue.envfile import read_env_file

__version__ = "0.1.0"
__all__ = ["Job", "Queue", "State", "__version__", "errors", "read_env_file"]

_HOMES = {
    "Queue": "queuectl.client",
    "Job": "queuectl.job.model",
    "State": "queuectl.job.lifecycle",
    "read_env_file": "queuectl.queue.envfile",
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
