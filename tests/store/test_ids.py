"""Names made by chance."""

from __future__ import annotations

import re

from queuectl.store.enqueue import new_job_ids, new_tokens, new_worker_id


def test_names_have_their_documented_forms() -> None:
    assert all(re.fullmatch("[a-z][a-z0-9]{9}", job_id) for job_id in new_job_ids(1000))
    assert re.fullmatch("w-[a-z0-9]{5}", new_worker_id())
    assert re.fullmatch("[0-9a-f]{24}", new_tokens(1)[0])


def test_names_do_not_come_twice() -> None:
    assert len(set(new_job_ids(10_000))) == 10_000
    assert len(set(new_tokens(1000))) == 1000


def test_no_name_at_all_can_be_asked_for() -> None:
    assert new_job_ids(0) == []
