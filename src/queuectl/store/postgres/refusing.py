"""Claims that did not become runs: the policy of the host was against the job, or the worker gave it back."""

from __future__ import annotations

from collections.abc import Iterable

from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.protocol import End, Lost


def unrun(settled: Iterable[End | Lost]) -> dict[str, Question]:
    """What follows the settlement of these. A job that was cancelled meanwhile, or that another worker has, is not changed."""
    without_run = [one for one in settled if one.settlement.ending is None]
    questions = {}
    for name, is_given_back in (("unrun", False), ("unclaim", True)):
        if claims := [one.claim for one in without_run if one.settlement.is_given_back is is_given_back]:
            told = {"seqs": [claim.seq for claim in claims], "tokens": [claim.token for claim in claims]}
            questions[name] = Question(SQL[name], {**told, "runs": [claim.run for claim in claims]})
    return questions
