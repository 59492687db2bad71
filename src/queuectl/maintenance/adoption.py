"""Adoption: what a dead worker has left running goes on, and another worker of its home looks after it.

Possible as long as the end of a run will be known: its keeper lives, or has written it down.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from queuectl import paths as places
from queuectl.jobs.model import Claim, Worker
from queuectl.process.ledger import LOST, EndBegun, Footprint, Records, add_end, read_ledger
from queuectl.process.watch import Adoption, is_there
from queuectl.store.protocol import Store


class Heir(NamedTuple):
    """A worker that looks after what others of its home have left running."""

    name: str
    home: str
    foundlings: deque[Adoption]


def adoptable(worker: Worker, claims: Sequence[Claim]) -> dict[str, Adoption]:
    """By token, what a dead worker has left running, or has ended since, so that the end will be known."""
    records = read_ledger(places.runs_file(worker.home, worker.id))
    found = {}
    for claim in claims:
        footprint = records.runs.get(claim.token) or _put_aside(worker.home, claim.token)
        if footprint is not None:
            ledger = _ledger(worker, footprint, records)
            kept = records if footprint.kept is None else read_ledger(ledger)
            ending = _ending(claim.token, kept, records)
            if _will_be_known(claim.token, kept) and (ending is None or ending.why != LOST):
                may_be_closed = footprint.kept is not None or ending is not None or claim.token in records.closing
                found[claim.token] = Adoption(claim, footprint, ledger, worker.id, ending, may_be_closed)
    return found


def leave_to(heir: Heir, worker: Worker, claims: Sequence[Claim], *, store: Store) -> set[str]:
    """Hand over what a dead worker has left running; it has been fenced. Returns the tokens."""
    found = adoptable(worker, claims)
    if not found:
        return set()
    if any(adoption.footprint.kept is None for adoption in found.values()):
        # Out of the way of the next worker of this name. Who has it open goes on writing in it.
        path = places.runs_file(worker.home, worker.id)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, _kept(worker, read_ledger(path)))
    for token, adoption in found.items():
        if adoption.ending is not None and adoption.footprint.kept is not None:
            # The dead one had adopted it, and noted in its own ledger that it ends it. The next worker of this name begins that anew.
            with contextlib.suppress(OSError):  # a full disk: then it counts as ended by itself
                add_end(adoption.ledger, [token], adoption.ending, create=False)
    # Under our own name they are ours already.
    taken = set(found) if worker.id == heir.name else set(store.adopt(worker.id, found, by=heir.name))
    heir.foundlings.extend(adoption for token, adoption in found.items() if token in taken)
    return taken


def _will_be_known(token: str, kept: Records) -> bool:
    record = kept.runs.get(token)
    if record is not None and record.finish is not None:
        return True
    # Also if the process has just ended: then its keeper is about to write.
    return kept.keeper is not None and is_there(kept.keeper)


def _ending(token: str, kept: Records, *ledgers: Records) -> EndBegun | None:
    """Why somebody who is gone was about to end it: that has to go on, since the process may have been told to end, or have ended
    of it. None if nobody was, or if it had ended by itself before."""
    record = kept.runs.get(token)
    ended_at = math.inf if record is None or record.finish is None else record.finish.at
    begun = [found for one in (kept, *ledgers) for found in one.endings.get(token, ()) if found.at <= ended_at]
    return min(begun, key=lambda one: (one.why != LOST, one.at)) if begun else None


def _ledger(worker: Worker, footprint: Footprint, records: Records) -> str:
    """Where its end will stand."""
    if footprint.kept is not None:  # the dead worker had adopted it itself
        return os.path.join(os.path.dirname(places.runs_file(worker.home, worker.id)), footprint.kept)
    return _kept(worker, records)


def _put_aside(home: str, token: str) -> Footprint | None:
    """What is said of it in a ledger that an heir has put aside: one that was gone before it could note it in its own."""
    folder = os.path.dirname(places.runs_file(home, ""))
    try:
        names = os.listdir(folder)
    except OSError:  # the home is gone, or another user's
        return None
    for name in names:
        if name.endswith(places.KEPT) and (found := read_ledger(os.path.join(folder, name)).runs.get(token)):
            return found if found.kept is not None else found._replace(kept=name)
    return None


def _kept(worker: Worker, records: Records) -> str:
    return places.kept_file(worker.home, worker.id, records.keeper.pid if records.keeper else 0)
