"""The dashboard as these tests see it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from tests.program import Program
from tests.wait import wait_until

TOKEN, READER = "a-token-of-these-tests", "a-token-that-only-reads"


class Site:
    """A dashboard in a process of its own, on a home of its own."""

    def __init__(self, folder: Path, *, db: str | None = None, env: dict[str, str | None] | None = None) -> None:
        self.queuectl = Program(folder / "home", {"QUEUECTL_DB": db, **(env or {})})
        self._log = folder / "dashboard.log"
        self._tokens = folder / "tokens"
        self._tokens.write_text(f"tests full {TOKEN}\nlooker read {READER}\n")
        self._tokens.chmod(0o600)
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self, port: str = "0") -> Site:
        with self._log.open("wb") as log:
            words = ("dashboard", "--port", port, "--token-file", str(self._tokens))
            self._process = self.queuectl.start(*words, stdout=log, stderr=log)

        def said() -> re.Match[str] | None:
            return re.search(r"http://\S+:(\d+)/", self._log.read_text())

        self.url = wait_until(said, what=f"the address of the dashboard in {self._log}")[0].rstrip("/")
        return self

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    def stop(self, *, at_once: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if at_once else self._process.terminate()
            self._process.wait(20)
            self._process = None


class Watch:
    """All that a page must not do, and did."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def over(self, page: Page, site: Site) -> None:
        page.on(
            "console", lambda said: said.type in {"error", "warning"} and self.faults.append(f"console: {said.text}")
        )
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}") or dialog.dismiss())
        page.on(
            "request",
            lambda request: (
                request.url.startswith((site.url, "data:"))
                or self.faults.append(f"request to elsewhere: {request.url}")
            ),
        )


Visit = Callable[..., Page]
