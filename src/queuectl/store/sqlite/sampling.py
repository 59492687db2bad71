"""Points for charts in a SQLite file. See store/sampling.py."""

from __future__ import annotations

from queuectl.job.points import ALL, Point, Span, is_due
from queuectl.store.measures import Histogram
from queuectl.store.sampling import ATTEMPTS, EVER, Answers, Sampling, histograms_of, point_of, points_asked, sampled
from queuectl.store.sqlite.base import SQL, SqliteBase


class SqliteSampleReads(SqliteBase):
    def points(self, span: Span, *, since_ms: int, queue: str = ALL) -> list[Point]:
        values = {"span": span.value, "since": since_ms, "queue": queue}
        return [point_of(row) for row in self._db.all(SQL["points"], values)]

    def histograms(self) -> dict[str, tuple[Histogram, Histogram]]:
        with self._db.snapshot():
            since = self._sampling().since(self._clock.now_ms())
            counted = self._db.all(SQL["buckets"])
            counted += self._db.all(SQL["measured"], {"since": since, "until": EVER})
        return histograms_of(counted)

    def _sampling(self) -> Sampling:
        return Sampling.of(self._db.all(SQL["sampling"]))


class SqliteSamples(SqliteSampleReads):
    def sample(self) -> bool:
        for _ in range(ATTEMPTS):
            sampling, now = self._sampling(), self._clock.now_ms()
            if not is_due(sampling.last_ms, now):
                return False
            if self._sample(sampling, now):
                return True
        return False

    def _sample(self, sampling: Sampling, now: int) -> bool:
        since, until = sampling.window(now)
        with self._db.snapshot():
            answers = Answers(
                self._db.all(SQL["moves"]),
                self._db.all(SQL["tally"]),
                self._db.all(SQL["oldest_waiting"], {"now": now}),
                self._db.all(SQL["counters"]),
                self._db.all(SQL["measured"], {"since": since, "until": until}),
                self._db.all(SQL["first_created"]),
                *(self._db.all(SQL["points_of"], values) for values in points_asked(now)),
            )
        sample = sampled(sampling, answers, now_ms=now)
        with self._db.transaction():
            if not self._db.execute(SQL["note_sample"], sample.note_sample).rowcount:
                return False
            for name in ("add_to_bucket", "set_counters", "put_point", "thin_points"):
                self._db.executemany(SQL[name], getattr(sample, name))
        return True

    def _counted_until(self, before_ms: int) -> int | None:
        """Within a transaction that is about to remove jobs that ended by then: up to which end their times are in `buckets`. None:
        all of them are."""
        if not self._db.execute(SQL["note_removal"], {"before": before_ms}).rowcount:
            return None
        return self._sampling().until_ms

    def _count_out(self) -> None:
        """Within a transaction that is about to remove all jobs."""
        since = self._counted_until(EVER)
        if since is not None:
            measured = self._db.all(SQL["measured"], {"since": since, "until": EVER})
            self._db.executemany(SQL["add_to_bucket"], measured)
