"""The alphabets of ids, queues and tags."""

from __future__ import annotations

import re
from typing import Final

ID_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
QUEUE_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
TAG_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"

# Of the jobs that tell what became of others, see job/hooks.py. Nobody else adds to it: a name that people might have chosen would
# have made their jobs into something else.
WEBHOOKS: Final = "queuectl.webhooks"

LAST: Final = "last"  # where an id is asked for, the job enqueued last: no job may be called so

_is_id: Final = re.compile(ID_PATTERN).fullmatch
_is_queue: Final = re.compile(QUEUE_PATTERN).fullmatch
_is_tag: Final = re.compile(TAG_PATTERN).fullmatch


def is_valid_id(text: str) -> bool:
    return text != LAST and _is_id(text) is not None


def is_valid_queue(text: str) -> bool:
    return _is_queue(text) is not None


def is_valid_tag(text: str) -> bool:
    return _is_tag(text) is not None
