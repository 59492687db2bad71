"""Which jobs a page is about: filters as they stand in its address."""

from __future__ import annotations

from typing import NamedTuple

from queuectl.store.protocol import Filter, Reads
from queuectl.web.api.words import SELECTORS, to_filter
from queuectl.web.pages.asked import Fields, Pairs, with_query


class Selecting(NamedTuple):
    """The words of it, which may be wrong; `where` reads them."""

    fields: Fields

    @classmethod
    def of(cls, fields: Fields) -> Selecting:
        return cls(Fields([(param.name, value) for param in SELECTORS for value in fields.all(param.name)]))

    @property
    def pairs(self) -> Pairs:
        return self.fields.pairs

    def all(self, name: str) -> tuple[str, ...]:
        return self.fields.all(name)

    def one(self, name: str) -> str:
        return self.fields.one(name) or ""

    @property
    def is_narrowed(self) -> bool:
        """By more than the state, which has a row of its own on the page."""
        return any(name != "state" for name, _ in self.pairs)

    def where(self, reads: Reads) -> Filter:
        """Raises UsageError."""
        said = {param.name: self.all(param.name) if param.many else self.fields.one(param.name) for param in SELECTORS}
        return to_filter(said, reads)

    def but(self, name: str, *values: str, more: Pairs = ()) -> str:
        """The address of the list with other values for one of them."""
        kept = [pair for pair in self.pairs if pair[0] != name]
        return with_query("/jobs", [*((name, value) for value in values), *kept, *more])

    def without(self, name: str, value: str, *, more: Pairs = ()) -> str:
        return with_query("/jobs", [*(pair for pair in self.pairs if pair != (name, value)), *more])
