"""Status, metrics and history; workers; settings; doctor, prune and the audit log."""

from __future__ import annotations

from typing import Any, Final

from queuectl import config
from queuectl.config import environ
from queuectl.doctor import report, run_doctor
from queuectl.errors import InvalidInput, WorkerNotFound
from queuectl.jobs.states import FINAL, State
from queuectl.jobs.stats import ALL_QUEUES, OTHER_QUEUES, Counts, Span
from queuectl.maintenance import pruner
from queuectl.operations import inspect
from queuectl.operations.pages import MAX_CURSOR_NUMBER, encode_cursor, invalid_cursor
from queuectl.operations.query import parse_filter, restrict_states
from queuectl.operations.queues import check_queue
from queuectl.settings import SettingEntry, retention
from queuectl.store.types import StopMode
from queuectl.store_threads import WebSession
from queuectl.text import short_repr
from queuectl.units import parse_duration_ms
from queuectl.web.api.bulk import run_pruner
from queuectl.web.api.operation import (
    CURSOR,
    LIMIT,
    PAGING,
    WHERE_SCHEMA,
    ApiRequest,
    Operations,
    Param,
    listing,
    paginate,
    parse_where,
    read_cursor,
)
from queuectl.web.issues import find_issues, read_overview
from queuectl.web.schemas import (
    COUNT,
    DURATION,
    FLAG,
    TEXT,
    TIME,
    array,
    exactly,
    maybe,
    only,
    ref,
)

STATUS: Final = Operations("status")
WORKERS: Final = Operations("workers")
CONFIG: Final = Operations("config")
MAINTENANCE: Final = Operations("maintenance")

# ── status, metrics and history ─────────────────────────────────────────────────────────────────────────────────────


@STATUS("GET /status", "Show job counts by state, and workers.", ref("Status"))
def status(session: WebSession, call: ApiRequest) -> Any:
    return inspect.status(session.reads, is_alive=session.is_serving()).to_dict()


@STATUS("GET /metrics", "Show success rate, durations, waiting times and throughput.", ref("Metrics"))
def metrics(session: WebSession, call: ApiRequest) -> Any:
    return inspect.metrics(session.reads).to_dict()


@STATUS(
    "GET /issues",
    "List what needs attention, most important first: firing alerts, queues without a worker, dead jobs, and others.",
    array(exactly(kind={"type": "string", "enum": ["bad", "warn"]}, text=TEXT, more=TEXT, url=TEXT)),
)
def list_issues(session: WebSession, call: ApiRequest) -> Any:
    """`url`: the page of the dashboard that shows it."""
    found = find_issues(read_overview(session))
    return [{"kind": one.kind, "text": one.text, "more": one.more, "url": one.url} for one in found]


_TIMES: Final = exactly(count=COUNT, **dict.fromkeys(("avg", "p50", "p95", "p99"), maybe("number")))
_POINT: Final = {
    **exactly(
        at=TIME,
        covers_ms={**COUNT, "description": "Longer than the span if earlier samples are missing."},
        **dict.fromkeys((*Counts._fields, "waiting", "running"), COUNT),
        oldest_waiting_ms=maybe("integer"),
        duration_ms=_TIMES,
        wait_ms=_TIMES,
    ),
    "description": "Event counts up to the sample in the minute or hour that starts at `at`, and the state at that time.",
}


@STATUS(
    "GET /history",
    "List metrics over time, oldest first: a point per minute of the last day, or per hour of the last 90 days.",
    array(_POINT),
    params=(
        Param("span", "The time that a point covers.", {"type": "string", "enum": list(Span), "default": "minute"}),
        Param("since", "Only points since this time: a timestamp, or a duration before now."),
        Param(
            "queue",
            f"Only this queue, or `{OTHER_QUEUES}` for all but the busiest queues. Default: all queues together.",
        ),
    ),
)
def history(session: WebSession, call: ApiRequest) -> Any:
    """The stored points, or those since a time: about two thousand at most."""
    queue, since = call.query["queue"], call.query["since"]
    queue = ALL_QUEUES if queue is None else queue if queue == OTHER_QUEUES else check_queue(queue)
    begin = parse_filter(since=since, now_ms=session.reads.now_ms).since_ms
    points = session.reads.samples.points(Span(call.query["span"]), since_ms=begin or 0, queue=queue)
    return [point.to_dict() for point in points]


# ── workers: requests return at once, as a job may take a day to finish ─────────────────────────────────────────────

_NOW: Final = only(now=FLAG)


@WORKERS("GET /workers", "List workers.", listing(ref("Worker")), params=PAGING)
def list_workers(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, [worker.to_dict() for worker in session.workers()], name="id")


@WORKERS(
    "POST /workers/stop",
    "Stop all workers after their running jobs, or immediately with `now`. Does not wait for them.",
    ref("Answer"),
    body=_NOW,
)
def stop_workers(session: WebSession, call: ApiRequest) -> Any:
    mode = _stop_mode(call)
    return _request_stop(session, [worker.id for worker in session.reads.workers()], mode)


@WORKERS("GET /workers/{id}", "Show a worker.", ref("Worker"))
def show_worker(session: WebSession, call: ApiRequest) -> Any:
    name = known_worker(session, call.path["id"])
    return next(worker.to_dict() for worker in session.workers() if worker.id == name)


@WORKERS(
    "POST /workers/{id}/stop",
    "Stop a worker after its running jobs, or immediately with `now`. Does not wait for it.",
    ref("Answer"),
    body=_NOW,
)
def stop_worker(session: WebSession, call: ApiRequest) -> Any:
    return _request_stop(session, [known_worker(session, call.path["id"])], _stop_mode(call))


@WORKERS(
    "POST /workers/{id}/restart",
    "Restart a worker while its jobs continue. Does not wait for it.",
    ref("Answer"),
)
def restart_worker(session: WebSession, call: ApiRequest) -> Any:
    return _request_stop(session, [known_worker(session, call.path["id"])], StopMode.RESTART)


def _stop_mode(call: ApiRequest) -> StopMode:
    return StopMode.NOW if call.body.get("now") else StopMode.FINISH


def known_worker(session: WebSession, name: str) -> str:
    """Raises WorkerNotFound."""
    if not any(worker.id == name for worker in session.reads.workers()):
        raise WorkerNotFound(name)
    return name


def _request_stop(session: WebSession, names: list[str], mode: StopMode) -> dict[str, Any]:
    for name in names:
        session.open_store().claims.request_stop(name, mode)
    return {"done": names, "refused": []}


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


@CONFIG("GET /config", "List settings with the source of each value.", listing(ref("Setting")), params=PAGING)
def list_settings(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, [entry.to_dict() for entry in session.settings.entries()], name="key")


@CONFIG("DELETE /config", "Reset all settings to their defaults.", exactly(unset=array(TEXT)))
def reset_settings(session: WebSession, call: ApiRequest) -> Any:
    if stored := list(session.reads.config()):
        session.open_store().set_config(dict.fromkeys(stored))
    return {"unset": stored}


@CONFIG("GET /config/{key}", "Show a setting.", ref("Setting"))
def get_setting(session: WebSession, call: ApiRequest) -> Any:
    return session.settings.entry(call.path["key"]).to_dict()


@CONFIG(
    "PUT /config/{key}",
    "Change a setting for all users of this database.",
    ref("Setting"),
    body=only("value", value={"type": ["string", "number", "boolean"]}),
)
def set_setting(session: WebSession, call: ApiRequest) -> Any:
    value = call.body.get("value")
    if isinstance(value, dict | list) or value is None:
        hint = 'for example {"value": 5} or {"value": "1h30m"}'
        raise InvalidInput("value", f"expected text, a number or a boolean, got {short_repr(value)}", hint=hint)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return change_setting(session, call.path["key"], text).to_dict()


@CONFIG("DELETE /config/{key}", "Reset a setting to its default.", ref("Setting"))
def unset_setting(session: WebSession, call: ApiRequest) -> Any:
    return change_setting(session, call.path["key"], None).to_dict()


def change_setting(session: WebSession, key: str, value: str | None) -> SettingEntry:
    """Change a setting, or reset it with None."""
    changes = config.change_settings(session.reads.config(), {key: value})
    session.open_store().set_config(changes)
    (name,) = changes
    return session.settings.entry(name)


# ── doctor and prune ────────────────────────────────────────────────────────────────────────────────────────────────


@MAINTENANCE("GET /doctor", "Run the diagnostic checks.", ref("Checkup"), slow=True)
def doctor(session: WebSession, call: ApiRequest) -> Any:
    return _examine(session, to_fix=False)


@MAINTENANCE("POST /doctor/fix", "Fix the problems that are safe to fix, and check again.", ref("Checkup"), slow=True)
def doctor_fix(session: WebSession, call: ApiRequest) -> Any:
    return _examine(session, to_fix=True)


def _examine(session: WebSession, *, to_fix: bool) -> dict[str, Any]:
    return report(*run_doctor(session.home, lambda: session.db, to_fix=to_fix, environ=environ(), clock=session.clock))


_PRUNED: Final = exactly(
    dry_run=FLAG,
    jobs=exactly(**{state.value: COUNT for state in State if state in FINAL}),
    logs=exactly(files=COUNT, bytes=COUNT, elsewhere=COUNT),
)


@MAINTENANCE(
    "POST /prune",
    "Remove ended jobs with their history and logs, by age. With `dry_run`, only count them.",
    _PRUNED,
    body=only(older_than=DURATION, where=WHERE_SCHEMA, dry_run=FLAG),
    slow=True,
)
def prune(session: WebSession, call: ApiRequest) -> Any:
    """Like the command: without `older_than`, prune the matching jobs by the retention settings."""
    dry_run, older = bool(call.body.get("dry_run")), call.body.get("older_than")
    age = None if older is None else parse_duration_ms(older, subject="older_than")
    where = restrict_states(parse_where(call.body.get("where"), session.reads), FINAL, done="pruned", subject="state")
    chosen = None
    if not where.names_states_only:
        chosen = frozenset(job.id for job in session.reads.choose(where))
    ages = retention(session.settings) if age is None else dict.fromkeys(FINAL, age)
    ages = {state: ages[state] for state in State if state in where.states}
    plan = pruner.Plan.by_age(ages, now_ms=session.reads.now_ms(), only=chosen)
    # Without jobs to prune, do not create a database.
    is_empty = not any(pruner.count(session.reads, plan).values())
    done = pruner.foresee(session.reads, plan) if dry_run or is_empty else run_pruner(session, plan)
    jobs = {state.value: done.jobs.get(state, 0) for state in State if state in FINAL}
    return {"dry_run": dry_run, "jobs": jobs, "logs": done.logs._asdict()}


# ── the audit log ───────────────────────────────────────────────────────────────────────────────────────────────────

_ANYTHING: Final = {"type": ["object", "null"]}
_ENTRY: Final = exactly(
    seq=COUNT, at=TIME, who={"type": "object"}, what=TEXT, subjects=array(TEXT), before=_ANYTHING, after=_ANYTHING
)


@MAINTENANCE(
    "GET /audit",
    "List the audit log, newest first.",
    listing(_ENTRY),
    params=(
        Param("since", "Only entries since this time: a timestamp, or a duration before now, for example `90m`."),
        Param("id", "Only entries about this job, queue, schedule, worker or setting."),
        Param("who", "Only entries of this actor: a user, UID, host, program or token."),
        Param("what", "Only entries with this action, or of this group: `queue pause`, or `queue` for all of queues."),
        LIMIT,
        CURSOR,
    ),
    slow=True,
)
def list_audit(session: WebSession, call: ApiRequest) -> Any:
    query, reads, before = call.query, session.reads, None
    if query["cursor"] is not None:
        (before,) = read_cursor(query["cursor"], int)
        if not 0 <= before <= MAX_CURSOR_NUMBER:
            raise invalid_cursor()
    about: dict[str, Any] = {
        "since": query["since"],
        "subject": query["id"],
        "who": query["who"],
        "what": query["what"],
    }
    # One more than requested, to know whether there is another page.
    found = [
        one.to_dict()
        for one in inspect.audit_records(reads, **about, before=before, limit=query["limit"] + 1, now_ms=reads.now_ms)
    ]
    items, more = found[: query["limit"]], found[query["limit"] :]
    return {"items": items, "next_cursor": encode_cursor([items[-1]["seq"]]) if more else None}
