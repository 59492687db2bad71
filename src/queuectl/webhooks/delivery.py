"""Webhook deliveries: build, sign and send the payload, as a job of the queue `queuectl.webhooks` does; and enqueue such jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.errors import InvalidInput, JobNotFound
from queuectl.settings import Settings
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.webhooks.rules import Origin, WebhookEvent, parse_url

if TYPE_CHECKING:
    from queuectl.webhooks.client import Response


class DeliveryRequest(NamedTuple):
    id: str  # the same for every attempt
    event: WebhookEvent
    job: str
    run: int
    url: str
    origin: Origin


def parse_delivery(event: str, job: str, run: str, *, id_: str, url: str | None, origin: str | None) -> DeliveryRequest:
    """Parse the arguments and the environment of a delivery job. Raises InvalidInput."""
    if event not in list(WebhookEvent) or origin not in list(Origin) or not run.isdecimal():
        raise InvalidInput(
            "deliver", "this command is for jobs that queuectl creates itself", hint="see enqueue --on-dead URL"
        )
    return DeliveryRequest(id_, WebhookEvent(event), job, int(run), parse_url(url, "the URL"), Origin(origin))


def deliver(reads: Reads, delivery: DeliveryRequest, settings: Settings, *, version: str) -> Response:
    """Raises WebhookRefused or WebhookUnanswered."""
    what = payload(reads, delivery)
    return send(reads, what, settings, url=delivery.url, origin=delivery.origin, version=version)


def deliver_alert(reads: Reads, facts: Mapping[str, str], settings: Settings, *, url: str, version: str) -> Response:
    """`facts`: the variables of the notification, see alerts/rules.py. Raises WebhookRefused or WebhookUnanswered."""
    return send(reads, alert_payload(facts), settings, url=url, origin=Origin.CONFIG, version=version)


def send(
    reads: Reads, what: Mapping[str, Any], settings: Settings, *, url: str, origin: Origin, version: str
) -> Response:
    """Raises WebhookRefused or WebhookUnanswered."""
    from queuectl.webhooks.client import SIGNATURE_HEADER, post, sign  # here, since http.client takes 10 ms to load

    body = json.dumps(what, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"queuectl/{version}",
        "Queuectl-Event": what["event"],
        "Queuectl-Delivery": what["id"],
    }
    if settings.webhook_secret is not None:
        headers[SIGNATURE_HEADER] = sign(body, settings.webhook_secret, at=reads.now_ms() // 1000)
    # Only operators may send requests into the private network, not users who can merely enqueue jobs.
    private = origin is not Origin.JOB or settings.webhook_allow_private
    return post(url, body, headers, private=private)


def payload(reads: Reads, delivery: DeliveryRequest) -> dict[str, Any]:
    """The current job, and the run that triggered the delivery; null if it has been removed since."""
    try:
        job: dict[str, Any] | None = reads.get(delivery.job).to_dict()
        runs = [run.to_dict() for run in reads.history(delivery.job) if run.number == delivery.run]
    except JobNotFound:
        job, runs = None, []
    if job is not None:
        del job["env"]
    return {
        "event": delivery.event.value,
        "id": delivery.id,
        "created_at": reads.get(delivery.id).to_dict()["created_at"],
        "job_id": delivery.job,
        "job": job,
        "run": runs[0] if runs else None,
    }


def alert_payload(facts: Mapping[str, str]) -> dict[str, Any]:
    """The payload of an alert notification, the same for every attempt."""

    def fact(name: str) -> str:
        return facts.get(f"QUEUECTL_ALERT_{name}", "")

    if not (fact("ID") and fact("VALUE") and fact("THRESHOLD")):
        raise InvalidInput(
            "deliver", "this command is for jobs that queuectl creates itself", hint="see alert add --webhook URL"
        )
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


CHECK_INTERVAL: Final = 1.0


class WebhookTask:
    adds_work: Final = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self, now: float) -> float:
        return now if self._store.webhooks.enqueue() else now + CHECK_INTERVAL
