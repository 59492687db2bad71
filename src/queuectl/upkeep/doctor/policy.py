"""The policy of this home: can it be relied on, and can it be walked around?"""

from __future__ import annotations

import os

from queuectl.policy.file import place_of, read_policy
from queuectl.policy.weak import weaknesses
from queuectl.upkeep.doctor.finding import Patient, Seen, note, problem


def policy(patient: Patient) -> Seen:
    path = place_of(patient.home)
    if not os.path.lexists(path):
        return Seen("there is none: a worker runs whatever is enqueued")
    # Whom its workers run as.
    user = os.stat(patient.home).st_uid
    found = read_policy(path, user=user)
    findings = [
        (problem if weak.is_open else note)(weak.code, f"{weak.rule}: {weak.message}", weak.hint)
        for weak in weaknesses(found.policy, user=user)
    ]
    return Seen(f"{path} holds", findings)
