"""queuectl hold, release, run-now and priority: one change to jobs that wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from queuectl.cli.act import Verb, act_on
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs, complete_jobs_after_a_number
from queuectl.cli.confirm import yes_option
from queuectl.cli.numbers import integer
from queuectl.cli.result import Result
from queuectl.cli.selectors import Selection, selectors
from queuectl.errors import InvalidInput
from queuectl.job.change import read_change
from queuectl.job.lifecycle import WAITING
from queuectl.queue import amend
from queuectl.queue.pick import Answer
from queuectl.store.protocol import Store

_HOLD: Final = Verb(amend.hold, "hold", "held", WAITING, wants=lambda job: not job.held)
_RELEASE: Final = Verb(amend.release, "release", "released", WAITING, wants=lambda job: job.held)
_RUN_NOW: Final = Verb(amend.run_now, "run", "due now", amend.CLAIMABLE)


@command(
    "hold",
    examples="""
        queuectl hold 7f3a
        # a whole queue, until further notice; asks first
        queuectl hold --queue mail
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@yes_option
def hold(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Keep jobs that wait from being run until they are released.

    Their state stays as it is, and so does their place in the line. A worker with --drain does not wait for them.
    """
    return act_on(app, _HOLD, ids, selection, yes=yes)


@command(
    "release",
    examples="""
        queuectl release 7f3a
        queuectl release --queue mail --yes
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@yes_option
def release(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Let go jobs that are held: they run when they are due and a worker is free."""
    return act_on(app, _RELEASE, ids, selection, yes=yes)


@command(
    "run-now",
    examples="""
        queuectl run-now 7f3a
        # do not wait for the backoff
        queuectl run-now --state failed --queue mail
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@yes_option
def run_now(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Make delayed jobs, and failed ones that wait for a retry, due now.

    Attempts and the place in the line stay as they are. A job that is held is let go.
    """
    return act_on(app, _RUN_NOW, ids, selection, yes=yes)


@command(
    "priority",
    signed_words=True,
    examples="""
        queuectl priority 10 7f3a 91bc
        queuectl priority -5 --queue thumbnails
    """,
)
@click.argument("words", nargs=-1, metavar="N [ID...]", shell_complete=complete_jobs_after_a_number)
@selectors()
@yes_option
def priority(app: App, words: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Let jobs that wait go sooner or later: higher goes first.

    The number comes first, so that any number of ids can follow; behind a single id it is understood, too.
    """
    number, ids = _split(words)
    change = read_change({"priority": number})

    def do(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
        return amend.edit(store, refs, change, exact=exact)

    return act_on(app, Verb(do, "change", f"priority {number}:", WAITING), ids, selection, yes=yes)


def _split(words: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    if len(words) == 2 and _number(words[0]) is None and _number(words[1]) is not None:
        words = words[::-1]
    number = _number(words[0]) if words else None
    if number is None:
        hint = "the number first, then the jobs: queuectl priority 10 7f3a"
        raise InvalidInput("N", f"not a whole number: {words[0]!r}" if words else "which priority?", hint=hint)
    return number, words[1:]


def _number(word: str) -> int | None:
    try:
        return integer(word)
    except click.BadParameter:
        return None
