"""Where jobs come in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from queuectl import errors
from queuectl.job.lifecycle import State
from queuectl.job.newjob import NewJob
from queuectl.job.rank import Ageing
from queuectl.store.auditing import added
from queuectl.store.counting import OUTSIDE, Moves
from queuectl.store.entry import (
    NOBODY,
    Enqueued,
    Wave,
    arrivals,
    batches_of,
    beyond,
    lined_up,
    new_rows,
    replacements,
    shares_keys,
    tag_rows,
)
from queuectl.store.ids import new_job_ids
from queuectl.store.linking import Entering, Links, Parent, link
from queuectl.store.postgres.base import PostgresBase, read_ageing
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Question
from queuectl.store.postgres.session import Row
from queuectl.store.postgres.trouble import ConnectionLost, Taken, run_again
from queuectl.store.requests import KEPT_MS, Request, answer_to, pack

if TYPE_CHECKING:
    from queuectl.store.unique import Plan

FEW: Final = 20  # rows that are sent one by one, along with the commit: a stream takes two round trips of its own
MANY: Final = 10_000  # jobs in one call that may take longer than a command does


class PostgresInbox(PostgresBase):
    @run_again
    def enqueue(
        self, jobs: Sequence[NewJob], *, on_complete: NewJob | None = None, idempotency: Request | None = None
    ) -> Enqueued:
        """As in the protocol. If the connection is lost before the answer, StoreUnreachable is `in_doubt`: the jobs may be in,
        all or none. Its hint says how to find out; whoever gives them ids gets DuplicateId when trying again."""
        made = iter(new_job_ids(sum(job.id is None for job in jobs)))
        ids: Sequence[str] = [next(made) if job.id is None else job.id for job in jobs]
        answer = Enqueued(ids)
        if not jobs:
            return answer
        seconds = None if len(jobs) < MANY else LONG_SECONDS
        given = [job.id for job in jobs if job.id is not None]
        # Places are taken at once if nothing else can refuse these jobs: that saves a round trip.
        is_plain = (
            idempotency is None
            and not any(job.unique_key is not None or job.depends_on for job in jobs)
            and len(set(ids)) == len(ids)
        )
        first = [Question(SQL["hold_ageing"]), *(_take(given, len(ids)) if is_plain else ())]
        plan: Plan | None = None
        try:
            with self._db.transaction(*first, after=self._ring(), seconds=seconds) as (_, *answers):
                moves, now = Moves(), self._clock.now_ms()
                if idempotency is not None and (earlier := self._answer_to(idempotency, now_ms=now)) is not None:
                    return earlier
                if any(job.unique_key is not None for job in jobs):
                    from queuectl.store.postgres import unique

                    plan = unique.plan(self._db, jobs, ids, now_ms=now)
                    answer, ids, given = plan.answer, plan.ids, plan.given_ids
                if twice := next((id_ for id_, times in Counter(ids).items() if times > 1), None):
                    raise errors.DuplicateId(twice)
                links: Links | None = None
                if any(job.depends_on for job in jobs):
                    links = self._links(Entering(jobs, ids) if plan is None else plan.entering)
                rule, seqs = self._places(given, answers or self._db.ask(*_take(given, len(ids))))
                blocked = () if links is None else links.blocked()
                if plan is None:
                    self._insert(Wave(jobs, ids, seqs), moves, now_ms=now, ageing=rule, blocked=blocked)
                else:
                    from queuectl.store.postgres import unique

                    for wave in plan.waves(seqs):
                        unique.replace(self._db, wave.replaced, moves, now_ms=now, ageing=rule)
                        self._insert(wave, moves, now_ms=now, ageing=rule, blocked=blocked)
                if links is not None:
                    self._block(links, dict(zip(ids, seqs, strict=True)))
                if on_complete is not None and on_complete.batch is not None:
                    self._complete_with(on_complete, on_complete.batch, now_ms=now)
                if idempotency is not None:
                    self._db.later(SQL["keep_request"], {"key": idempotency[0], "answer": pack(answer)})
                self._count(moves)
                if self.actor is not None:
                    self._record(added(jobs, ids))
        except Taken as exc:
            # Somebody was faster with one of these ids.
            (found,) = self._db.ask(Question(SQL["duplicate"], {"ids": ids}))
            if not found:
                raise
            raise errors.DuplicateId(found[0][0]) from exc
        except ConnectionLost as exc:
            raise _in_doubt(exc, ids) from exc
        if plan is not None and plan.replaced:
            from queuectl.store.postgres.edges import PostgresEdges

            PostgresEdges(self._db).try_to_settle_children()  # some may have waited for one of them
        return answer

    def _answer_to(self, request: Request, *, now_ms: int) -> Enqueued | None:
        """Within a transaction: what was answered to the same request, if it came before. Else its key is ours."""
        key, digest = request
        values = {"key": key, "digest": digest, "now": now_ms, "before": now_ms - KEPT_MS}
        if self._db.all(SQL["take_request"], values):
            return None
        # A statement of its own: it sees what was committed while we waited.
        row = self._db.one(SQL["request"], {"key": key})
        return None if row is None else answer_to(request, *row)

    def _add(
        self, jobs: Sequence[NewJob], ids: Sequence[str], moves: Moves, *, replaced: Mapping[str, str] = NOBODY
    ) -> None:
        """Jobs whose keys are free, within a transaction that holds hold_ageing.sql, or will be: `replaced` has to make way, by
        the id of who comes."""
        given = [job.id for job in jobs if job.id is not None]
        ageing, seqs = self._places(given, self._db.ask(*_take(given, len(jobs))))
        now = self._clock.now_ms()
        if gone := replacements(ids, seqs, replaced):
            from queuectl.store.postgres import unique

            unique.replace(self._db, gone, moves, now_ms=now, ageing=ageing)
        self._insert(Wave(jobs, ids, seqs), moves, now_ms=now, ageing=ageing)

    def _places(self, given: Sequence[str], answers: Sequence[list[Row]]) -> tuple[Ageing, Sequence[int]]:
        """`answers`: to the questions of `_take`."""
        ageing, places = answers
        if (seqs := places[0][0]) is None:
            raise errors.DuplicateId(self._db.value(SQL["duplicate"], {"ids": given}))
        return read_ageing(ageing[0][0] if ageing else None), seqs

    def _links(self, batch: Entering) -> Links:
        """Within a transaction, before a sequence number is taken: a batch that is refused must not count as enqueues."""
        found = self._db.all(SQL["new_parents"], {"ids": batch.outside()})
        return link(batch, {id_: Parent(seq, State(state)) for id_, seq, state in found})

    def _block(self, links: Links, new: Mapping[str, int]) -> None:
        """Within a transaction, when all of them are in. `new`: their sequence numbers."""
        seqs, blocked, said = map(list, zip(*links.said(new), strict=True))
        self._db.execute(SQL["block"], {"seqs": seqs, "blocked": blocked, "said": said})
        self._db.copy(SQL["link"], links.edges(new))
        # One that ends at this moment cannot see yet who waits for it.
        self._db.copy(SQL["leave_undecided"], ((parent.seq,) for parent in links.parents.values()))

    def _insert(self, wave: Wave, moves: Moves, *, now_ms: int, ageing: Ageing, blocked: Collection[str] = ()) -> None:
        """`blocked`: the ids of those that `_block` will be told of."""
        jobs, ids = wave.jobs, wave.ids
        due = lined_up(jobs, ids, blocked)
        aside = beyond(due, dict(self._db.all(SQL["per_key"]))) if shares_keys(due) else frozenset()
        entering = new_rows(wave, now_ms=now_ms, ageing=ageing, aside=aside)
        self._put_in(entering, len(jobs), one=SQL["enqueue"], many=SQL["enqueue_many"])
        if tags := sum(len(job.tags) for job in jobs):
            self._put_in(tag_rows(wave), tags, one=SQL["tag"], many=SQL["tag_many"])
        for queue, state, count in arrivals(jobs, ids, blocked):
            moves.add(queue, OUTSIDE, state, jobs=count)
        for batch, count in batches_of(jobs):
            self._join(batch, count, now_ms=now_ms)
        self._admit(sorted({(jobs[at].queue, str(jobs[at].key)) for at in aside}))

    def _put_in(self, new: Iterable[Row], count: int, *, one: str, many: str) -> None:
        """`one`: the statement for a single row; `many`: for a stream of them."""
        if count > FEW:
            self._db.copy(many, new)
            return
        for row in new:
            self._db.later(one, row)

    def _join(self, batch: str, jobs: int, *, now_ms: int) -> None:
        if self._db.value(SQL["join_batch"], {"name": batch, "jobs": jobs, "now": now_ms}) is not None:
            from queuectl.errors import BatchComplete

            raise BatchComplete(batch)

    def _complete_with(self, job: NewJob, batch: str, *, now_ms: int) -> None:
        from queuectl.errors import BatchDiffers
        from queuectl.store.batches import pack_job

        self._join(batch, 0, now_ms=now_ms)
        if not self._db.execute(SQL["set_on_complete"], {"name": batch, "job": pack_job(job)}):
            raise BatchDiffers(batch)


def _take(given: Sequence[str], jobs: int) -> tuple[Question, Question]:
    """How jobs are ranked, and places for so many."""
    return Question(SQL["ageing"]), Question(SQL["take_places"], {"ids": given, "jobs": jobs})


def _in_doubt(exc: ConnectionLost, ids: Sequence[str]) -> errors.StoreUnreachable:
    what = "whether the job is queued" if len(ids) == 1 else f"whether the {len(ids):,} jobs are queued, all or none,"
    hint = f"{what} is not known: queuectl show {ids[0]} finds it once the server is back; only if not, enqueue again"
    return errors.StoreUnreachable(exc.path, exc.problem, hint=hint, in_doubt=True)
