"""Telling somebody what became of a job: what a job of the queue `queuectl.webhooks` does."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from queuectl.errors import InvalidInput, JobNotFound
from queuectl.hooks.send import Answer, post
from queuectl.hooks.signature import HEADER, sign
from queuectl.job.hooks import Happening, Said, parse_url
from queuectl.job.settings import Settings
from queuectl.store.protocol import Reads


class Delivery(NamedTuple):
    id: str  # the same each time it is tried
    happening: Happening
    job: str
    run: int
    url: str
    said: Said


def read_delivery(happening: str, job: str, run: str, *, id_: str, url: str | None, said: str | None) -> Delivery:
    """From the words and the variables of the job. Raises InvalidInput."""
    if happening not in list(Happening) or said not in list(Said) or not run.isdecimal():
        raise InvalidInput("deliver", "this is for jobs that queuectl makes itself", hint="see enqueue --on-dead URL")
    return Delivery(id_, Happening(happening), job, int(run), parse_url(url, "the URL"), Said(said))


def deliver(reads: Reads, delivery: Delivery, settings: Settings, *, version: str) -> Answer:
    """Raises CallRefused or CallUnanswered."""
    body = json.dumps(payload(reads, delivery), ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"queuectl/{version}",
        "Queuectl-Event": delivery.happening.value,
        "Queuectl-Delivery": delivery.id,
    }
    if settings.webhook_secret is not None:
        headers[HEADER] = sign(body, settings.webhook_secret, at=reads.now_ms() // 1000)
    # Operators know what is in their network; who may only add jobs is not to find out by them.
    private = delivery.said is not Said.JOB or settings.webhook_allow_private
    return post(delivery.url, body, headers, private=private)


def payload(reads: Reads, delivery: Delivery) -> dict[str, Any]:
    """The job as it is by now, and the run that this is about as it ended; null for what has been removed since."""
    try:
        job: dict[str, Any] | None = reads.get(delivery.job).to_dict()
        runs = [run.to_dict() for run in reads.history(delivery.job) if run.number == delivery.run]
    except JobNotFound:
        job, runs = None, []
    if job is not None:
        del job["env"]
    return {
        "event": delivery.happening.value,
        "id": delivery.id,
        "created_at": reads.get(delivery.id).to_dict()["created_at"],
        "job_id": delivery.job,
        "job": job,
        "run": runs[0] if runs else None,
    }
