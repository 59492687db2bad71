"""What a worker and its keeper say to each other, over the wire."""

from __future__ import annotations

import errno
from typing import Final

# The descriptor that a keeper is started with.
WIRE: Final = 3

# To the keeper: the environment that most jobs share, what to make, who is buried, how long a log may be, and whom the worker
# ends itself.
BASE, MAKE, BURY, LIMIT, LEAVE = range(5)

# Of a process that has ended: pid, exit code or signal, how long it took, where its output ends, what it has used as far as that is
# known, and whether something of it was ended for want of memory.
News = tuple[int, int | None, int | None, float, int | None, tuple[int | None, ...] | None, bool]

# What the worker is told when it hangs up, if that is not the end of its keeper.
STAYS: Final = "stays"


class CannotLog(Exception):
    """The log of a run cannot be begun."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.errno = cause.errno or errno.EIO
