"""The keys for jobs: what they ask, and the actions that they start on the marked jobs or the job under the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from queuectl.jobs.model import Job
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import WAITING
from queuectl.store.types import Filter
from queuectl.text import plural
from queuectl.tui import tables
from queuectl.tui.job_actions import (
    VERBS,
    Affected,
    count_affected,
    format_counts,
    perform,
    perform_on,
    question,
    refusal,
    restricted,
)
from queuectl.tui.screens import Field, Form
from queuectl.tui.session import Session
from queuectl.units import humanize_elapsed

if TYPE_CHECKING:
    from queuectl.tui.app import Top

_WHOLE_NUMBERS: Final = frozenset({"priority", "max_attempts"})
_QUESTION_CHARS: Final = 200  # of a command, below a question


class JobCommands:
    def __init__(self, app: Top) -> None:
        self._app = app

    def _job(self) -> Job | None:
        if (job := self._app.job) is None:
            self._warn("select a job first")
        return job

    def _warn(self, text: str) -> None:
        self._app.say(text, style="bold yellow")

    # ── actions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def verb(self, name: str) -> None:
        if (target := self._app.target) is not None:
            self._app.run_worker(self._ask_about(target, name), group="ask")
            return
        if (job := self._job()) is None:
            return
        verb = VERBS[name]
        if not verb.asks:
            self._app.act(lambda session: perform_on(session, job, name))
        elif (problem := refusal(verb, job)) is not None:
            self._warn(problem)
        else:
            about = f"{tables.command(job)[:_QUESTION_CHARS]}\n\n{verb.about}"
            self._app.confirm(
                f"{verb.label} job {job.id} ({job.state.value})?",
                about,
                lambda session: perform_on(session, job, name),
                takes_long=True,
            )

    async def _ask_about(self, target: Filter, name: str) -> None:
        """Count the jobs, so that the question says how many will change and how many are skipped."""
        verb = VERBS[name]
        affected = await self._app.ask(lambda session: count_affected(session.reads, target, verb))
        if affected is None:
            return
        if not affected.total:
            self._warn(f"nothing to {verb.label.lower()}: {_describe(affected)}")
            return
        text, about = question(verb, affected)

        def work(session: Session) -> str:
            return perform(session, target, verb)

        self._app.confirm(text, about, work, takes_long=True, then=self._app.clear_marks)

    def hold(self) -> None:
        """Hold, or release the one job under the cursor if it is held."""
        job = None if self._app.target is not None else self._app.job
        self.verb("release" if job is not None and job.held and job.state in WAITING else "hold")

    def priority(self, step: int) -> None:
        if self._app.target is not None:
            self._warn("press e to set the priority of the marked jobs")
            return
        if (job := self._job()) is None:
            return

        def change(session: Session) -> str:
            # From the current priority: the screen may lag behind a user who types fast.
            edited = session.edit(job.id, priority=session.get(job.id).priority + step)
            return f"set the priority of {edited.id} to {edited.priority}"

        self._app.act(change)

    def copy_id(self) -> None:
        if (job := self._job()) is not None:
            self._app.copy_to_clipboard(job.id)
            self._app.say(f"copied {job.id}")

    # ── edit and clone ──────────────────────────────────────────────────────────────────────────────────────────────

    def edit(self) -> None:
        if (target := self._app.target) is not None:
            self._app.run_worker(self._edit_many(target), group="ask")
            return
        if (job := self._job()) is None:
            return
        if job.state not in WAITING:
            self._warn(f"cannot edit {job.id}: it is {job.state.value}; press C to clone it")
            return

        def take(changed: Mapping[str, str] | None) -> None:
            if changed:
                self._app.act(lambda session: f"edited {session.edit(job.id, **_values(changed)).id}")

        self._app.push_screen(Form(f"Edit job {job.id}", _fields(job)), take)

    async def _edit_many(self, target: Filter) -> None:
        affected = await self._app.ask(lambda session: _count_waiting(session, target))
        if affected is None:
            return
        where = restricted(target, WAITING)
        if not affected.total or where is None:
            self._warn(f"nothing to edit: {_describe(affected)}")
            return

        def take(changed: Mapping[str, str] | None) -> None:
            if not changed:
                return

            def change(session: Session) -> str:
                result = session.selection(where).edit(**_values(changed))
                text = f"{plural(len(result['done']), 'job')} edited"
                return text + (f", {len(result['refused']):,} refused" if result["refused"] else "")

            self._app.act(change, takes_long=True, then=self._app.clear_marks)

        title = f"Edit {plural(affected.total, 'job')} (empty: unchanged)"
        if affected.skipped:
            title += f", skipped: {format_counts(affected.skipped)}"
        names = (
            ("queue", "Queue"),
            ("priority", "Priority"),
            ("max_attempts", "Maximum attempts"),
            ("timeout", "Timeout"),
        )
        self._app.push_screen(Form(title, [Field(*one) for one in (*names, ("delay", "Delay"))]), take)

    def clone(self) -> None:
        if (job := self._job()) is None:
            return

        def take(changed: Mapping[str, str] | None) -> None:
            if changed is not None:
                self._app.act(lambda session: f"enqueued {session.clone(job.id, **_values(changed)).id}")

        self._app.push_screen(Form(f"Clone job {job.id}", _fields(job)), take)


def _count_waiting(session: Session, target: Filter) -> Affected:
    return count_affected(session.reads, target, VERBS["hold"]._replace(able=WAITING, wants=lambda _: True))


def _describe(affected: Affected) -> str:
    return format_counts(affected.skipped) or "no jobs"


def _fields(job: Job) -> list[Field]:
    fields = [] if job.command is None else [Field("command", "Command", job.command)]
    attempts = allowed_failures(job.max_retries, first_is_free=job.first_is_free)
    timeout = humanize_elapsed(job.timeout_ms) if job.timeout_ms else ""
    return [
        *fields,
        Field("queue", "Queue", job.queue),
        Field("priority", "Priority", str(job.priority)),
        Field("max_attempts", "Maximum attempts", str(attempts)),
        Field("timeout", "Timeout (for example 90s, 5m; 0: none)", timeout),
        Field("delay", "Delay (empty: unchanged)"),
    ]


def _values(changed: Mapping[str, str]) -> dict[str, Any]:
    """Numbers as numbers. An empty value, which a number cannot have, is left for the parser to refuse."""
    return {
        name: int(value) if name in _WHOLE_NUMBERS and _is_int(value) else value or _EMPTY.get(name, value)
        for name, value in changed.items()
    }


_EMPTY: Final = {"timeout": 0}  # no time limit


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() and len(text) < 12
