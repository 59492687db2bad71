"""Points for charts in PostgreSQL. See store/sampling.py."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.job.points import ALL, Point, Span, is_due
from queuectl.store.measures import Histogram
from queuectl.store.postgres.base import PostgresBase
from queuectl.store.postgres.connection import SNAPSHOT, SQL, Question
from queuectl.store.postgres.trouble import run_again
from queuectl.store.sampling import ATTEMPTS, EVER, Answers, Sampling, histograms_of, point_of, points_asked, sampled


class PostgresSampleReads(PostgresBase):
    def points(self, span: Span, *, since_ms: int, queue: str = ALL) -> list[Point]:
        (found,) = self._db.ask(Question(SQL["points"], {"span": span.value, "since": since_ms, "queue": queue}))
        return [point_of(row) for row in found]

    def histograms(self) -> dict[str, tuple[Histogram, Histogram]]:
        # As they are at one moment: else the times of a job that is removed meanwhile would come twice, or not at all.
        with self._db.transaction(Question(SQL["sampling"]), begin=SNAPSHOT) as (found,):
            since = Sampling.of(found).since(self._clock.now_ms())
            counted, measured = self._db.ask(
                Question(SQL["buckets"]), Question(SQL["measured"], {"since": since, "until": EVER})
            )
        return histograms_of(counted + measured)


class PostgresSamples(PostgresSampleReads):
    def sample(self) -> bool:
        for _ in range(ATTEMPTS):
            (found,) = self._db.ask(Question(SQL["sampling"]))
            sampling, now = Sampling.of(found), self._clock.now_ms()
            if not is_due(sampling.last_ms, now):
                return False
            if self._sample(sampling, now):
                return True
        return False

    @run_again
    def _sample(self, sampling: Sampling, now: int) -> bool:
        since, until = sampling.window(now)
        answers = self._db.ask(
            Question(SQL["moves"]),
            Question(SQL["tally"]),
            Question(SQL["oldest_waiting"], {"now": now}),
            Question(SQL["counters"]),
            Question(SQL["measured"], {"since": since, "until": until}),
            Question(SQL["first_created"]),
            *(Question(SQL["points_of"], values) for values in points_asked(now)),
        )
        sample = sampled(sampling, Answers(*answers), now_ms=now)
        with self._db.transaction():
            if not self._db.execute(SQL["note_sample"], sample.note_sample):
                return False
            for name in ("add_to_bucket", "set_counters", "put_point", "thin_points"):
                for values in getattr(sample, name):
                    self._db.later(SQL[name], values)
        return True


def counting_out(ids: Sequence[str] | None, *, before_ms: int) -> list[Question]:
    """To be asked in a transaction, before these jobs are removed."""
    chosen = None if ids is None else list(ids)
    return [
        Question(SQL["note_removal"], {"before": before_ms}),
        Question(SQL["count_out"], {"ids": chosen, "before": before_ms}),
    ]
