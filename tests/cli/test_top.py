from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.needs import FULL
from tests.program import COMMAND, Program, WorkerProcess
from tests.terminal import Terminal
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]

NORMAL_SCREEN, CURSOR = "\x1b[?1049l", "\x1b[?25h"


def test_on_a_terminal_a_job_is_seen_to_run_and_is_cancelled_by_a_key(
    queuectl: Program, home: Path, start_worker: StartWorker
) -> None:
    start_worker()
    job = queuectl("enqueue", "sleep 60", check=0).out.strip()
    terminal = Terminal(home, "top")
    terminal.wait_for(job)
    terminal.wait_for("processing")
    terminal.type("c")
    terminal.wait_for(f"Cancel job {job}")
    terminal.type("y")
    terminal.wait_for(f"cancelled {job}")
    assert queuectl("show", job, "--json", check=0).json["state"] == "cancelled"
    terminal.type("q")
    assert terminal.end() == 0
    assert NORMAL_SCREEN in terminal.shown
    assert terminal.shown.rindex(CURSOR) > terminal.shown.rindex("\x1b[?25l")


def test_ctrl_c_and_term_give_the_terminal_back(home: Path) -> None:
    for end in (lambda it: it.type("\x03"), lambda it: it.process.send_signal(signal.SIGTERM)):
        terminal = Terminal(home, "top")
        terminal.wait_for("No jobs yet")
        end(terminal)
        assert terminal.end() == 0
        assert NORMAL_SCREEN in terminal.shown
        assert "Traceback" not in terminal.shown
    assert not home.exists()


def test_without_colors_none_is_shown(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    for args, env in ((["top"], {"NO_COLOR": "1"}), (["top", "--no-color"], {})):
        terminal = Terminal(home, *args, env=env)
        terminal.wait_for("pending 1")
        terminal.type("q")
        assert terminal.end() == 0
        assert "\x1b[33m" not in terminal.shown
        assert ";33m" not in terminal.shown


@pytest.mark.parametrize("arguments", [["top"], ["top", "--json"]])
def test_top_without_a_terminal_suggests_status(queuectl: Program, arguments: list[str]) -> None:
    done = queuectl(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "top needs a terminal" in done.err
    assert "queuectl status --watch" in done.err
    assert not queuectl.home.exists()


def test_top_without_the_extra_prints_how_to_install_it(queuectl: Program) -> None:
    hidden = "import sys; sys.modules['textual'] = None; sys.argv = ['queuectl', 'top']; from queuectl.cli.main import main; main()"
    script = ["script", "-qec", subprocess.list2cmdline([sys.executable, "-c", hidden]), "/dev/null"]
    done = subprocess.run(script, env=queuectl.environment(), capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "top needs packages that are not installed" in done.stdout
    assert "pip install -e '.[tui]'" in done.stdout


def test_a_foreign_database_is_refused_before_anything_is_drawn(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, and has never been one" * 100)
    terminal = Terminal(home, "--db", str(tmp_path / "text.db"), "top")
    assert terminal.end() == 1
    assert "\x1b[?1049h" not in terminal.shown
    assert "is not a queuectl database" in terminal.shown


def test_only_top_loads_what_draws_it(queuectl: Program) -> None:
    code = "import sys; from queuectl.cli.main import run; run(['status']); sys.exit('textual' in sys.modules)"
    done = subprocess.run([COMMAND[0], "-c", code], env=queuectl.environment(), capture_output=True, timeout=30)
    assert done.returncode == 0


def test_top_draws_jobs_enqueued_meanwhile(queuectl: Program, home: Path) -> None:
    terminal = Terminal(home, "top", columns=120)
    terminal.wait_for("No jobs yet")
    job = queuectl("enqueue", "true", check=0).out.strip()
    wait_until(lambda: terminal.read() and job in terminal.shown, what="the job on the screen")
    terminal.type("q")
    assert terminal.end() == 0


def test_a_terminal_that_is_closed_without_a_signal_ends_top(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    terminal = Terminal(home, "top")
    terminal.wait_for("pending 1")
    terminal.close()
    terminal.process.wait(timeout=20)


def test_on_a_terminal_a_live_log_can_be_scrolled_and_searched(
    queuectl: Program, home: Path, start_worker: StartWorker
) -> None:
    start_worker()
    script = "i=0; while :; do i=$((i+1)); echo line $i; [ $i -lt 200 ] || sleep 0.05; done"
    job = queuectl("enqueue", script, check=0).out.strip()
    terminal = Terminal(home, "top")
    terminal.wait_for("processing")
    terminal.type("l")
    terminal.wait_for(f"Log of {job}")
    wait_until(lambda: terminal.read() and re.search(r"line [2-9]\d\d\b", terminal.shown), what="the live log")
    terminal.type("g")
    terminal.wait_for("scrolled")  # in the border
    wait_until(lambda: terminal.read() and re.search(r"line 2\b", terminal.shown), what="the first lines")
    seen = len(terminal.shown)
    terminal.type("/")
    terminal.wait_for("Search the log")
    terminal.type("line 150\r")
    wait_until(
        lambda: terminal.read() and re.search(r"line 15[1-9]\b", terminal.shown[seen:]),
        what="the line that is searched",
    )
    terminal.wait_for("1 of 1 line")
    # New lines are printed meanwhile: the view stays where it is.
    assert not re.search(r"line [2-9]\d\d\b", terminal.shown[seen:])
    terminal.type("\x03")
    assert terminal.end() == 0


def test_on_a_terminal_a_queue_is_paused_only_after_a_question(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    terminal = Terminal(home, "top")
    terminal.wait_for("pending 1")
    terminal.type("p")
    terminal.wait_for("Pause the queue default?")
    assert queuectl("queue", "list", "--json", check=0).json[0]["paused"] is False
    terminal.type("y")
    terminal.wait_for("paused the queue default")
    assert queuectl("queue", "list", "--json", check=0).json[0]["paused"] is True
    terminal.type("q")
    assert terminal.end() == 0


@pytest.mark.skipif(not FULL, reason="draws many screens")
@pytest.mark.timeout(120)
def test_a_terminal_that_vanishes_while_it_accepts_no_output_ends_top(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--array", "1-200", "true", check=0)
    terminal = Terminal(home, "top", columns=400)
    terminal.wait_for("pending 200")
    used = 0.0

    def is_blocked() -> bool:
        """More output than the terminal buffers, and nothing reads it: top waits until it can write."""
        nonlocal used
        terminal.type("21")
        before, used = used, sum(psutil.Process(terminal.process.pid).cpu_times()[:2])
        return used == before

    wait_until(is_blocked, every=0.5, timeout=60, what="top to wait for its terminal")
    terminal.close()
    terminal.process.wait(timeout=20)
