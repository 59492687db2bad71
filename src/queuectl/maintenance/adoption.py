"""Adoption: the runs of a dead worker continue, and another worker of its data directory takes them over.

Possible as long as the end of a run will be known: its supervisor is alive, or has written it into the journal.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from queuectl import paths
from queuectl.jobs.model import Claim, Worker
from queuectl.process import tree
from queuectl.process.adopted import Adoption
from queuectl.process.journal import LOST, Entries, Record, Termination, append_terminations, read_journal
from queuectl.store.store import Store


class Adopter(NamedTuple):
    """A worker that takes over the runs of dead workers of its data directory: it starts to watch those in `adoptions`."""

    name: str
    home: str
    adoptions: deque[Adoption]


def adoptable(worker: Worker, claims: Sequence[Claim]) -> dict[str, Adoption]:
    """By token, the runs of a dead worker whose end is known or will be."""
    entries = read_journal(paths.runs_file(worker.home, worker.id))
    found = {}
    for claim in claims:
        record = entries.runs.get(claim.token) or _record_in_kept_journal(worker.home, claim.token)
        if record is None or record.is_starting:
            continue
        journal = _journal_of(worker, record, entries)
        own = entries if record.journal is None else read_journal(journal)
        termination = _termination(claim.token, own, entries)
        if _will_be_known(claim.token, own) and (termination is None or termination.reason != LOST):
            found[claim.token] = Adoption(claim, record, journal, worker.id, termination)
    return found


def hand_over(worker: Worker, claims: Sequence[Claim], *, to: Adopter, store: Store) -> set[str]:
    """Hand the runs of a dead worker, which has been fenced, over to another one. Returns their tokens."""
    found = adoptable(worker, claims)
    if not found:
        return set()
    if any(adoption.record.journal is None for adoption in found.values()):
        # Out of the way of the next worker of this name. A process that has it open continues to write into it.
        path = paths.runs_file(worker.home, worker.id)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, _kept_journal(worker, read_journal(path)))
    for token, adoption in found.items():
        if adoption.termination is not None and adoption.record.journal is not None:
            # The dead worker had adopted it, and noted in its own journal that it terminates it. The next worker of this name begins
            # that journal again.
            with contextlib.suppress(OSError):  # a full disk: then the run counts as ended by itself
                append_terminations(adoption.journal, [token], adoption.termination, create=False)
    # Under our own name they are ours already.
    taken = set(found) if worker.id == to.name else set(store.claims.adopt(worker.id, found, by=to.name))
    to.adoptions.extend(adoption for token, adoption in found.items() if token in taken)
    return taken


def _will_be_known(token: str, entries: Entries) -> bool:
    if entries.supervisor is None:  # a full disk: without its signature, the journal may be of an earlier boot
        return False
    record = entries.runs.get(token)
    if record is not None and record.exit is not None:
        return True
    # Also if the process has just ended: then its supervisor is about to write that.
    return tree.is_running(entries.supervisor)


def _termination(token: str, *journals: Entries) -> Termination | None:
    """Why a worker that is dead was terminating the run: that has to continue, since the process may have received a signal, or ended by
    it. None if none was, or if the run had ended by itself before."""
    record = journals[0].runs.get(token)
    ended_at = math.inf if record is None or record.exit is None else record.exit.at
    begun = [found for entries in journals for found in entries.terminations.get(token, ()) if found.at <= ended_at]
    return min(begun, key=lambda one: (one.reason != LOST, one.at)) if begun else None


def _journal_of(worker: Worker, record: Record, entries: Entries) -> str:
    """The file in which the end of the run is written."""
    if record.journal is not None:  # the dead worker had adopted it itself
        return os.path.join(os.path.dirname(paths.runs_file(worker.home, worker.id)), record.journal)
    return _kept_journal(worker, entries)


def journal_of(worker: Worker, token: str, entries: Entries) -> str:
    """The journal that the supervisor of a run writes: that of its worker, whose `entries` these are, unless the run was adopted."""
    record = entries.runs.get(token) or _record_in_kept_journal(worker.home, token)
    own = paths.runs_file(worker.home, worker.id)
    if record is not None and record.journal is not None:
        return os.path.join(os.path.dirname(own), record.journal)
    # `hand_over` renames it.
    kept = _kept_journal(worker, entries)
    return kept if os.path.exists(kept) and not os.path.exists(own) else own


def _record_in_kept_journal(home: str, token: str) -> Record | None:
    """From the journal of an earlier worker: the last one died before it could note in its own that it had adopted the run."""
    folder = os.path.dirname(paths.runs_file(home, ""))
    try:
        names = os.listdir(folder)
    except OSError:  # the data directory is gone, or belongs to another user
        return None
    for name in names:
        if name.endswith(paths.KEPT) and (found := read_journal(os.path.join(folder, name)).runs.get(token)):
            return found if found.journal is not None else found._replace(journal=name)
    return None


def _kept_journal(worker: Worker, entries: Entries) -> str:
    return paths.kept_file(worker.home, worker.id, entries.supervisor.pid if entries.supervisor else 0)
