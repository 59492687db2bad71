"""Names made by chance: job ids, worker ids and the tokens of claims."""

from __future__ import annotations

import os
from typing import TypeAlias

# Not a sequence of texts, which a single id would be too, and each of its letters taken for an id.
Ids: TypeAlias = list[str] | tuple[str, ...]

_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_ALNUM = _LETTERS + b"0123456789"
# 256 is no multiple of 26 or 36, so some characters come up slightly more often. With 50 bits left that is harmless.
_TO_LETTER = bytes(_LETTERS[i % 26] for i in range(256))
_TO_ALNUM = bytes(_ALNUM[i % 36] for i in range(256))
_JOB_ID_LENGTH = 10
_TOKEN_BYTES = 12


def new_job_ids(count: int) -> list[str]:
    """`count` random ids of the form [a-z][a-z0-9]{9}. One call to the kernel for all: a bulk enqueue needs a million."""
    heads = os.urandom(count).translate(_TO_LETTER).decode()
    tails = os.urandom(count * (_JOB_ID_LENGTH - 1)).translate(_TO_ALNUM).decode()
    step = _JOB_ID_LENGTH - 1
    return [heads[i] + tails[i * step : i * step + step] for i in range(count)]


def new_worker_id() -> str:
    return "w-" + os.urandom(5).translate(_TO_ALNUM).decode()


def new_tokens(count: int) -> list[str]:
    """`count` random tokens, by one call to the kernel."""
    digits = os.urandom(count * _TOKEN_BYTES).hex()
    step = 2 * _TOKEN_BYTES
    return [digits[i : i + step] for i in range(0, len(digits), step)]
