"""What queuectl itself writes into jobs: variables of their environment, and the calls of webhooks.

A policy never refuses a job because of a variable that queuectl has set. A user can give a job a variable of the same name, so each
counts as ours only with a value that queuectl could have set, and those of alerts only in the queue that no user can add jobs to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from queuectl.job.alert import Word
from queuectl.job.hooks import EVENT_OF_ALERT, SAID, URL, Happening
from queuectl.job.names import QUEUE_PATTERN, WEBHOOKS, is_valid_id, is_valid_queue

_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")
_NAME: Final = re.compile(QUEUE_PATTERN)
ALERT: Final = frozenset(
    {
        "QUEUECTL_ALERT",
        *(f"QUEUECTL_ALERT_{name}" for name in ("ID", "STATE", "KIND", "VALUE", "THRESHOLD", "QUEUE", "AT", "TEXT")),
    }
)
CALL: Final = frozenset({URL, SAID})
_WITH_VALUE: Final = {
    "QUEUECTL_ARRAY_INDEX": _NUMBER,
    "QUEUECTL_BATCH": _NAME,
    **{f"QUEUECTL_BATCH_{name}": _NUMBER for name in ("JOBS", "COMPLETED", "DEAD", "CANCELLED")},
}
# The worker sets these for every run: a value that the job brings along never reaches its process.
_OVERRIDDEN: Final = frozenset(
    f"QUEUECTL_{name}"
    for name in ("HOME", "WORKER", "JOB_ID", "RUN", "ATTEMPT", "QUEUE", "SLOT", "PARENTS", "PARENT_LOGS")
)


def is_delivery(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether these are the arguments and variables of a call, exactly as store/calling.py and store/alerting.py make them."""
    if len(words) != 3:
        return False
    what, subject, detail = words
    if what == EVENT_OF_ALERT:
        return is_valid_queue(subject) and detail in list(Word) and env.keys() <= ALERT | CALL
    is_run = detail.isascii() and detail.isdecimal()
    return what in list(Happening) and is_valid_id(subject) and is_run and env.keys() <= CALL


def chosen_by_job(queue: str, env: Mapping[str, str]) -> list[str]:
    """The names of the variables that the job itself brings along."""
    return [name for name, value in env.items() if not _is_own(queue, name, value)]


def _is_own(queue: str, name: str, value: str) -> bool:
    if name in _OVERRIDDEN:
        return True
    if queue == WEBHOOKS and name in ALERT:
        return True
    form = _WITH_VALUE.get(name)
    return form is not None and form.fullmatch(value) is not None
