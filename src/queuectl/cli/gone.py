"""Output that is gone, said where what is printed has to be exactly what is left."""

from __future__ import annotations

from queuectl.cli.app import App
from queuectl.cli.printable import printable


def tell_gone(app: App, job_id: str, count: int, limit: str) -> None:
    app.warn(f"{printable(job_id)}: {count} bytes of earlier output are gone ({printable(limit)})")
