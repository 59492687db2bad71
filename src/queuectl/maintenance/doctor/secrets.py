"""The secrets of this home: could a worker have them, and nobody else?"""

from __future__ import annotations

import os

from queuectl import paths as places
from queuectl.maintenance.doctor.finding import Patient, Seen, count, problem
from queuectl.secrets.files import names, unusable
from queuectl.secrets.provider import load_provider


def secrets(patient: Patient) -> Seen:
    found, asked = names(patient.home), os.path.lexists(places.secrets_settings(patient.home))
    if not found and not asked:
        return Seen("there are none in this home")
    # Whom its workers run as.
    user = os.stat(patient.home).st_uid
    findings = [problem(error.code, error.message, error.hint) for _, error in unusable(patient.home, user=user)]
    provider = load_provider(patient.home, "any", user=user)
    others = "" if provider is None else f"; {provider.command[0]} is asked for others"
    return Seen(f"{count(len(found), 'secret')} in {places.secrets(patient.home)}{others}", findings)
