"""The search field on top of every page: the ID of a job leads to the job, any other text to the jobs with it in their command."""

from __future__ import annotations

from typing import Final

from queuectl.errors import Conflict, NotFound
from queuectl.job.names import is_valid_id
from queuectl.queue.pick import find as find_jobs
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, with_query
from queuectl.web.pages.wording import part

# Among 200,000 random IDs some begin with any given word of 3 or 4 letters. Longer text with a digit in it is not a word.
SHORTEST_PREFIX: Final = 6


def find(desk: Desk, ask: Ask) -> Done:
    wanted = ask.query.one("q")
    if wanted is None:
        return Done("/jobs")
    job_id = _job_id(desk, wanted)
    return Done(with_query("/jobs", [("match", wanted)]) if job_id is None else f"/jobs/{part(job_id)}")


def _job_id(desk: Desk, wanted: str) -> str | None:
    if not is_valid_id(wanted):
        return None
    if wanted in find_jobs(desk.reads, [wanted]):
        return wanted
    if len(wanted) < SHORTEST_PREFIX or not any(map(str.isdigit, wanted)):
        return None
    try:
        return desk.reads.resolve(wanted)
    except (NotFound, Conflict):
        return None
