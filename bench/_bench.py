"""Common parts of the benchmarks: data directories, alternating rounds, and a report with targets.

A figure is a ratio or a bound, never an absolute time. Peers run in alternating rounds on the same host, so that other load
affects all of them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_GET_FLAGS, _SET_FLAGS, _TOP_OF_A_TREE = 0x80086601, 0x40086602, 0x00020000  # of linux/fs.h
IN_MEMORY = {"tmpfs", "ramfs"}

sys.path.insert(0, str(ROOT / "src"))  # measure this checkout, whether it is installed or not

# ── a place to work ─────────────────────────────────────────────────────────────────────────────────────────────────


class Lab:
    """A directory on a real disk for data directories, and the commands to run in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._homes = 0
        script = Path(sys.executable).with_name("queuectl")
        self.queuectl = [str(script)] if script.exists() else [sys.executable, "-m", "queuectl"]

    def new_home(self) -> Path:
        # Always a new one, and none is removed before the end: see `_spread`.
        self._homes += 1
        return self.path / f"home-{self._homes}"

    def environment(self, home: Path | None = None) -> dict[str, str]:
        """Return the environment without variables that change the start of Python or queuectl, such as disabled bytecode."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "QUEUECTL_"))}
        if len(self.queuectl) > 1:
            env["PYTHONPATH"] = str(ROOT / "src")
        if home is not None:
            env["QUEUECTL_HOME"] = str(home)
        return env

    def run(self, *words: str, home: Path | None = None, stdin: IO[bytes] | None = None, **variables: str) -> bytes:
        """Run queuectl and return its output. `variables` are added to its environment."""
        return run([*self.queuectl, *words], env={**self.environment(home), **variables}, stdin=stdin)

    def time(self, *words: str, home: Path | None = None) -> float:
        """Return the seconds from fork to exit of queuectl. Its output is discarded."""
        return time_command([*self.queuectl, *words], env=self.environment(home))


@contextmanager
def lab() -> Iterator[Lab]:
    path = Path(tempfile.mkdtemp(prefix="queuectl-bench-", dir=_real_disk()))
    _spread(path)
    try:
        yield Lab(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _real_disk() -> str:
    """Return a directory on a real disk, because a sync is free in memory."""
    if folder := os.environ.get("BENCH_DIR"):
        return folder
    folders = [folder for folder in (tempfile.gettempdir(), "/var/tmp", str(ROOT)) if os.access(folder, os.W_OK)]
    return next((folder for folder in folders if file_system(folder) not in IN_MEMORY), folders[0])


def _spread(folder: Path) -> None:
    """Place each subdirectory in another part of the disk, on ext4.

    ext4 skips every inode that was freed in the last minutes, one by one. After some thousand files were
    removed, creating a file takes ten times as long. With the flag of `chattr +T`, files that were removed nearby do not
    matter.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
        fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", flags | _TOP_OF_A_TREE))
    except OSError:
        pass  # not supported by this file system
    finally:
        os.close(fd)


def file_system(path: str | Path) -> str:
    """Return the type of the file system of `path`: ext4, tmpfs ..."""
    found = ("", "?")
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "?"
    for _, point, kind, *_ in map(str.split, mounts):
        if Path(os.path.realpath(path)).is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]


def run(argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: IO[bytes] | None = None) -> bytes:
    return subprocess.run(argv, env=env, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout


def time_command(argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: Path | None = None) -> float:
    with open(stdin or os.devnull, "rb") as source:
        began = time.perf_counter()
        subprocess.run(argv, env=env, stdin=source, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began


# ── rounds ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Samples = dict[str, list[float]]


def rounds(contenders: Mapping[str, Callable[[], float]], *, count: int, seconds: float, warm_up: int = 1) -> Samples:
    """Run each contender once per round, in turn (A B A B ...), and collect their results.

    Stop after `count` rounds, or after the first one that ends past `seconds`. Warm-up rounds do not count.
    """
    samples: Samples = {name: [] for name in contenders}
    began = time.perf_counter()
    for number in range(-warm_up, count):
        for name, measure in contenders.items():
            value = measure()
            if number >= 0:
                samples[name].append(value)
        if number >= 0 and time.perf_counter() - began > seconds:
            break
    return samples


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], part: float) -> float:
    """Return the smallest value that at least this fraction of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(part * len(ordered) + 0.5) - 1))]


def paired(samples: Samples, over: str, under: str) -> float:
    """Return the median of over / under per round, which excludes what slows down a whole round."""
    return median([a / b for a, b in zip(samples[over], samples[under], strict=True)])


# ── the verdict ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Figure(NamedTuple):
    """One figure of SPEC.md section 7, and whether it meets its target."""

    name: str
    value: float
    target: float
    more_is_better: bool = False
    unit: str = ""

    @property
    def is_reached(self) -> bool:
        return self.value >= self.target if self.more_is_better else self.value <= self.target

    def row(self) -> tuple[str, ...]:
        sign = "≥" if self.more_is_better else "≤"
        verdict = "reached" if self.is_reached else "MISSED"
        return self.name, f"{self.value:.3g}{self.unit}", f"{sign} {self.target:g}{self.unit}", verdict


class Report:
    """The rows and figures of one benchmark, and its exit status."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._rows: list[tuple[str, ...]] = []
        self._figures: list[Figure] = []
        self._notes: list[str] = []

    def row(self, *cells: str) -> None:
        self._rows.append(cells)

    def figure(self, figure: Figure) -> None:
        self._figures.append(figure)

    def note(self, text: str) -> None:
        """Add a line of text below the rows."""
        self._notes.append(text)

    def close(self, *, check: bool) -> int:
        print(f"\n{self._title}  ({os.cpu_count()} cores, Python {sys.version.split()[0]})\n")
        _print_rows(self._rows)
        if self._notes:
            print("\n".join(f"  {note}".rstrip() for note in self._notes), end="\n\n")
        _print_rows([figure.row() for figure in self._figures])
        return int(check and not all(figure.is_reached for figure in self._figures))


def _print_rows(rows: Sequence[tuple[str, ...]]) -> None:
    if rows:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            print("  " + "   ".join([first.strip().ljust(widths[0]), *rest]))
        print()


def main(benchmark: Callable[[Lab], Report], description: str) -> None:
    """Run one benchmark as a program: `--check` exits with 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    asked = parser.parse_args()
    with lab() as place:
        report = benchmark(place)
    sys.exit(report.close(check=asked.check))
