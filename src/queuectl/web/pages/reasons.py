"""Why a job is not running, in the terms of the pages: what is so, and where on a page something can be done about it."""

from __future__ import annotations

from typing import NamedTuple

from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.job.reason import Wait
from queuectl.queue.explain import Reason
from queuectl.web.pages.wording import moments, part


class Told(NamedTuple):
    text: str
    label: str = ""
    url: str = ""  # where there is more about it
    resumes: str = ""  # the queue that has to be let go on


def told(reason: Reason, job: Job) -> Told:
    saying = moments(reason.saying) + "."
    match reason.code:
        case Wait.PAUSED:
            return Told(saying, "Queues", "/queues", resumes=job.queue)
        case Wait.HELD if job.cron is not None:
            return Told(saying, "The schedule", f"/cron#{part(job.cron)}")
        case Wait.HELD:
            return Told(f"{saying} Release lets it go on.")
        case Wait.FULL | Wait.RATE | Wait.KEY:
            return Told(saying, "Its limits", "/queues")
        case "no-worker" | Wait.UNSERVED | "slots-busy" | "next":
            return Told(saying, "Workers", "/workers")
        case "behind-others":
            return Told(saying, "Pending jobs", f"/jobs?state=pending&queue={part(job.queue)}")
        case "worker-lost":
            return Told(f"{saying} Another worker sees to it, or the next one that is started.", "Workers", "/workers")
        case State.DEAD | State.CANCELLED:
            return Told(f"{saying} Retry gives it another chance.")
        case _:
            return Told(saying)
