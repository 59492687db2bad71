"""Text that is safe on a terminal, see job/printable.py, by the name that commands know it by."""

from __future__ import annotations

from queuectl.job.printable import printable as printable
from queuectl.job.printable import printable_json as printable_json
