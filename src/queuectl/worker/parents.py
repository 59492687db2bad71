"""Before a job runs that has waited for others: what they printed has to be where it can read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from queuectl.jobs.model import Claim
from queuectl.logs import parents as places
from queuectl.logs.log import log_exists
from queuectl.logs.stored import Fetched, StoredRun
from queuectl.store.protocol import Reads
from queuectl.store.types import OUTPUT_AT_ONCE, LatestRun
from queuectl.worker.trouble import Trouble

PROBLEM: Final = "what its parents printed could not be fetched"


class ParentLogs:
    def __init__(self, store: Reads, *, host: str, trouble: Trouble) -> None:
        self._store = store
        self._host = host
        self._trouble = trouble

    def bring(self, claims: Sequence[Claim]) -> tuple[Sequence[Claim], Sequence[Claim]]:
        """Those that can begin, and those whose parents' logs could not be had: they would run as if nothing had been printed."""
        children = [claim for claim in claims if claim.parents]
        if not children:  # most have no parents, and pay nothing
            return claims, ()
        away = sorted({parent for claim in children for parent in claim.parents if self._may_be_away(claim, parent)})
        latest = self._trouble.ask(lambda: {one.id: one for one in self._store.latest_runs(away)} if away else {})
        done = {claim.token for claim in children if latest is not None and self._bring(claim, latest)}
        ready = [claim for claim in claims if not claim.parents or claim.token in done]
        return ready, [claim for claim in children if claim.token not in done]

    def _may_be_away(self, claim: Claim, parent: str) -> bool:
        # In a store that others share, what lies here may be of an earlier run, and the last one that of another host.
        return self._store.is_shared or not log_exists(places.log_beside(claim.log, parent))

    def _bring(self, claim: Claim, latest: Mapping[str, LatestRun]) -> bool:
        found = {parent: self._find(claim, parent, latest) for parent in claim.parents}
        if all(place == places.log_beside(claim.log, parent) for parent, place in found.items()):
            return True
        if self._trouble.ask(lambda: self._put(claim, found)):
            return True
        places.remove_folder(claim.log, claim.run)
        return False

    def _find(self, claim: Claim, parent: str, latest: Mapping[str, LatestRun]) -> str | LatestRun:
        """A log that is here, or else the run. Nothing can be had of one that never ran, or was removed."""
        one = latest.get(parent)
        if one is None:
            return places.log_beside(claim.log, parent)
        is_here = one.log is not None and one.run.host == self._host and log_exists(one.log)
        return one.log if is_here and one.log is not None else one

    def _put(self, claim: Claim, found: Mapping[str, str | LatestRun]) -> bool:
        """All of them into one folder. Raises Unavailable or OSError."""
        places.remove_folders(claim.log)  # of a run that was lost
        folder = places.make_folder(claim.log, claim.run)
        for parent, place in found.items():
            path = places.log_in(folder, parent)
            if isinstance(place, LatestRun):
                places.write_log(path, self._pieces(place))
            elif log_exists(place):
                places.link_log(path, place)
        return True

    def _pieces(self, one: LatestRun) -> Iterator[bytes]:
        """What the store keeps of it, some of it at a time, between the lines of ours that a log has."""

        def fetch(start: int) -> Fetched:
            pieces = self._store.output(one.id, one.run.number, start=start)
            return Fetched(pieces, is_all=len(pieces) < OUTPUT_AT_ONCE)

        for source, span in StoredRun(fetch, markers=True).new(one.run):
            yield from source.read([span])
