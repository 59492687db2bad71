"""The tabs of schedules, workers, batches and queues, the preview, and what the footer and the borders show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from queuectl.client import Queue
from queuectl.tui.app import Top
from queuectl.tui.screens import Confirm
from tests.program import WorkerProcess
from tests.tui.view import dialog_of, play, rows_of, states_of, text_of, titles_of, view
from tests.wait import until


@pytest.fixture
def queue(home: Path) -> Iterator[Queue]:
    with Queue(home) as made:
        yield made


async def asked(app: Top) -> str:
    await until(lambda: isinstance(app.screen, Confirm), what="the question")
    return dialog_of(app)


def test_schedules_are_run_paused_and_removed_after_a_question(home: Path, queue: Queue) -> None:
    queue.schedules.add("nightly", "0 2 * * *", "make backup", tz="UTC")

    async def scene() -> None:
        async with view(home, size=(120, 40)) as (app, pilot):
            await pilot.press("3")
            await until(lambda: "nightly" in rows_of(app, "#schedules"), what="the schedule")
            assert rows_of(app, "#schedules")["nightly"][-1] == "make backup"
            await until(lambda: "next runs: in" in text_of(app, "#preview"), what="its preview")
            await pilot.press("R")
            assert "Run the schedule nightly now?" in await asked(app)
            await pilot.press("y")
            await until(lambda: "enqueued" in text_of(app, "#say"), what="its job")
            assert [job.command for job in queue.jobs()] == ["make backup"]
            await pilot.press("p")
            assert "Pause the schedule nightly?" in await asked(app)
            await pilot.press("y")
            await until(lambda: rows_of(app, "#schedules")["nightly"][2] == "paused", what="the pause")
            await pilot.press("d")
            assert "Remove the schedule nightly?" in await asked(app)
            await pilot.press("y")
            await until(lambda: not rows_of(app, "#schedules"), what="it to be removed")
            assert "queuectl cron add" in titles_of(app, "#schedules")[1]

    play(scene)


def test_a_worker_is_stopped_after_a_question(
    home: Path, queue: Queue, start_worker: Callable[..., WorkerProcess]
) -> None:
    worker = start_worker("--name", "anna")
    done = queue.wait(queue.enqueue("true").id).id
    queue.enqueue("true", delay="1h")

    async def scene() -> None:
        async with view(home, size=(120, 30)) as (app, pilot):
            await pilot.press("4")
            await until(lambda: "anna" in rows_of(app, "#all-workers"), what="the worker")
            await pilot.press("enter")
            await until(lambda: list(states_of(app)) == [done], what="the jobs that it ran")
            await pilot.press("4", "x")
            assert "Stop worker anna?" in await asked(app)
            await pilot.press("y")
            await until(lambda: "anna" not in rows_of(app, "#all-workers"), what="it to be gone")

    play(scene)
    assert worker.wait() == 0


def test_a_batch_and_a_queue_lead_to_their_jobs(home: Path, queue: Queue) -> None:
    queue.enqueue("other")
    jobs = [job.id for job in queue.enqueue_many(["true"] * 3, batch="images")]
    queue.cancel(jobs[0])
    mail = queue.enqueue("true", queue="mail").id

    async def scene() -> None:
        async with view(home, size=(120, 30)) as (app, pilot):
            await pilot.press("5")
            await until(lambda: "images" in rows_of(app, "#batches"), what="the batch")
            assert rows_of(app, "#batches")["images"][1].startswith("▒▒▒▒░")
            await pilot.press("enter")
            await until(lambda: set(states_of(app)) == set(jobs), what="the jobs of the batch")
            assert "batch:images" in titles_of(app, "#jobs")[0]
            await pilot.press("6")
            await until(lambda: "mail" in rows_of(app, "#all-queues"), what="the queues")
            await pilot.press("end", "p")
            assert "Pause the queue mail?" in await asked(app)
            await pilot.press("n", "enter")
            await until(lambda: list(states_of(app)) == [mail], what="the jobs of the queue")

    play(scene)
    assert not any(one["paused"] for one in queue.queues())


def test_the_preview_shows_the_end_of_the_log_then_the_details_then_nothing(
    home: Path, queue: Queue, start_worker: Callable[..., WorkerProcess]
) -> None:
    start_worker()
    first = queue.enqueue("seq 100; printf '10%%\\r20%%\\n'").id
    second = queue.enqueue("echo second", delay="1h").id

    async def scene() -> None:
        async with view(home, size=(160, 40)) as (app, pilot):
            await until(lambda: states_of(app).get(first) == "completed", what="the end")
            await pilot.press("end")
            await until(lambda: "100\n20%" in text_of(app, "#preview"), what="the end of the log")
            assert titles_of(app, "#preview")[0] == f"Log of {first}"
            await pilot.press("up")
            await until(lambda: titles_of(app, "#preview")[0] == f"Details of {second}", what="a job without a log")
            await pilot.press("down", "v")
            await until(lambda: titles_of(app, "#preview")[0] == f"Details of {first}", what="the details")
            assert "seq 100" in text_of(app, "#preview")
            await pilot.press("v")
            assert not app.query_one("#preview").display
            await pilot.resize_terminal(80, 24)
            await pilot.press("v")
            await until(lambda: app.query_one("#preview").display, what="the preview, in a small terminal on demand")

    play(scene)


def keys_of(app: Top) -> list[str]:
    return [key.description for key in app.screen.query_one(Footer).query(FooterKey)]


def test_the_footer_follows_the_focus(home: Path, queue: Queue) -> None:
    queue.enqueue("true")

    async def scene() -> None:
        async with view(home, size=(120, 40)) as (app, pilot):
            await until(lambda: "cancel" in keys_of(app), what="the keys of jobs")
            await pilot.press("4")
            await until(lambda: "stop now" in keys_of(app) and "cancel" not in keys_of(app), what="those of workers")
            await pilot.press("1", "enter")
            await until(lambda: "wrap" in keys_of(app), what="those of logs")

    play(scene)


def test_an_empty_database_shows_how_to_enqueue(home: Path) -> None:
    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: app.query_one("#hint").display, what="the hint")
            assert "queuectl enqueue" in text_of(app, "#hint")
            await pilot.press("n", *"true", "enter")
            await until(lambda: states_of(app), what="the first job")
            assert not app.query_one("#hint").display
            await pilot.press("h")
            await until(lambda: list(states_of(app).values()) == ["held"], what="a key on it")

    play(scene)
