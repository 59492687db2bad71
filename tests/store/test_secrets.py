"""Which secrets a job asks for: by name, from its enqueue to the hands of a worker."""

from __future__ import annotations

from queuectl.jobs.edit import JobEdit
from queuectl.store.store import Store
from queuectl.store.types import Filter
from tests.factories import new_job
from tests.store.conftest import Hire

NAMES = ("A", "TOKEN=api-token")


def test_a_worker_gets_the_names_and_nothing_else(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("with", secrets=NAMES), new_job("without")])
    worker = hire()
    claims = {claim.id: claim.secrets for claim in worker.claim(2)}
    assert claims == {"with": NAMES, "without": ()}
    assert store.get("with").secrets == NAMES
    assert store.get("without").secrets == ()


def test_many_at_once_keep_them_too(store: Store) -> None:
    store.enqueue([new_job(secrets=NAMES if n % 2 else ()) for n in range(20)])
    assert sorted(job.secrets for job in store.jobs(Filter())) == [()] * 10 + [NAMES] * 10


def test_an_edit_replaces_them_or_takes_them_away(store: Store) -> None:
    (job_id,) = store.enqueue([new_job(secrets=NAMES)])
    store.edit([job_id], JobEdit(priority=3))
    assert store.get(job_id).secrets == NAMES
    store.edit([job_id], JobEdit(secrets=("B",)))
    assert store.get(job_id).secrets == ("B",)
    store.edit([job_id], JobEdit(secrets=()))
    assert store.get(job_id).secrets == ()
