"""The secrets of this home: could a worker have them, and nobody else?"""

from __future__ import annotations

import os

from queuectl import home as places
from queuectl.secrets.files import names, unusable
from queuectl.secrets.teller import teller_of
from queuectl.upkeep.doctor.finding import Patient, Seen, count, problem


def secrets(patient: Patient) -> Seen:
    found, asked = names(patient.home), os.path.lexists(places.secrets_settings(patient.home))
    if not found and not asked:
        return Seen("there are none in this home")
    # Whom its workers run as.
    user = os.stat(patient.home).st_uid
    findings = [problem(error.code, error.message, error.hint) for _, error in unusable(patient.home, user=user)]
    teller = teller_of(patient.home, "of whichever name", user=user)
    told = "" if teller is None else f"; {teller.command[0]} is asked for others"
    return Seen(f"{count(len(found), 'secret')} in {places.secrets(patient.home)}{told}", findings)
