"""What few jobs say: whom to call, what a run may use, which secrets it needs.

What reads it is loaded only then: `enqueue` has to be quick for all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from queuectl.job.newjob import NO_URLS, PackedHooks, PackedLimits, QueueDefault, Urls

LIMITS: Final = ("memory", "cpu_time", "nice", "open_files", "processes", "file_size")


def hook(value: object, name: str) -> str:
    from queuectl.job.hooks import parse_url_or_none

    return parse_url_or_none(value, name)


def limit(kind: str) -> Callable[[object, str], int]:
    def parse(value: object, name: str) -> int:
        from queuectl.job.resources import parse_limit

        return parse_limit(value, name, limit=kind)

    return parse


def secrets(value: object, name: str) -> tuple[str, ...]:
    from queuectl.job.secrets import secrets as read

    return read(value, name)


def merged_secrets(fields: object, flags: object) -> object:
    from queuectl.job.secrets import merged

    return merged(fields, flags)


def hooks(own: Urls, of_queue: QueueDefault | None, of_all: Urls) -> PackedHooks | None:
    of_its_queue = NO_URLS if of_queue is None else of_queue[3]
    if own == of_its_queue == of_all == NO_URLS:
        return None
    from queuectl.job.hooks import choose, pack

    return pack(choose(own, of_its_queue, of_all))


def limits(own: Sequence[int | None], of_queue: QueueDefault | None) -> PackedLimits | None:
    of_its_queue = (None if of_queue is None else of_queue[4]) or {}
    if not of_its_queue and not any(value is not None for value in own):
        return None
    from queuectl.job.resources import pack

    given = zip(LIMITS, own, strict=True)
    return pack({name: of_its_queue.get(name) if value is None else value for name, value in given})
