"""The keys of the lists: scroll, mark, act on many jobs, order, filter, edit and clone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from queuectl.client import Queue
from queuectl.jobs.states import State
from queuectl.tui.app import Top
from queuectl.tui.job_list import WINDOW_SIZE
from queuectl.tui.job_table import JobTable
from queuectl.tui.screens import Confirm, Form, Menu, Prompt
from tests.program import WorkerProcess
from tests.tui.view import dialog_of, play, rows_of, states_of, text_of, titles_of, view
from tests.wait import until


@pytest.fixture
def queue(home: Path) -> Iterator[Queue]:
    with Queue(home) as made:
        yield made


def jobs_of(app: Top, name: str = "#jobs") -> JobTable:
    return app.screen_stack[0].query_one(name, JobTable)


async def asked(app: Top) -> str:
    await until(lambda: isinstance(app.screen, Confirm), what="the question")
    return dialog_of(app)


def test_all_jobs_are_reached_by_scrolling_in_bounded_memory(home: Path, queue: Queue) -> None:
    ids = [job.id for job in queue.enqueue_many(["true"] * 450)]

    async def scene() -> None:
        async with view(home, size=(80, 60)) as (app, pilot):
            await until(lambda: ids[0] in states_of(app), what="the jobs")
            table, seen = jobs_of(app), []
            while table.selected != ids[-1]:
                seen.append(table.selected)
                at = table.selected
                await pilot.press("pagedown")
                await until(lambda at=at: table.selected != at and not table.is_behind, what="the next screen")
                assert len(table.window.jobs) <= WINDOW_SIZE
                assert table.scroll_y <= table.cursor_row < table.scroll_y + table.size.height, "the cursor is visible"
            assert [ids.index(str(one)) for one in seen] == sorted(ids.index(str(one)) for one in seen)
            assert titles_of(app, "#jobs")[1] == "450 of 450"
            await pilot.press("g")
            await until(lambda: table.selected == ids[0] and not table.is_behind, what="the first job")
            await pilot.press("end")
            await until(lambda: table.selected == ids[-1] and not table.is_behind, what="the last job")
            while table.selected not in ids[:200]:
                at = table.selected
                await pilot.press("pageup")
                await until(lambda at=at: table.selected != at and not table.is_behind, what="the screen before")
            assert titles_of(app, "#jobs")[1] == f"{ids.index(table.selected) + 1} of 450"
            await pilot.press("home")
            await until(lambda: table.selected == ids[0], what="the first job again")

    play(scene)


def test_marked_jobs_are_cancelled_after_one_question_that_counts_those_skipped(home: Path, queue: Queue) -> None:
    ids = [queue.enqueue("true").id for _ in range(4)]
    queue.cancel(ids[3])

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 4, what="the jobs")
            await pilot.press("space", "space", "end", "space")
            assert titles_of(app, "#jobs")[1] == "3 marked  4 of 4"
            await pilot.press("c")
            text = await asked(app)
            assert "Cancel 2 jobs?" in text
            assert "2 pending" in text
            assert "Skipped: 1 cancelled" in text
            await pilot.press("n")
            assert queue.get(ids[0]).state is State.PENDING
            await pilot.press("c", "y")
            await until(lambda: states_of(app).get(ids[1]) == "cancelled", what="the jobs to be cancelled")
            await until(lambda: text_of(app, "#say") == "2 jobs cancelled", what="the result")
            assert queue.get(ids[2]).state is State.PENDING
            assert not jobs_of(app).marks, "marks end with the action"

    play(scene)


def test_actions_on_all_that_match_change_also_jobs_that_are_not_loaded(home: Path, queue: Queue) -> None:
    queue.enqueue_many([{"command": "mail", "queue": "mail"}] * (WINDOW_SIZE + 50))
    other = queue.enqueue("other").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: states_of(app), what="the jobs")
            app.list_jobs("queue", "mail")
            await until(lambda: titles_of(app, "#jobs")[1] == "1 of 250", what="the jobs of the queue")
            await pilot.press("A", "h")
            assert "Hold 250 jobs?" in await asked(app)
            await pilot.press("y")
            await until(lambda: text_of(app, "#say") == "250 jobs held", what="the result")
            await pilot.press("A", "H")
            assert "Release 250 jobs?" in await asked(app)
            await pilot.press("n", "a")
            assert not jobs_of(app).is_all_marked
            await pilot.press("a")
            assert len(jobs_of(app).marks) == WINDOW_SIZE
            await pilot.press("escape")
            assert not jobs_of(app).marks
            assert jobs_of(app).filter.query == "queue:mail", "the first escape clears only the marks"
            await pilot.press("A", "r")
            await until(lambda: "nothing to retry: 250 pending" in text_of(app, "#say"), what="a refusal")

    play(scene)
    assert not queue.get(other).held
    assert sum(job.held for job in queue.jobs(queue="mail")) == WINDOW_SIZE + 50


def test_ended_jobs_are_purged_after_a_question_also_from_the_list_of_dead_jobs(
    home: Path, queue: Queue, start_worker: Callable[..., WorkerProcess]
) -> None:
    dead = queue.enqueue("exit 3", max_attempts=1).id
    done = queue.enqueue("true").id
    waiting = queue.enqueue("true", delay="1h").id
    start_worker()

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(
                lambda: {states_of(app).get(one) for one in (dead, done)} == {"dead", "completed"}, what="the end"
            )
            await pilot.press("2")
            await until(lambda: list(rows_of(app, "#dead")) == [dead], what="the dead job")
            await pilot.press("d")
            assert f"Purge job {dead} (dead)?" in await asked(app)
            await pilot.press("y")
            await until(lambda: not rows_of(app, "#dead"), what="the dead job to be removed")
            await pilot.press("1")
            await until(lambda: list(states_of(app)) == [waiting, done], what="the others")
            await pilot.press("d")
            await until(lambda: "cannot purge" in text_of(app, "#say"), what="a refusal for a waiting job")
            await pilot.press("A", "d")
            assert "Skipped: 1 pending" in await asked(app)
            await pilot.press("y")
            await until(lambda: list(states_of(app)) == [waiting], what="the completed job to be removed")

    play(scene)


def test_jobs_are_ordered_and_the_order_is_reversed(home: Path, queue: Queue) -> None:
    low, high = queue.enqueue("true", priority=1).id, queue.enqueue("true", priority=9).id
    gone = queue.cancel(queue.enqueue("true", priority=5).id).id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: list(states_of(app)) == [low, high, gone], what="the order by state")
            await pilot.press("o")
            await until(lambda: list(states_of(app)) == [gone, high, low], what="the newest first")
            assert "newest first" in titles_of(app, "#jobs")[0]
            await pilot.press("O")
            await until(lambda: list(states_of(app)) == [low, high, gone], what="the oldest first")
            header = next(i for i, column in enumerate(jobs_of(app).ordered_columns) if column.label.plain == "PRI")
            left = sum(column.get_render_width(jobs_of(app)) for column in jobs_of(app).ordered_columns[:header])
            await pilot.click("#jobs", offset=(left + 2, 1))
            await until(lambda: list(states_of(app)) == [high, gone, low], what="the highest priority first")
            await pilot.press("escape")
            await until(lambda: list(states_of(app)) == [low, high, gone], what="the order by state again")

    play(scene)


async def fill(pilot: Pilot[None], values: dict[str, str]) -> None:
    app = pilot.app
    await until(lambda: isinstance(app.screen, Form), what="the form")
    for name, value in values.items():
        await until(lambda name=name: app.screen.query(f"#field-{name}"), what=name)
        app.screen.query_one(f"#field-{name}", Input).value = value
    await pilot.press("enter")


def test_a_waiting_job_is_edited_cloned_and_made_due(home: Path, queue: Queue) -> None:
    job = queue.enqueue("echo a", delay="1h").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            await pilot.press("e")
            await fill(pilot, {"priority": "high"})
            await until(lambda: "priority" in text_of(app, "#say"), what="a refusal")
            await pilot.press("e")
            await fill(pilot, {"priority": "7", "queue": "mail", "timeout": "90s", "max-attempts": "9"})
            await until(lambda: text_of(app, "#say") == f"edited {job}", what="the edit")
            await pilot.press("C")
            await fill(pilot, {"command": "echo b"})
            await until(lambda: len(states_of(app)) == 2, what="the clone")
            await pilot.press("R")
            await until(lambda: text_of(app, "#say") == f"made due {job}", what="the job to be due")

    play(scene)
    edited = queue.get(job)
    assert (edited.command, edited.queue, edited.priority, edited.timeout) == ("echo a", "mail", 7, 90)
    (clone,) = [one for one in queue.jobs() if one.id != job]
    assert (clone.command, clone.queue, clone.priority, clone.timeout) == ("echo b", "mail", 7, 90)
    assert edited.run_at < clone.run_at


def test_marked_jobs_are_edited_together(home: Path, queue: Queue) -> None:
    ids = [queue.enqueue("true").id for _ in range(3)]

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 3, what="the jobs")
            await pilot.press("a", "plus")
            await until(lambda: "press e" in text_of(app, "#say"), what="the hint")
            await pilot.press("e")
            await fill(pilot, {"priority": "4"})
            await until(lambda: text_of(app, "#say") == "3 jobs edited", what="the result")

    play(scene)
    assert {queue.get(one).priority for one in ids} == {4}
    assert {queue.get(one).queue for one in ids} == {"default"}


def test_an_id_is_copied(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            await pilot.press("y")
            assert app.clipboard == job
            assert text_of(app, "#say") == f"copied {job}"

    play(scene)


def test_a_filter_is_a_query_with_completion(home: Path, queue: Queue) -> None:
    mail = queue.enqueue("send MAIL", queue="mail").id
    held = queue.enqueue("send mail", queue="other", priority=2).id
    queue.cancel(held)

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 2, what="the jobs")
            await pilot.press("slash")
            await until(lambda: isinstance(app.screen, Prompt), what="the line")
            line = app.screen.query_one(Input)
            await pilot.press(*"mail", "space", *"queue:m")
            await until(lambda: line._suggestion == "mail queue:mail", what="the completion")
            await pilot.press("right", "enter")
            await until(lambda: list(states_of(app)) == [mail], what="the job that matches")
            assert "mail queue:mail" in titles_of(app, "#jobs")[0]
            await pilot.press("s")
            await until(lambda: isinstance(app.screen, Menu), what="the states")
            await pilot.press("x")
            await until(lambda: not states_of(app), what="no job in this state")
            assert jobs_of(app).filter.query == "state:cancelled mail queue:mail"
            await pilot.press("slash")
            await until(lambda: isinstance(app.screen, Prompt), what="the line again")
            await pilot.press(*" nonsense:x", "enter")
            await until(lambda: "unknown qualifier" in text_of(app, "#say"), what="a refusal")
            assert jobs_of(app).filter.query == "state:cancelled mail queue:mail"
            await pilot.press("escape")
            await until(lambda: len(states_of(app)) == 2, what="all jobs")

    play(scene)
