"""The page that documents the HTTP API, with an example for curl for every operation."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final

from queuectl.store_threads import WebSession
from queuectl.web.pages.render import PageRequest, View

BASE: Final = "http://127.0.0.1:8420"
# In paths, by the tag of the operation; others by the name of the parameter.
_NAMES: Final = {"queues": "mail", "batches": "nightly", "cron": "nightly", "alerts": "deaths", "workers": "worker-1"}
_HEADINGS: Final = {"dlq": "Dead jobs", "cron": "Schedules", "config": "Settings"}
_IN_PATHS: Final = {"id": "last", "key": "timeout"}
_QUERIES: Final = {
    "list_jobs": "q=queue:mail+error:timeout&count=true&limit=10",
    "list_dead": "queue=mail&sort=finished&limit=10",
    "wait_for_jobs": "id=last&timeout=10s",
    "wait_for_job": "timeout=10s",
    "show_logs": "tail=20",
    "search_log": "text=error",
    "export_jobs": "state=completed&history=true",
    "history": "span=hour&since=1d",
    "list_audit": "since=1d&limit=20",
}
_BODIES: Final[Mapping[str, Any]] = {
    "enqueue": {"command": "make report", "queue": "mail", "max_attempts": 5},
    "enqueue_many": {"for_each": ["a.png", "b.png"], "job": {"command": "convert {} {.}.jpg"}, "batch": "nightly"},
    "act_on_jobs": {"action": "cancel", "where": {"q": "queue:mail state:pending"}, "preview": True},
    "edit_job": {"priority": 5},
    "clone_job": {"delay": "1h"},
    "retry_dead": {"where": {"error": "timeout"}},
    "purge_dead": {"where": {"queue": "mail"}, "preview": True},
    "change_queue": {"concurrency": 4, "rate": "10/s"},
    "move_jobs": {"to": "slow"},
    "add_schedule": {"name": "nightly", "schedule": "0 2 * * *", "command": "make report"},
    "edit_schedule": {"schedule": "30 2 * * *"},
    "add_alert": {"name": "deaths", "dead": 5, "within": "1h", "webhook": "https://example.org/hook"},
    "edit_alert": {"dead": 10},
    "stop_workers": {"now": False},
    "stop_worker": {"now": False},
    "set_setting": {"value": "90s"},
    "prune": {"older_than": "30d", "dry_run": True},
}


def curl(method: str, path: str, about: Mapping[str, Any]) -> str:
    """The command line that calls an operation of the OpenAPI document. The token is in a variable of the shell."""

    def example(name: re.Match[str]) -> str:
        return _NAMES.get(about["tags"][0]) or _IN_PATHS[name[1]]

    name = about["operationId"]
    query = f"?{_QUERIES[name]}" if name in _QUERIES else ""
    url = BASE + re.sub(r"{(\w+)}", example, path) + query
    streams = next(iter(_response(about)["content"])) == "text/event-stream"
    words = ["curl", *(["-N"] * streams)]
    if method != "GET":
        words += ["-X", method]
    lines = [f'{shlex.join(words)} -H "Authorization: Bearer $QUEUECTL_TOKEN"']
    if name in _BODIES:
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(json.dumps(_BODIES[name]))}"]
    return " \\\n  ".join([*lines, shlex.quote(url)])


def _response(about: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(iter(about["responses"].values()))
    return found


@cache
def _values(document: str) -> dict[str, Any]:
    described = json.loads(document)
    tags: dict[str, list[tuple[str, str, dict[str, Any], str]]] = {}
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            operation = (method.upper(), path, about, curl(method.upper(), path, about))
            tags.setdefault(about["tags"][0], []).append(operation)
    headings = {tag: _HEADINGS.get(tag, tag.capitalize()) for tag in tags}
    return {"document": described, "tags": tags, "headings": headings, "to_json": partial(json.dumps, indent=2)}


def show(session: WebSession, ask: PageRequest, *, document: str) -> View:
    """`document`: the OpenAPI document as JSON."""
    return View("api.html", "HTTP API", _values(document))
