"""Taking its say from a worker that is gone, or is silent and may come back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from queuectl import errors
from queuectl.job.model import Claim
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.reads import PostgresReads
from queuectl.store.postgres.trouble import Clash, run_again
from queuectl.store.protocol import Sign

NAME_BYTES: Final = 63  # what the server keeps of a name; of other characters than ASCII it keeps nothing


class PostgresFencing(PostgresReads):
    @run_again
    def fence(self, worker: str, *, sign: Sign | None = None) -> list[Claim] | None:
        """As in the protocol. A worker may have been stopped while it sent a transaction: no timeout of the server ends that
        one, and it would keep its locks, and its jobs, until the worker goes on. So it is ended first."""
        started_at, beats = sign or (None, None)
        meant = {"id": worker, "started_at": started_at, "beats": beats}
        refusal = self._end_transactions(worker, meant)
        try:
            with self._db.transaction(Question(SQL["take_worker"], {"worker": worker})):
                found = self._db.execute(SQL["fence"], meant)
                return None if sign and not found else self.running(worker)
        except errors.StoreBusy as exc:
            if refusal is None or isinstance(exc, Clash):
                raise
            raise refusal from exc

    def _end_transactions(self, worker: str, meant: Mapping[str, Any]) -> errors.StoreRefused | None:
        """What this worker has under way, and why not if that was refused: it may come to its end by itself."""
        try:
            self._db.transact([Question(SQL["end_transactions"], {**meant, "name": name_of(worker)})])
        except errors.StoreRefused:
            problem = f"worker {worker} is gone or stopped, its session is still there, and this role may not end it"
            hint = "let all workers have one role, or grant pg_signal_backend to this one"
            return errors.StoreRefused(self._db.shown, problem, hint=hint)
        return None

    @run_again
    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        take, hold = Question(SQL["take_worker"], {"worker": worker}), Question(SQL["hold_worker"], {"worker": by})
        with self._db.transaction(take, hold):
            taken = {"worker": worker, "by": by, "tokens": list(tokens)}
            return [token for (token,) in self._db.all(SQL["adopt"], taken)]


def name_of(worker: str) -> str:
    """Of the transactions of a worker: another one for each."""
    name = f"queuectl {worker}"
    if name.isascii() and len(name) <= NAME_BYTES:
        return name
    import hashlib

    return f"queuectl {hashlib.sha256(worker.encode()).hexdigest()[:40]}"
