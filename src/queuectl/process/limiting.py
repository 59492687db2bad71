"""The limits of a run, as what its process does to itself before it is the program: so that they hold from its first instruction, and for
good."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from typing import Final

from queuectl.process.between import Between
from queuectl.process.protocol import Order

_KINDS: Final = {
    "cpu_time": resource.RLIMIT_CPU,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
    "memory": resource.RLIMIT_AS,
}


def limited(order: Order, limits: Mapping[str, int] | None) -> Order:
    """The same with these limits, see jobs/resources.py."""
    return order._replace(between=with_limits(order.between, limits)) if limits else order


def with_limits(between: Between | None, limits: Mapping[str, int] | None) -> Between | None:
    if not limits:
        return between
    kinds = tuple((kind, limits[name]) for name, kind in _KINDS.items() if name in limits)
    return (between or Between())._replace(limits=kinds, nice=limits.get("nice"))
