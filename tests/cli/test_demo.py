from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from queuectl.cli.commands.demo import called
from tests.program import COMMAND, Program
from tests.terminal import Terminal, plain
from tests.wait import wait_until


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    return made


def processes_in(folder: Path) -> list[int]:
    """The processes whose data directory is in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if f"QUEUECTL_HOME={folder}/".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def test_the_demo_runs_all_commands_and_removes_everything(queuectl: Program, temporary: Path) -> None:
    done = queuectl("demo", env={"TMPDIR": str(temporary)}, check=0, timeout=40)
    assert done.err == ""
    assert "\x1b" not in done.out
    for printed in (
        "hello from job hello, run 1",
        "timeout after 1s",
        "cancelled hour",
        "requeued flaky",
        "try 3",
        "83.3%",
    ):
        assert printed in done.out
    assert list(temporary.iterdir()) == []
    assert processes_in(temporary) == []
    assert not queuectl.home.exists()


def test_the_demo_ends_with_a_command_that_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = tmp_path / "check out/.venv/bin"
    beside.mkdir(parents=True)
    python = str(tmp_path / "check out/scripts/../.venv/bin/python")
    assert called({"PATH": "/nowhere"}, python) == "queuectl"
    (beside / "queuectl").touch(0o755)
    assert called({"PATH": "/nowhere"}, python) == f"'{beside}/queuectl'"
    monkeypatch.chdir(tmp_path / "check out")
    assert called({"PATH": "/nowhere"}, python) == ".venv/bin/queuectl"
    assert called({"PATH": str(beside)}, python) == "queuectl"


@pytest.mark.parametrize(
    "moment, number, code",
    [
        ("--id hello", signal.SIGTERM, 143),
        ("worker start", signal.SIGINT, 130),
        ("started worker bee", signal.SIGTERM, 143),
        ("cancel hour", signal.SIGINT, 130),
        ("dlq retry", signal.SIGTERM, 143),
    ],
)
def test_an_interrupted_demo_removes_everything(
    queuectl: Program, temporary: Path, moment: str, number: signal.Signals, code: int
) -> None:
    with queuectl.start("demo", env={"TMPDIR": str(temporary)}, stdout=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if moment in line.decode():
                break
        demo.send_signal(number)
        demo.stdout.read()
        assert demo.wait(timeout=30) == code
    assert list(temporary.iterdir()) == []
    assert processes_in(temporary) == []


def test_a_demo_under_nohup_ignores_a_hangup(queuectl: Program, temporary: Path) -> None:
    arguments = ["nohup", *COMMAND, "demo"]
    env = queuectl.environment({"TMPDIR": str(temporary)})
    with subprocess.Popen(arguments, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if b"--id hello" in line:
                break
        demo.send_signal(signal.SIGHUP)
        demo.send_signal(signal.SIGTERM)
        demo.stdout.read()
        assert demo.wait(timeout=30) == 128 + signal.SIGTERM


def test_the_demo_is_colored_on_a_terminal_without_no_color(queuectl: Program, home: Path, temporary: Path) -> None:
    for env, is_colored in (({}, True), ({"NO_COLOR": "1"}, False)):
        terminal = Terminal(home, "demo", env={"TMPDIR": str(temporary), **env})
        terminal.wait_for("urgent")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 143
        assert ("\x1b[" in terminal.shown) is is_colored
        assert "$ queuectl enqueue --id hello" in plain(terminal.shown)
    wait_until(lambda: processes_in(temporary) == [])


def test_the_dashboard_demo_has_traffic_until_it_is_stopped(queuectl: Program, temporary: Path, tmp_path: Path) -> None:
    printed = tmp_path / "said"
    with printed.open("wb") as out:
        demo = queuectl.start("demo", "--dashboard", env={"TMPDIR": str(temporary)}, stdout=out, stderr=out)
    try:
        address = wait_until(
            lambda: re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", printed.read_text()),
            what="its address",
            timeout=40,
        )
        (home,) = temporary.iterdir()
        running = Program(home)
        wait_until(
            lambda: running("status", "--json", check=0).json["states"]["completed"] >= 3, what="some to be completed"
        )
        assert {one["name"] for one in running("queue", "list", "--json", check=0).json} >= {
            "mail",
            "images",
            "reports",
        }
        assert httpx.get(address[0], follow_redirects=True).status_code == 200
    finally:
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 130
    assert list(temporary.iterdir()) == []
    assert processes_in(temporary) == []


@pytest.mark.parametrize(
    "arguments", [("--dashboard", "--port", "x"), ("--dashboard", "--port", "65536"), ("--port", "80")]
)
def test_an_invalid_port_is_refused_before_any_output(
    queuectl: Program, temporary: Path, arguments: tuple[str, ...]
) -> None:
    done = queuectl("demo", *arguments, env={"TMPDIR": str(temporary)}, check=2)
    assert (done.out, [*temporary.iterdir()]) == ("", [])
    assert done.err.startswith("error: --port: ")
