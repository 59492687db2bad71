"""SQL lives in files, one statement each, read once when first asked for."""

from __future__ import annotations

import os


class Statements(dict[str, str]):
    """The statements of one dialect: `statements["claim"]` is the text of `queries/claim.sql`."""

    def __init__(self, package_file: str) -> None:
        super().__init__()
        # Not importlib.resources: it costs more to import than everything else that `enqueue` does.
        self._folder = os.path.join(os.path.dirname(package_file), "queries")

    def __missing__(self, name: str) -> str:
        with open(os.path.join(self._folder, f"{name}.sql"), encoding="utf-8") as file:
            text = self[name] = file.read()
        return text

    def read_all(self) -> None:
        """For whoever stays: what it needs later must neither want a descriptor nor be that of another version."""
        for name in os.listdir(self._folder):
            self[name.removesuffix(".sql")]


class BareStatements(Statements):
    """Without comments and indentation."""

    def __missing__(self, name: str) -> str:
        lines = map(str.strip, super().__missing__(name).splitlines())
        text = self[name] = "\n".join(line for line in lines if not line.startswith("--"))
        return text
