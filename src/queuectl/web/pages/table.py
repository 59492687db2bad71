"""Every page, and everything that a form of theirs does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from queuectl.web.pages import act, cron, dlq, enqueue, find, job, jobs, overview, queues, settings, workers
from queuectl.web.pages.asked import Show

PAGES: Final[Mapping[str, Show]] = {
    "/": overview.show,
    "/jobs": jobs.show,
    "/jobs/{id}": job.show,
    "/act": act.preview,
    "/find": find.find,
    "/enqueue": enqueue.show,
    "/queues": queues.show,
    "/workers": workers.show,
    "/dlq": dlq.show,
    "/cron": cron.show,
    "/settings": settings.show,
}

CHANGES: Final[Mapping[str, Show]] = {
    "/act": act.do,
    "/enqueue": enqueue.add,
    "/jobs/{id}/edit": job.edit,
    "/jobs/{id}/clone": job.clone,
    "/jobs/{id}/{verb}": job.do,
    "/queues/{name}/{verb}": queues.do,
    "/workers/{id}/stop": workers.stop,
    "/dlq/{verb}": dlq.do,
    "/cron/{name}/{verb}": cron.do,
    "/settings/{key}": settings.change,
}
