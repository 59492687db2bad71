"""The rules of webhooks: which deliveries the end of a run triggers, and which URLs are valid.

The webhooks of a job are fixed at enqueue: those of the job, else those of its queue, else those of the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from queuectl.errors import InvalidInput
from queuectl.jobs.spec import NO_URLS, PackedHooks, Urls
from queuectl.jobs.states import Event
from queuectl.text import short_repr

if TYPE_CHECKING:
    from queuectl.jobs.outcome import Settlement

MAX_URL_LENGTH: Final = 2048
TAG: Final = "webhook"  # of delivery jobs
WORKER_SLOTS: Final = 8  # concurrent deliveries of a worker, in addition to its jobs
DELIVER_PROGRAM: Final = (
    "queuectl:webhook"  # in place of a program path, which differs between hosts, see worker/launcher.py
)
URL_VARIABLE: Final = "QUEUECTL_WEBHOOK_URL"  # in the environment of a delivery job
ORIGIN_VARIABLE: Final = "QUEUECTL_WEBHOOK_SAID"
ALERT_EVENT: Final = "alert"  # in place of a WebhookEvent


class WebhookEvent(StrEnum):
    """The events that a webhook reports. The field of a job is `on_` and this value."""

    SUCCESS = "success"  # the job is completed
    FAILURE = "failure"  # a run failed, whether or not there will be another
    DEAD = "dead"  # the job failed permanently


class Origin(StrEnum):
    """Where a webhook was set. One that was set by a job is trusted less than one of an operator."""

    JOB = "job"
    QUEUE = "queue"
    CONFIG = "config"


class Hook(NamedTuple):
    url: str
    origin: Origin


Hooks = Mapping[WebhookEvent, Hook]

_EVENTS: Final[Mapping[Event, tuple[WebhookEvent, ...]]] = {
    Event.SUCCEED: (WebhookEvent.SUCCESS,),
    Event.FAIL: (WebhookEvent.FAILURE,),
    Event.EXHAUST: (WebhookEvent.FAILURE, WebhookEvent.DEAD),
    Event.POISON: (WebhookEvent.DEAD,),  # its workers crashed too often: no run failed
    Event.REFUSE: (WebhookEvent.DEAD,),  # the policy refused it: there was no run
}


class Delivery(NamedTuple):
    """A delivery to make."""

    event: WebhookEvent
    hook: Hook


def deliveries_for(hooks: Hooks, settlement: Settlement) -> list[Delivery]:
    """The deliveries that the end of a run triggers: none if it was cancelled, released or lost."""
    events = _EVENTS.get(settlement.event, ())
    return [Delivery(one, hooks[one]) for one in events if one in hooks]


def choose_hooks(own: Urls = NO_URLS, queue: Urls = NO_URLS, all_jobs: Urls = NO_URLS) -> dict[WebhookEvent, Hook]:
    """Choose the most specific URL for each event. An empty URL disables the webhook."""
    chosen: dict[WebhookEvent, Hook] = {}
    for at, event in enumerate(WebhookEvent):
        for origin, urls in ((Origin.JOB, own), (Origin.QUEUE, queue), (Origin.CONFIG, all_jobs)):
            url = urls[at]
            if url is not None:
                if url:
                    chosen[event] = Hook(url, origin)
                break
    return chosen


def urls_set_by(origin: Origin, packed: PackedHooks | None) -> Urls:
    """The URLs of a job that have this origin."""
    hooks = unpack_hooks(packed)
    success, failure, dead = (hooks.get(event) for event in WebhookEvent)
    return tuple(hook.url if hook is not None and hook.origin is origin else None for hook in (success, failure, dead))  # type: ignore[return-value] # three


def pack_hooks(hooks: Hooks) -> dict[str, list[str]] | None:
    """Serialize for the database; None if there are none."""
    return {event.value: [hook.url, hook.origin.value] for event, hook in hooks.items()} or None


def unpack_hooks(packed: PackedHooks | None) -> dict[WebhookEvent, Hook]:
    # Ignore events that a newer version added.
    known = {event.value: event for event in WebhookEvent}
    return {known[name]: Hook(url, Origin(origin)) for name, (url, origin) in (packed or {}).items() if name in known}


def parse_hooks(value: object, subject: str) -> dict[str, list[str]] | None:
    """Validate webhooks in the format of `pack_hooks`, from an import file."""
    hint = 'like {"dead": ["https://example.org/hooks/queue", "job"]}'
    if not isinstance(value, Mapping):
        raise InvalidInput(subject, f"expected an object, got {short_repr(value)}", hint=hint)
    found = {}
    for name, hook in value.items():
        if name not in list(WebhookEvent) or not isinstance(hook, list | tuple) or len(hook) != 2:
            raise InvalidInput(f"{subject}.{short_repr(name)[1:-1]}", "expected a URL and its origin", hint=hint)
        url, origin = hook
        if origin not in list(Origin):
            raise InvalidInput(
                f"{subject}.{name}", f"unknown origin {short_repr(origin)}", hint=f"one of: {', '.join(Origin)}"
            )
        found[str(name)] = [parse_url(url, f"{subject}.{name}"), str(origin)]
    return found or None


def with_origin(packed: PackedHooks, *, queue: Urls, all_jobs: Urls) -> dict[str, list[str]]:
    """Set the origin of webhooks from an import file. It is the queue or the settings only if these have the same URL here. Otherwise
    it is the job, which may not use private addresses, whatever the file claims."""
    found = {}
    for name, (url, _) in packed.items():
        at = list(WebhookEvent).index(WebhookEvent(name))
        origin = Origin.QUEUE if queue[at] == url else Origin.CONFIG if all_jobs[at] == url else Origin.JOB
        found[name] = [url, origin.value]
    return found


def urls_of(packed: PackedHooks | None) -> dict[str, str]:
    return {name: url for name, (url, _) in (packed or {}).items()}


def redact_hooks(packed: PackedHooks) -> dict[str, list[str]]:
    """The packed webhooks with redacted URLs."""
    return {name: [redact_url(url), origin] for name, (url, origin) in packed.items()}


def parse_url_or_none(value: object, subject: str) -> str:
    """Parse a URL, or `none`, which disables the webhook and is stored as an empty URL."""
    return "" if isinstance(value, str) and value.strip().lower() == "none" else parse_url(value, subject)


def parse_url(value: object, subject: str) -> str:
    """Parse a URL. Its address is checked at delivery, because DNS can change."""
    hint = "like https://example.org/hooks/queue"
    if not isinstance(value, str):
        raise InvalidInput(subject, f"expected a URL, got {short_repr(value)}", hint=hint)
    if not value.isascii() or not value.isprintable() or " " in value or len(value) > MAX_URL_LENGTH:
        problem = f"not a URL of visible ASCII characters, at most {MAX_URL_LENGTH}: {short_repr(value)}"
        raise InvalidInput(subject, problem, hint=hint)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as exc:
        raise InvalidInput(subject, f"not a URL: {short_repr(value)}", hint=hint) from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise InvalidInput(subject, f"not an http or https URL: {short_repr(value)}", hint=hint)
    if parts.username is not None or parts.password is not None:
        # Credentials would end up in logs of proxies, and a receiver does not need them: it verifies the signature.
        raise InvalidInput(
            subject, "the URL contains a user or a password", hint="use webhook-secret, which signs deliveries"
        )
    return value


def receiver_of(url: str) -> str:
    """Host and port of a valid URL: the concurrency key of deliveries to it."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def receiver_limit(slots: int) -> int:
    """Maximum of concurrent deliveries to one receiver, if all workers together have `slots` slots for deliveries.

    A quarter of them: even three receivers that do not answer leave slots for a fourth.
    """
    return max(slots, WORKER_SLOTS) // 4


def redact_url(url: str) -> str:
    """The URL without path and query, which often contain secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…" if parts.netloc else url
