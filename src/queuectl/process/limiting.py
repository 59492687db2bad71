"""How the limits of a run are put on its process, so that they hold from its first instruction and for good.

A command for the shell gets them from that shell itself: some of its builtins, before the command and on the same line, which
costs next to nothing. Everything else is forked, see between.py and docs/adr/0036.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from typing import Final

from queuectl.process.between import Between, afterwards
from queuectl.process.protocol import Order

LONGEST: Final = 131_071  # bytes of one word, see job/fields.py
KIB: Final = 1024
_BLOCK: Final = 512  # in which shells count the size of files

_KINDS: Final = {
    "cpu_time": resource.RLIMIT_CPU,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
    "memory": resource.RLIMIT_AS,
}
# In the units of the shells. Without -S or -H both are set. That of memory last: behind it a shell may have no room left.
_BUILTINS: Final = {
    resource.RLIMIT_CPU: lambda most: f"ulimit -t {most + afterwards(resource.RLIMIT_CPU)}&&ulimit -St {most}",
    resource.RLIMIT_NOFILE: lambda most: f"ulimit -n {most}",
    # Called -u by bash, and -p, which is something else there, by the others.
    resource.RLIMIT_NPROC: lambda most: f"{{ ulimit -u {most} 2>/dev/null||ulimit -p {most};}}",
    resource.RLIMIT_FSIZE: lambda most: f"ulimit -f {most // _BLOCK}",
    resource.RLIMIT_AS: lambda most: f"ulimit -v {most // KIB}",
}


def limited(order: Order, limits: Mapping[str, int], *, by_shell: bool, group: bytes | None = None) -> Order:
    """The same with these limits, see job/resources.py, and in this control group. `by_shell`: its last word is a command for a
    shell of ours, in which nothing of the job's choice works before that command does."""
    nice = limits.get("nice")
    kinds = resources(limits)
    if by_shell and order.between is None:
        command = prologue(kinds, group) + order.argv[-1]
        if len(command) <= LONGEST:
            between = None if nice is None else Between(nice=nice)
            return order._replace(argv=[*order.argv[:-1], command], between=between)
    own = order.between or Between()
    return order._replace(between=own._replace(limits=tuple(kinds), nice=nice, group=group))


def resources(limits: Mapping[str, int]) -> list[tuple[int, int]]:
    """By the numbers of the kernel; no more of anything than we may have ourselves, and so a process of ours."""
    found = []
    for name, kind in _KINDS.items():
        if name in limits:
            _, ours = resource.getrlimit(kind)
            room = ours - afterwards(kind)
            found.append((kind, limits[name] if ours == resource.RLIM_INFINITY else min(limits[name], room)))
    return found


def prologue(kinds: Sequence[tuple[int, int]], group: bytes | None) -> bytes:
    """On the line of the command, so that its lines keep their numbers; and if a limit cannot be set, nothing is run."""
    steps = [] if group is None else [f"echo 0 >{_quoted(group)}/cgroup.procs"]
    steps += [_BUILTINS[kind](most) for kind, most in kinds]
    return "&&".join(steps).encode("utf-8", "surrogateescape") + b"||exit 126;" if steps else b""


def _quoted(path: bytes) -> str:
    text = path.decode("utf-8", "surrogateescape")
    return "'" + text.replace("'", "'\\''") + "'"
