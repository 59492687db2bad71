"""Jobs that the policy of a host was against."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.protocol import End


def unrun(ends: Sequence[End]) -> dict[str, Question]:
    """What follows the settlement of these, if any of them was refused: whoever was called off, or is somebody else's, is not touched."""
    claims = [end.claim for end in ends if end.settlement.ending is None]
    if not claims:
        return {}
    told = {"seqs": [claim.seq for claim in claims], "tokens": [claim.token for claim in claims]}
    return {"unrun": Question(SQL["unrun"], {**told, "runs": [claim.run for claim in claims]})}
