"""Which jobs a page is about: filters as they stand in its address."""

from __future__ import annotations

from typing import Final, NamedTuple

from queuectl.queue.filters import parse_filter
from queuectl.store.protocol import Filter, Reads
from queuectl.web.pages.asked import Fields, Pairs, with_query

NAMES: Final = ("state", "queue", "tag", "batch", "since", "match")
_MANY: Final = ("state", "queue", "tag", "batch")


class Selecting(NamedTuple):
    """The words of it, which may be wrong; `where` reads them."""

    fields: Fields

    @classmethod
    def of(cls, fields: Fields) -> Selecting:
        return cls(Fields([(name, value) for name in NAMES for value in fields.all(name)]))

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
        many = {name: self.all(name) for name in _MANY}
        return parse_filter(
            states=many["state"],
            queues=many["queue"],
            tags=many["tag"],
            batches=many["batch"],
            since=self.fields.one("since"),
            match=self.fields.one("match"),
            now_ms=reads.now_ms,
        )

    def but(self, name: str, *values: str, more: Pairs = ()) -> str:
        """The address of the list with other values for one of them."""
        kept = [pair for pair in self.pairs if pair[0] != name]
        return with_query("/jobs", [*((name, value) for value in values), *kept, *more])

    def without(self, name: str, value: str, *, more: Pairs = ()) -> str:
        return with_query("/jobs", [*(pair for pair in self.pairs if pair != (name, value)), *more])
