"""The same view on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.client import Queue
from queuectl.jobs.states import State
from queuectl.tui.job_screen import JobScreen
from queuectl.tui.log_pane import LogPane
from queuectl.tui.screens import Prompt
from tests.postgres import FragileServer, fragile_server
from tests.program import WorkerProcess
from tests.tui.view import lines_of, play, rows_of, states_of, text_of, view
from tests.wait import until


@pytest.fixture(scope="module")
def postgres() -> Iterator[FragileServer]:
    with fragile_server() as one:
        yield one


@pytest.fixture
def db(postgres: FragileServer) -> str:
    return postgres.database(postgres.create())


@pytest.fixture
def queue(home: Path, db: str) -> Iterator[Queue]:
    with Queue(home, db) as made:
        yield made


def test_a_job_is_seen_followed_and_cancelled_and_another_found_and_held(
    home: Path, db: str, queue: Queue, start_worker: Callable[..., WorkerProcess]
) -> None:
    start_worker("--db", db, "--name", "anna")
    job = queue.enqueue("echo hello; exec sleep 60").id
    later = queue.enqueue("true", queue="mail", delay="1h").id

    async def scene() -> None:
        async with view(home, db=db) as (app, pilot):
            await until(lambda: states_of(app).get(job) == "processing", what="the job to run")
            assert rows_of(app, "#workers")["anna"][0] == "anna"
            assert "postgresql://" in text_of(app, "#head")
            await pilot.press("l")
            await until(lambda: isinstance(app.screen, JobScreen), what="the log")
            log = app.screen.query_one(LogPane)
            await until(lambda: any("hello" in line for line in lines_of(log)), what="what it printed")
            await pilot.press("escape", "c", "y")
            await until(lambda: states_of(app).get(job) == "cancelled", what="the job to be cancelled")
            await pilot.press("slash")
            await until(lambda: isinstance(app.screen, Prompt), what="the question")
            await pilot.press(*later[:6], "enter")
            await until(lambda: list(states_of(app)) == [later], what="the one that is looked for")
            await pilot.press("h")
            await until(lambda: states_of(app).get(later) == "held", what="it to be held")

    play(scene)
    assert queue.get(job).state is State.CANCELLED
    assert queue.get(later).held


def test_a_lost_database_server_is_reported_until_it_is_back(
    postgres: FragileServer, home: Path, db: str, queue: Queue
) -> None:
    job = queue.enqueue("true", delay="1h").id
    queue.close()

    async def scene() -> None:
        async with view(home, db=db) as (app, _):
            await until(lambda: job in states_of(app), what="the job")
            postgres.halt()
            await until(lambda: "retrying" in text_of(app, "#problem"), what="the problem to be told")
            assert job in states_of(app), "what was known is still there to see"
            postgres.start()
            await until(lambda: not text_of(app, "#problem").strip(), what="the server to be found again")
            assert job in states_of(app)

    play(scene)
