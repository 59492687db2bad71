"""Who is to be told of the end of a run: which calls it makes, and to whom.

A hook is fixed at enqueue, as every field of a job: the job's own word, else its queue's, else the setting for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from queuectl.errors import InvalidInput
from queuectl.job.lifecycle import Event
from queuectl.job.newjob import NO_URLS, PackedHooks, Urls
from queuectl.job.shown import shown

if TYPE_CHECKING:
    from queuectl.job.settle import Settlement

LONGEST: Final = 2048  # characters of a URL
TAG: Final = "webhook"  # of the same
WORKER_SLOTS: Final = 8  # deliveries that a worker makes at a time, beside its jobs
DELIVER: Final = "queuectl:webhook"  # in the place of a program: every host has its own, see worker/launch.py
URL: Final = "QUEUECTL_WEBHOOK_URL"  # what such a job finds in its environment
SAID: Final = "QUEUECTL_WEBHOOK_SAID"
EVENT_OF_ALERT: Final = "alert"  # in the place of a Happening


class Happening(StrEnum):
    """What one can be told of. The name of the field is `on_` and this."""

    SUCCESS = "success"  # the job is completed
    FAILURE = "failure"  # a run failed, whether or not there will be another
    DEAD = "dead"  # it failed for good


class Said(StrEnum):
    """By whom a hook was said. What a job says is not believed as far as what an operator says."""

    JOB = "job"
    QUEUE = "queue"
    CONFIG = "config"


class Hook(NamedTuple):
    url: str
    said: Said


Hooks = Mapping[Happening, Hook]

_HAPPENINGS: Final[Mapping[Event, tuple[Happening, ...]]] = {
    Event.SUCCEED: (Happening.SUCCESS,),
    Event.FAIL: (Happening.FAILURE,),
    Event.EXHAUST: (Happening.FAILURE, Happening.DEAD),
    Event.POISON: (Happening.DEAD,),  # its worker died too often: no run failed
    Event.REFUSE: (Happening.DEAD,),  # a policy was against it: there was no run
}


class Call(NamedTuple):
    """One delivery that is to be made."""

    happening: Happening
    hook: Hook


def calls(hooks: Hooks, settlement: Settlement) -> list[Call]:
    """What the end of a run makes: nothing for one that was cancelled, released or lost."""
    happened = _HAPPENINGS.get(settlement.event, ())
    return [Call(one, hooks[one]) for one in happened if one in hooks]


def choose(own: Urls = NO_URLS, queue: Urls = NO_URLS, all_jobs: Urls = NO_URLS) -> dict[Happening, Hook]:
    """For each happening the nearest word about it. An empty one is a word, too: nobody is to be told."""
    chosen: dict[Happening, Hook] = {}
    for at, happening in enumerate(Happening):
        for said, urls in ((Said.JOB, own), (Said.QUEUE, queue), (Said.CONFIG, all_jobs)):
            url = urls[at]
            if url is not None:
                if url:
                    chosen[happening] = Hook(url, said)
                break
    return chosen


def said_by(who: Said, packed: PackedHooks | None) -> Urls:
    """What one of them has said, of all that a job has."""
    hooks = unpack(packed)
    success, failure, dead = (hooks.get(happening) for happening in Happening)
    return tuple(hook.url if hook is not None and hook.said is who else None for hook in (success, failure, dead))  # type: ignore[return-value] # three


def pack(hooks: Hooks) -> dict[str, list[str]] | None:
    """As plain data, for the store; None for none."""
    return {happening.value: [hook.url, hook.said.value] for happening, hook in hooks.items()} or None


def unpack(packed: PackedHooks | None) -> dict[Happening, Hook]:
    # What a newer version may have added is not for us.
    known = {happening.value: happening for happening in Happening}
    return {known[name]: Hook(url, Said(said)) for name, (url, said) in (packed or {}).items() if name in known}


def parse_hooks(value: object, subject: str) -> dict[str, list[str]] | None:
    """As `pack` makes them, from somebody else's hands."""
    hint = 'like {"dead": ["https://example.org/hooks/queue", "job"]}'
    if not isinstance(value, Mapping):
        raise InvalidInput(subject, f"expected an object, got {shown(value)}", hint=hint)
    found = {}
    for name, hook in value.items():
        if name not in list(Happening) or not isinstance(hook, list | tuple) or len(hook) != 2:
            raise InvalidInput(f"{subject}.{shown(name)[1:-1]}", "not a URL and who said it", hint=hint)
        url, said = hook
        if said not in list(Said):
            raise InvalidInput(
                f"{subject}.{name}", f"nobody is called {shown(said)}", hint=f"one of: {', '.join(Said)}"
            )
        found[str(name)] = [parse_url(url, f"{subject}.{name}"), str(said)]
    return found or None


def with_origin(packed: PackedHooks, *, queue: Urls, all_jobs: Urls) -> dict[str, list[str]]:
    """Hooks from a file, with the origin that they have here: a URL is the queue's or the operator's only where the rules of the queue
    or the settings have the same one. Otherwise it is the job's, which may not lead to private addresses, whatever the file claims."""
    found = {}
    for name, (url, _) in packed.items():
        at = list(Happening).index(Happening(name))
        said = Said.QUEUE if queue[at] == url else Said.CONFIG if all_jobs[at] == url else Said.JOB
        found[name] = [url, said.value]
    return found


def urls_of(packed: PackedHooks | None) -> dict[str, str]:
    return {name: url for name, (url, _) in (packed or {}).items()}


def hidden(packed: PackedHooks) -> dict[str, list[str]]:
    """As `pack` makes them, without what may not be seen."""
    return {name: [shown_url(url), said] for name, (url, said) in packed.items()}


def parse_url_or_none(value: object, subject: str) -> str:
    """A URL, or empty for the word none: nobody is to be told."""
    return "" if isinstance(value, str) and value.strip().lower() == "none" else parse_url(value, subject)


def parse_url(value: object, subject: str) -> str:
    """A URL that can be called. Where it leads is found out when it is, since names can change their mind."""
    hint = "like https://example.org/hooks/queue"
    if not isinstance(value, str):
        raise InvalidInput(subject, f"expected a URL, got {shown(value)}", hint=hint)
    if not value.isascii() or not value.isprintable() or " " in value or len(value) > LONGEST:
        problem = f"not a URL of visible ASCII characters, at most {LONGEST}: {shown(value)}"
        raise InvalidInput(subject, problem, hint=hint)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as exc:
        raise InvalidInput(subject, f"not a URL: {shown(value)}", hint=hint) from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise InvalidInput(subject, f"not an http or https URL: {shown(value)}", hint=hint)
    if parts.username is not None or parts.password is not None:
        # They would end up in logs on the other side of every proxy, and no receiver needs them: there is a signature.
        raise InvalidInput(
            subject, "a URL with a user or a password in it", hint="use webhook-secret: calls are signed with it"
        )
    return value


def receiver_of(url: str) -> str:
    """The host and the port of a URL that `parse_url` has accepted: the concurrency key of deliveries to it."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def receiver_limit(slots: int) -> int:
    """How many deliveries to one receiver may run at a time, where all workers together have this many slots for deliveries.

    A quarter of them: even three receivers that do not answer leave slots for a fourth.
    """
    return max(slots, WORKER_SLOTS) // 4


def shown_url(url: str) -> str:
    """As much of a URL as may be seen: paths and queries of webhooks are often secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…" if parts.netloc else url
