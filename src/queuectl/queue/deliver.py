"""Telling somebody what became of a job: what a job of the queue `queuectl.webhooks` does."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    what = payload(reads, delivery)
    return send(reads, what, settings, url=delivery.url, said=delivery.said, version=version)


def deliver_alert(reads: Reads, facts: Mapping[str, str], settings: Settings, *, url: str, version: str) -> Answer:
    """`facts`: the variables of the alert, see job/alert.py. Raises CallRefused or CallUnanswered."""
    return send(reads, alert_payload(facts), settings, url=url, said=Said.CONFIG, version=version)


def send(reads: Reads, what: Mapping[str, Any], settings: Settings, *, url: str, said: Said, version: str) -> Answer:
    """Raises CallRefused or CallUnanswered."""
    body = json.dumps(what, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"queuectl/{version}",
        "Queuectl-Event": what["event"],
        "Queuectl-Delivery": what["id"],
    }
    if settings.webhook_secret is not None:
        headers[HEADER] = sign(body, settings.webhook_secret, at=reads.now_ms() // 1000)
    # Operators know what is in their network; who may only add jobs is not to find out by them.
    private = said is not Said.JOB or settings.webhook_allow_private
    return post(url, body, headers, private=private)


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


def alert_payload(facts: Mapping[str, str]) -> dict[str, Any]:
    """What whoever is called for an alert gets: the same each time it is tried."""

    def fact(name: str) -> str:
        return facts.get(f"QUEUECTL_ALERT_{name}", "")

    if not (fact("ID") and fact("VALUE") and fact("THRESHOLD")):
        raise InvalidInput("deliver", "this is for jobs that queuectl makes itself", hint="see alert add --webhook URL")
    return {
        "event": "alert",
        "id": fact("ID"),
        "created_at": fact("AT"),
        "alert": {
            "name": facts.get("QUEUECTL_ALERT", ""),
            "state": fact("STATE"),
            "kind": fact("KIND"),
            "queue": fact("QUEUE") or None,
            "value": json.loads(fact("VALUE")),
            "threshold": json.loads(fact("THRESHOLD")),
            "text": fact("TEXT"),
        },
    }
