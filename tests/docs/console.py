"""The terminal sessions in the pages: ```console blocks, run on a pseudo-terminal and compared with their output.

    $ queuectl enqueue --id hello 'echo hi'     a command; `> ` continues it on the next line
    hello                                       its output
    queued in …                                 `…` stands for anything in a line; alone on one, for any lines
    (exit 1)                                    its exit status, if it is not 0

Times, ages, durations, generated IDs and column widths may differ. All sessions of a page share one shell, with its
directory, variables and data directory.

`python -m tests.docs.console PAGE` runs a page and prints its sessions with their real output, for authors of pages.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.docs.relay import START, relay
from tests.program import environment

COLUMNS = 100
ANY = "…"
HOME = "/home/you"  # the home directory in the pages

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATUS = re.compile(r"\(exit (\d+)\)")
# Encloses the status of each command; no program here prints this character.
_MARK = "\x1e"
# Text, cursor up, erase line; colors and other cursor movements are dropped.
_SCREEN = re.compile(r"([^\x1b\r\n]+)|\x1b\[(\d+)A|\x1b\[(2?K)|\x1b\[[0-9;?]*[A-Za-z]|([\r\n])")

# Values that differ between runs, and their placeholders.
_FLEETING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?|\b\d\d:\d\d:\d\d\b"), "<moment>"),
    (re.compile(r"\b(now|\d+[smhd] ago)\b"), "<age>"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s)\b"), "<duration>"),
    (re.compile(r"\bpid \d+"), "<pid>"),
    (re.compile(r"\bw-[a-z0-9]{5}\b"), "<worker>"),
    (re.compile(r"\b[a-z][a-z0-9]{9}\b"), "<id>"),
    (re.compile(r" +"), " "),
)


class Step(NamedTuple):
    """A command of a session with the output and status on the page."""

    line: int
    command: str
    shown: list[str]
    status: int


class Played(NamedTuple):
    """The real output and status."""

    shown: list[str]
    status: int


def steps(page: str) -> list[Step]:
    """Return every command of every session of a page, in order."""
    found: list[Step] = []
    for block in _BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(1)) + 1
        found += _steps(block[1].splitlines(), first)
    return found


def _steps(lines: list[str], first: int) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(lines, first):
        if line.startswith("$ "):
            if step is not None:
                yield step
            step = Step(number, line[2:], [], 0)
            continue
        assert step is not None, f"line {number}: a session begins with a command"
        if line.startswith("> ") and not step.shown:
            step = step._replace(command=f"{step.command}\n{line[2:]}")
        elif status := _STATUS.fullmatch(line):
            step = step._replace(status=int(status[1]))
        else:
            step.shown.append(line)
    if step is not None:
        yield step


def agrees(shown: list[str], really: list[str]) -> bool:
    """Return whether the page shows the real output, except for values that differ between runs."""
    pattern = "".join(r"(?:.*\n)*" if line == ANY else f"{_pattern(_lasting(line))}\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{_lasting(line)}\n" for line in really)) is not None


def _lasting(line: str) -> str:
    for fleeting, name in _FLEETING:
        line = fleeting.sub(name, line)
    return line.strip()


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split(ANY)))


def play(commands: list[str], folder: Path) -> list[Played]:
    """Run the commands in one shell with the home directory `folder`."""
    (folder / "bin").mkdir()
    session = folder / "bin" / "session"
    with session.open("w") as script:
        for number, command in enumerate(commands):
            part = folder / "bin" / f"{number}.sh"
            part.write_text(command + "\n")
            # Sourced by the shell itself, so that `cd` and `export` persist.
            script.write(f". {part}\nprintf '\\036%d\\036' $?\n")
        # Terminate processes that a page leaves running. A correct page leaves none.
        script.write("queuectl worker stop --now >/dev/null 2>&1\n")
    with relay(folder / "bin" / "queuectl"):
        screen = _run_on_terminal(["sh", str(session)], cwd=folder, env=session_environment(folder))
    parts = screen.replace(str(folder), HOME).split(_MARK)[:-1]
    return [Played(_lines(text), int(status)) for text, status in zip(parts[::2], parts[1::2], strict=True)]


def session_environment(folder: Path) -> Mapping[str, str]:
    path = os.pathsep.join(filter(None, (str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])))
    extra = {
        "HOME": str(folder),
        "PATH": path,
        "NO_COLOR": "1",
        "TERM": "xterm",
        **START,
    }
    return environment(folder, {**extra, "QUEUECTL_HOME": None})


def _run_on_terminal(words: list[str], *, cwd: Path, env: Mapping[str, str]) -> str:
    """Return everything printed on a pseudo-terminal, until the last process has closed it."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    process = subprocess.Popen(
        words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    screen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # EIO: no process has it open any more
            break
        if not data:
            break
        screen += data
    os.close(ours)
    process.wait(timeout=20)
    return screen.decode()


def _lines(screen: str) -> list[str]:
    """Return the final content of the screen, without progress bars that were cleared."""
    rows, row, column = [""], 0, 0
    for text, up, erased, control in _SCREEN.findall(screen):
        if text:
            rows[row] = rows[row][:column].ljust(column) + text + rows[row][column + len(text) :]
            column += len(text)
        elif up:
            row = max(0, row - int(up))
        elif erased:
            rows[row] = rows[row][:column] if erased == "K" else ""
        elif control == "\r":
            column = 0
        elif control == "\n":
            row += 1
            rows += [""] * (row == len(rows))
    while rows and not rows[-1].strip():
        rows.pop()
    return [line.rstrip() for line in rows]


def main() -> None:
    page = Path(sys.argv[1]).read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        told = steps(page)
        for step, really in zip(told, play([step.command for step in told], Path(folder)), strict=False):
            same = agrees(step.shown, really.shown) and step.status == really.status
            sys.stdout.write(f"{'  ' if same else '! '}$ {step.command}\n")
            sys.stdout.writelines(f"  {line}\n" for line in really.shown)
            if really.status:
                sys.stdout.write(f"  (exit {really.status})\n")


if __name__ == "__main__":
    main()
