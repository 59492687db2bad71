"""The audit: are its newest records as they were written?"""

from __future__ import annotations

from itertools import islice
from typing import Final

from queuectl.job.audit import Ends, Entry, Fault, Link, faults
from queuectl.upkeep.doctor.finding import Patient, Seen, count, problem

MOST: Final = 10_000  # records: `audit verify` looks at all of them


def audit(patient: Patient) -> Seen:
    store = patient.opened
    end = store.audit_ends().head
    there = (entry for entry in store.audit(newest=True) if entry.seq <= end.seq)  # others came meanwhile
    # Newest first, each with the one before it: so no more than two have to be in memory.
    later: list[Entry] = []
    found: list[Fault] = []
    looked = 0
    for entry in islice(there, MOST + 1):
        here = Link(entry.seq, entry.hash)
        found += faults(later, Ends(here, end))
        later, end, looked = [entry], here, looked + 1
    is_all = looked <= MOST
    base = store.audit_ends().base
    if is_all and (not later or end.seq > base.seq):  # else its beginning was forgotten meanwhile
        found += faults(later, Ends(base, end))
    if found:
        more = f", and {len(found) - 1:,} more like that" if len(found) > 1 else ""
        hint = "all of it: queuectl audit verify; a backup may have what was written"
        return Seen("", [problem("audit-changed", f"{found[-1].what}{more}", hint)])
    words = count(looked, "record") if is_all else f"the last {MOST:,} records"
    return Seen(f"{words}, as they were written")
