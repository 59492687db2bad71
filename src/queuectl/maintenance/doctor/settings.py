"""The settings: can what is set be in force?"""

from __future__ import annotations

from queuectl.config import faults
from queuectl.maintenance.doctor.finding import Patient, Seen, problem


def settings(patient: Patient) -> Seen:
    stored = {} if patient.store is None else patient.store.config()
    found = faults(stored, patient.environ)
    return Seen("all can be in force", [problem("setting-invalid", error.message, error.hint) for error in found])
