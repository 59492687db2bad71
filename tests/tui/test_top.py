from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path

import pytest
from textual.worker import WorkerFailed

from queuectl.client import Queue
from queuectl.clock import SystemClock
from queuectl.jobs.resources import Usage, format_usage
from queuectl.jobs.states import State
from queuectl.paths import store_file
from queuectl.store.sqlite.store import SqliteStore
from queuectl.text import WEBHOOK_QUEUE
from queuectl.tui.app import TerminalFile
from queuectl.tui.job_screen import JobScreen
from queuectl.tui.log_pane import LogPane
from queuectl.tui.screens import Confirm, Help, Menu, Prompt
from tests.factories import new_job
from tests.program import WorkerProcess
from tests.tui.view import lines_of, play, rows_of, states_of, text_of, titles_of, view
from tests.wait import until

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def queue(home: Path) -> Iterator[Queue]:
    with Queue(home) as made:
        yield made


def test_a_home_without_a_store_is_shown_and_not_made(home: Path) -> None:
    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: "No jobs yet" in text_of(app, "#states"), what="the empty page")
            await pilot.press("c", "r", "h", "p", "plus", "minus", "l", "enter", "e", "d")
            assert text_of(app, "#say")

    play(scene)
    assert not home.exists()


def test_queues_workers_and_jobs_are_shown(home: Path, queue: Queue, start_worker: StartWorker) -> None:
    start_worker("--count", "2", "--name", "anna")
    running = queue.enqueue("sleep 60").id
    later = queue.enqueue("true", queue="mail", delay="1h", priority=7).id
    queue.set_queue("mail", paused=True)
    queue.set_queue("default", concurrency=3, rate="100/m")

    async def scene() -> None:
        async with view(home) as (app, _):
            await until(lambda: states_of(app).get(running) == "processing", what="the job to run")
            assert list(states_of(app)) == [running, later]
            assert "1 worker  1/2 busy" in text_of(app, "#head")
            assert "pending 1  processing 1" in text_of(app, "#states")
            assert rows_of(app, "#queues")["mail"] == ["mail", "1", "0", "paused"]
            assert rows_of(app, "#queues")["default"] == ["default", "0", "1", "3 100/m"]
            assert rows_of(app, "#workers")["anna"][:2] == ["anna", "1/2"]
            assert rows_of(app, "#jobs")[later][3] == "7"
            assert titles_of(app, "#jobs") == ("Jobs", "1 of 2")

    play(scene)


def test_calls_are_counted_only_where_their_queue_is_looked_at(home: Path, queue: Queue) -> None:
    queue.enqueue("true")
    with closing(SqliteStore(store_file(str(home)), clock=SystemClock())) as store:
        store.enqueue([new_job(queue=WEBHOOK_QUEUE), new_job(queue=WEBHOOK_QUEUE)])

    async def scene() -> None:
        async with view(home) as (app, _):
            await until(lambda: states_of(app), what="the job to be shown")
            assert titles_of(app, "#jobs") == ("Jobs", "1 of 1")

    play(scene)


def test_a_running_job_is_cancelled_after_a_question_and_retried(
    home: Path, queue: Queue, start_worker: StartWorker
) -> None:
    start_worker()
    job = queue.enqueue("sleep 60").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: states_of(app).get(job) == "processing", what="the job to run")
            await pilot.press("c")
            await until(lambda: isinstance(app.screen, Confirm), what="the question")
            await pilot.press("n")
            assert queue.get(job).state is State.PROCESSING
            await pilot.press("c", "y")
            await until(lambda: states_of(app).get(job) == "cancelled", what="the job to be cancelled")
            assert text_of(app, "#say") == f"cancelled {job}"
            await pilot.press("c")
            assert "cannot cancel" in text_of(app, "#say")
            await pilot.press("r")
            await until(lambda: states_of(app).get(job) == "processing", what="the job to run again")
            await pilot.press("c", "y")
            await until(lambda: states_of(app).get(job) == "cancelled", what="the job to be cancelled again")

    play(scene)


def test_waiting_jobs_are_held_released_and_go_sooner_or_later(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            await pilot.press("h")
            await until(lambda: states_of(app)[job] == "held", what="the job to be held")
            await pilot.press("h")
            await until(lambda: states_of(app)[job] == "pending", what="the job to be released")
            await pilot.press("plus")
            await until(lambda: rows_of(app, "#jobs")[job][3] == "1", what="the higher priority")
            await pilot.press("minus")
            await until(lambda: rows_of(app, "#jobs")[job][3] == "", what="the lower one")
            await pilot.press("r")
            await until(lambda: "cannot" in text_of(app, "#say") or "retry" in text_of(app, "#say"), what="a refusal")

    play(scene)
    assert queue.get(job).state is State.PENDING


def test_each_step_of_a_priority_counts_however_fast_they_come(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            await pilot.press(*["plus"] * 30)
            await until(lambda: rows_of(app, "#jobs")[job][3] == "30", what="all thirty steps")

    play(scene)


def test_a_removed_job_is_reported_also_if_its_id_is_a_prefix_of_others(home: Path, queue: Queue) -> None:
    for name in ("ab", "abc", "abd"):
        queue.enqueue("false", id=name, delay="1h")

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 3, what="the jobs")
            await pilot.press("enter")
            await until(lambda: "pending" in text_of(app, "#facts"), what="the facts")
            with sqlite3.connect(home / "queue.db") as store:  # as `reset` and `restore` would
                store.execute("delete from jobs where id = 'ab'")
            store.close()
            await until(lambda: text_of(app, "#facts") == "ab was removed", what="the word that it is gone")

    play(scene)


def test_a_queue_is_paused_and_resumed_and_its_jobs_chosen(home: Path, queue: Queue) -> None:
    here, there = queue.enqueue("true", queue="aa").id, queue.enqueue("true", queue="bb").id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 2, what="the jobs")
            await pilot.press("p")  # that of the job
            await until(lambda: isinstance(app.screen, Confirm), what="the question")
            await pilot.press("n")
            assert queue.queues()[0]["paused"] is False
            await pilot.press("p", "y")
            await until(lambda: rows_of(app, "#queues")["aa"][3] == "paused", what="the pause")
            await pilot.press("shift+tab", "shift+tab", "down", "p", "y")
            await until(lambda: rows_of(app, "#queues")["bb"][3] == "paused", what="the other pause")
            await pilot.press("p", "y")
            await until(lambda: rows_of(app, "#queues")["bb"][3] == "", what="the queue to go on")
            await pilot.press("enter")
            await until(lambda: list(states_of(app)) == [there], what="only its jobs")
            await pilot.press("escape")
            await until(lambda: list(states_of(app)) == [here, there], what="all jobs")

    play(scene)


def test_jobs_are_found_by_text_id_and_state(home: Path, queue: Queue) -> None:
    mail, wake = queue.enqueue("send mail").id, queue.enqueue("wake up").id
    gone = queue.cancel(queue.enqueue("other mail").id).id

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 3, what="the jobs")
            await pilot.press("slash")
            await until(lambda: isinstance(app.screen, Prompt), what="the line")
            await pilot.press(*"mail", "enter")
            await until(lambda: list(states_of(app)) == [mail, gone], what="those with the text")
            assert "Jobs  mail" in titles_of(app, "#jobs")[0]
            await pilot.press("s")
            await until(lambda: isinstance(app.screen, Menu), what="the states")
            await pilot.press("p")
            await until(lambda: list(states_of(app)) == [mail], what="the pending one of them")
            await pilot.press("escape", "slash", *wake[:9], "enter")
            await until(lambda: list(states_of(app)) == [wake], what="that of the id")

    play(scene)


def test_a_line_that_is_typed_is_enqueued(home: Path) -> None:
    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: text_of(app, "#states"), what="the page")
            await pilot.press("n", "escape")
            assert not os.path.exists(home)  # noqa: ASYNC240 - a moment
            await pilot.press("n", *"echo", "space", *"hi", "enter")
            await until(lambda: len(states_of(app)) == 1, what="the job")

    play(scene)
    with Queue(home) as queue:
        assert [job.command for job in queue.jobs()] == ["echo hi"]


def test_output_to_a_terminal_that_has_vanished_is_dropped() -> None:
    # An error would end the thread that writes, and the event loop would then wait for it forever.
    master, slave = os.openpty()
    terminal = os.fdopen(slave, "w")
    os.close(master)
    with pytest.raises(OSError, match="Input/output error"):
        print("lost", file=terminal, flush=True)
    file = TerminalFile(terminal)
    file.write("dropped")
    file.flush()
    with pytest.raises(OSError, match="Input/output error"):
        terminal.close()


def test_help_names_the_keys(home: Path) -> None:
    async def scene() -> None:
        async with view(home) as (app, pilot):
            await pilot.press("question_mark")
            await until(lambda: isinstance(app.screen, Help), what="the keys")
            await pilot.press("q")
            await until(lambda: len(app.screen_stack) == 1, what="the page again")
            await pilot.press("q")
            await until(lambda: not app.is_running, what="the end")

    play(scene)


def test_two_keys_at_a_time_leave_a_screen_once(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true", delay="1h")

    async def scene() -> None:
        async with view(home) as (app, _):
            await until(lambda: job.id in states_of(app), what="the job")
            below = JobScreen(job, log_only=False)
            await app.push_screen(below)
            answers: list[object] = []
            for above, left in ((Help(), "leave"), (Prompt("what?"), "leave"), (Confirm("sure?", ""), "answer(False)")):
                await app.push_screen(above, answers.append)
                for _ in range(2):  # as keys do that were both on their way to it
                    await app.run_action(left, above)
                await until(lambda above=above: not above.is_attached, what="the screen to be left")
                assert app.screen is below
            assert answers == [None, None, False]
            for _ in range(2):
                await app.run_action("leave", below)
            await until(lambda: not below.is_attached, what="the list again")
            assert app.is_running

    play(scene)


def test_an_unexpected_exception_ends_the_view_and_is_raised_to_the_caller(home: Path) -> None:
    async def scene() -> None:
        async with view(home) as (app, _):
            app.call_later(lambda: 1 / 0)
            await until(lambda: app.fault is not None, what="the end")
            assert not app._exit_renderables, "it would be printed with all that was in memory"

    with pytest.raises(ZeroDivisionError):
        play(scene)


def test_the_exception_of_a_background_worker_is_raised_with_its_own_traceback(home: Path) -> None:
    async def breaks() -> None:
        raise ZeroDivisionError

    async def scene() -> None:
        async with view(home) as (app, _):
            app.run_worker(breaks())
            await until(lambda: app.fault is not None, what="the end")
            assert isinstance(app.fault, ZeroDivisionError)
            assert traceback.extract_tb(app.fault.__traceback__)[-1].name == "breaks"

    with pytest.raises(WorkerFailed):  # the harness of textual raises its wrapper
        play(scene)


def test_a_job_and_its_log_are_shown_without_terminal_sequences(
    home: Path, queue: Queue, start_worker: StartWorker
) -> None:
    start_worker()
    script = r"printf '\033[31mred\033[0m \033]0;title\007\033[2Jplain \001\nhalf'; until [ -e go ]; do sleep 0.02; done; echo ' done'"
    job = queue.enqueue(script, cwd=str(home)).id
    go = home / "go"

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: states_of(app).get(job) == "processing", what="the job to run")
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, JobScreen), what="the job's page")
            await until(lambda: text_of(app, "#partial") == "half", what="the line that has begun")
            await until(lambda: "processing" in text_of(app, "#facts"), what="the facts")
            pane = app.screen.query_one(LogPane)
            assert pane.row_text(1) == "red plain \\x01"
            line = pane.render_line(1)
            assert any(part.style and part.style.color and part.style.color.number == 1 for part in line)
            go.touch()
            await until(
                lambda: any(line.startswith("half done") for line in lines_of(app.screen.query_one(LogPane))),
                what="the rest",
            )
            await until(lambda: "completed" in text_of(app, "#facts"), what="the end")
            await pilot.press("l")
            assert app.screen.has_class("-log-only")
            await pilot.press("q")
            await until(lambda: len(app.screen_stack) == 1, what="the page again")

    play(scene)


def test_limits_and_usage_of_a_job_are_shown_as_in_the_cli(home: Path, queue: Queue, start_worker: StartWorker) -> None:
    start_worker()
    free = queue.enqueue("true", id="free", delay="1h").id
    job = queue.enqueue("exit 3", id="bound", memory="2GiB", cpu_time=30, max_retries=1).id

    async def scene() -> None:
        async with view(home, size=(160, 40)) as (app, pilot):
            await until(lambda: states_of(app).get(job) == "dead", what="the end")
            await app.push_screen(JobScreen(queue.get(job), log_only=False))
            await until(lambda: "run 1" in text_of(app, "#facts"), what="the facts")
            lines = text_of(app, "#facts").splitlines()
            assert "limits memory 2GiB, cpu time 30s" in lines
            (run,) = queue.history(job)
            words = format_usage(Usage(**{name: run[name] for name in Usage._fields}))
            assert "memory" in words
            assert lines[-1].endswith(f"exit code 3  {words}")
            await pilot.press("q")
            await app.push_screen(JobScreen(queue.get(free), log_only=False))
            await until(lambda: text_of(app, "#facts").startswith(free), what="the facts of the other")
            assert "limits" not in text_of(app, "#facts")

    play(scene)


def test_the_last_run_of_a_job_is_shown_first(home: Path, queue: Queue, start_worker: StartWorker) -> None:
    start_worker()
    job = queue.enqueue("exit 3", max_retries=2, backoff_base=1).id

    async def scene() -> None:
        async with view(home, size=(160, 40)) as (app, _):
            await until(lambda: states_of(app).get(job) == "dead", what="the end")
            await app.push_screen(JobScreen(queue.get(job), log_only=False))
            await until(lambda: "run 2" in text_of(app, "#facts"), what="the facts")
            runs = [line[:5] for line in text_of(app, "#facts").splitlines() if line.startswith("run ")]
            assert runs == ["run 2", "run 1"]

    play(scene)


def test_a_command_can_neither_order_the_terminal_about_nor_be_markup(home: Path, queue: Queue) -> None:
    job = queue.enqueue("echo '\x1b[2J[bold]\n[/nonsense]'").id

    async def scene() -> None:
        async with view(home, size=(120, 30)) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            assert "echo '\\x1b[2J[bold]\\n[/nonsense]'" in rows_of(app, "#jobs")[job]
            await pilot.press("enter")
            await until(lambda: "[/nonsense]" in text_of(app, "#facts"), what="the facts")
            await pilot.press("q", "c")
            await until(lambda: isinstance(app.screen, Confirm), what="the question")

    play(scene)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
def test_it_fits_into_terminals_of_any_size(home: Path, queue: Queue, size: tuple[int, int]) -> None:
    ids = [job.id for job in queue.enqueue_many(["true"] * 60)]

    async def scene() -> None:
        async with view(home, size=size) as (app, pilot):
            await until(lambda: ids[0] in states_of(app), what="the jobs")
            await pilot.resize_terminal(40, 12)
            await pilot.resize_terminal(*size)
            await pilot.press("end", "home", "down", "enter")
            await until(lambda: isinstance(app.screen, JobScreen), what="a job")
            assert app.screen.job.id == ids[1]

    play(scene)


def test_an_answer_that_comes_before_its_screen_or_after_it_is_no_failure(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true")

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job.id in states_of(app), what="the job")
            screen = JobScreen(job, log_only=False)
            opened = app.push_screen(screen)
            await screen.refresh_job()
            await opened
            await pilot.press("escape")
            await until(lambda: not screen.is_attached, what="the list again")
            await screen.refresh_job()

    play(scene)


def test_the_cursor_stays_with_the_job_that_it_is_on(home: Path, queue: Queue) -> None:
    first, second = (queue.enqueue("true").id for _ in range(2))

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: len(states_of(app)) == 2, what="the jobs")
            await pilot.press("down")
            queue.cancel(first)
            await until(lambda: list(states_of(app)) == [second, first], what="the other order")
            assert app.job is not None
            assert app.job.id == second

    play(scene)


def test_a_missing_database_is_reported_until_it_is_back(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true").id
    queue.close()
    away = home.with_name("away")

    def put_back() -> None:
        assert not list(home.glob("queue.db")), "an empty store was made in its place"
        shutil.rmtree(home, ignore_errors=True)
        os.rename(away, home)

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            os.rename(home, away)
            await until(lambda: "was removed or replaced" in text_of(app, "#problem"), what="the problem")
            await pilot.press("h")
            await until(lambda: text_of(app, "#say"), what="a refusal")
            put_back()
            await until(lambda: not app.query_one("#problem").has_class("-shown"), what="the database again")
            await pilot.press("h")
            await until(lambda: states_of(app).get(job) == "held", what="the job to be held")

    play(scene)


class Slow(SystemClock):
    """By which everything takes minutes."""

    def __init__(self) -> None:
        self._said = count(SystemClock().monotonic() + 100, 100)

    def monotonic(self) -> float:
        return next(self._said)


def test_a_missing_database_is_reported_also_during_a_pause(home: Path, queue: Queue) -> None:
    queue.enqueue("true")
    away = home.with_name("away")

    async def scene() -> None:
        async with view(home) as (app, _):
            await until(lambda: states_of(app), what="the job")
            app._clock = Slow()
            second = queue.enqueue("true").id
            await until(lambda: second in states_of(app), what="a look that is slow")
            queue.close()
            os.rename(home, away)
            await until(lambda: "was removed or replaced" in text_of(app, "#problem"), what="the problem")

    play(scene)
    os.rename(away, home)


def test_a_store_that_is_locked_does_not_hold_the_screen(home: Path, queue: Queue) -> None:
    job = queue.enqueue("true").id
    queue.close()
    other = sqlite3.connect(home / "queue.db", isolation_level=None)

    async def scene() -> None:
        async with view(home) as (app, pilot):
            await until(lambda: job in states_of(app), what="the job")
            other.execute("begin immediate")
            await pilot.press("h", "question_mark")
            await until(lambda: isinstance(app.screen, Help), what="the keys, meanwhile")
            await pilot.press("q")
            other.execute("rollback")
            await until(lambda: states_of(app).get(job) == "held", what="the job to be held after all")
            other.execute("begin immediate")
            await pilot.press("h")
            await pilot.press("q")  # also ends what waits for the lock
            await until(lambda: not app.is_running, what="the end")

    play(scene)
    other.close()


def test_memory_does_not_grow_with_the_number_of_refreshes(home: Path, queue: Queue) -> None:
    ids = [job.id for job in queue.enqueue_many(["true"] * 30)]

    async def scene() -> None:
        async with view(home, size=(80, 24)) as (app, pilot):
            await until(lambda: len(states_of(app)) == 30, what="the jobs")

            async def look(times: int) -> int:
                for turn in range(times):
                    if turn % 20 == 0:
                        queue.edit(ids[turn % 30], priority=turn + times)
                    await app.refresh_all()
                await pilot.pause()
                gc.collect()
                return len(gc.get_objects())

            # What textual keeps for later is bounded and fills up in jumps; what leaks, leaks each time.
            counts = [await look(100) for _ in range(5)]
            assert min(after - before for before, after in pairwise(counts)) < 100

    play(scene)
