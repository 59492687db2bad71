"""One invocation: its flags, its streams and their colors, and its connection to the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from queuectl.clock import Clock, SystemClock
from queuectl.config import Here, actor, db_address, environ, here, home_path, host_name, load_settings
from queuectl.errors import OutputFailed
from queuectl.paths import trusts_home
from queuectl.settings import Settings
from queuectl.text import escape_control

if TYPE_CHECKING:
    from queuectl.jobs.model import Worker
    from queuectl.jobs.spec import QueueDefaults
    from queuectl.maintenance.lock_breaker import LockBreaker
    from queuectl.store.enqueue import EnqueueStore
    from queuectl.store.reads import Reads
    from queuectl.store.store import Store

LOCK_NOTICE_SECONDS = 2.0  # of waiting for a locked database, before a message about it
MIN_WIDTH = 20
WIDTH_WITHOUT_TERMINAL = 80


_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "orange": "38;5;208",
}


def paint(text: str, style: str | None, *, color: bool) -> str:
    """`text` in `style`, one or more names ("bold red"); unchanged without a style or without color."""
    if not color or not style or not text:
        return text
    return f"\x1b[{';'.join(_CODES[name] for name in style.split())}m{text}\x1b[0m"


class Flags:
    """The options that every command has. The rightmost one of the command line wins."""

    home: str | None = None
    db: str | None = None
    json = False
    fields: tuple[str, ...] = ()  # of each job in JSON; all of them if empty
    quiet = False
    no_color = False
    trust_home = False


class App:
    def __init__(
        self,
        *,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        clock: Clock | None = None,
    ) -> None:
        self.flags = Flags()
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.environ: Mapping[str, str] = environ()
        self.clock: Clock = clock or SystemClock()
        self._store: Store | None = None
        self._reads: Store | None = None
        self._inbox: EnqueueStore | None = None
        self._is_found = False
        self._breaker: LockBreaker | None = None
        self._has_reported_lock = False  # during the current wait

    # ── database ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def home(self) -> str:
        return home_path(self.flags.home)

    @property
    def db(self) -> str | None:
        return db_address(self.flags.db)

    @property
    def trusts_home(self) -> bool:
        return trusts_home(self.home, self.environ, flag=self.flags.trust_home)

    def check_trust(self) -> None:
        """Raise NotTrusted if another user could have written to the data directory or the database."""
        if not self.trusts_home:
            from queuectl.store.open import check_trust

            check_trust(self.home, self.db)

    @property
    def host(self) -> str:
        """The name of this host in the history of jobs."""
        return host_name(self.environ)

    @property
    def store_line(self) -> str | None:
        """A line that names the database, if it is not the default one of the data directory."""
        from queuectl.store.open import store_shown

        shown = store_shown(self.home, self.db)
        return None if shown is None else f"database: {escape_control(shown)}"

    def open_store(self) -> Store:
        """Open the database to write; create it and the data directory if they are missing. Validate all input before."""
        if self._store is None:
            from queuectl.store.open import open_store

            self._store = open_store(self.home, self.db, self.clock, on_wait=self.on_locked)
            self._store.actor = actor(self.environ)
        return self._store

    def open_enqueuer(self) -> EnqueueStore:
        """Open the database to add jobs only: fewer modules to import."""
        from queuectl.store.open import open_enqueuer

        found = self._enqueuer(open_enqueuer)
        assert found is not None
        return found

    def find_enqueuer(self) -> EnqueueStore | None:
        """As `open_enqueuer`, for a database that exists; None if there is none, and none is created."""
        from queuectl.store.open import find_enqueuer

        return self._enqueuer(find_enqueuer)

    def _enqueuer(self, opening: Callable[..., EnqueueStore | None]) -> EnqueueStore | None:
        if self._store is not None:
            return self._store
        if self._inbox is None:
            self._inbox = opening(self.home, self.db, self.clock, on_wait=self.on_locked)
            if self._inbox is not None:
                self._inbox.actor = actor(self.environ)
        return self._inbox

    def open_reads(self) -> Reads:
        """Open the database to read. If there is none, an empty store in memory stands in for it; nothing is created."""
        if self._store is not None:
            return self._store
        if self._reads is None or not self._is_found:
            from queuectl.store.open import explain_read_only, open_reads, store_exists, store_path

            # A database created meanwhile (`status --watch`) replaces the stand-in.
            self._is_found = store_exists(self.home, self.db)
            if self._reads is None or self._is_found:
                with explain_read_only(lambda: store_path(self.home, self.db)):
                    self._reads = open_reads(self.home, self.db, self.clock, on_wait=self.on_locked)
        return self._reads

    @property
    def settings(self) -> Settings:
        """The settings in force: environment over stored over default, without the flags of the command."""
        return load_settings(self.open_reads().config(), self.environ)

    @property
    def queue_defaults(self) -> QueueDefaults:
        """Defaults of single queues for the fields of jobs."""
        return self.open_reads().queue_defaults()

    def on_locked(self, path: str, waited: float, stored: Callable[[], Mapping[str, str]]) -> str | None:
        """Called while a command waits for a locked database: see maintenance/lock_breaker.py."""
        if waited < LOCK_NOTICE_SECONDS:
            self._has_reported_lock = False
        elif not self._has_reported_lock:
            self._has_reported_lock = True
            self.say("the database is locked by another program; waiting for it, up to 30 s in all")
        if self._breaker is None:
            from queuectl.maintenance.lock_breaker import LockBreaker

            self._breaker = LockBreaker(self.environ, self.clock, on_kill=lambda killed: self.warn(killed.message))
        return self._breaker(path, stored)

    # ── workers: modules of maintenance/ are imported on use, since most commands need none ─────────────────────────────

    @cached_property
    def here(self) -> Here:
        return here(self.environ)

    def is_alive(self, worker: Worker) -> bool:
        """Whether its process is alive; true for a worker on another host."""
        from queuectl.maintenance.liveness import is_alive

        return is_alive(worker, here=self.here)

    def is_serving(self, worker: Worker) -> bool:
        """Whether it is alive and its heartbeat is not older than the lease."""
        from queuectl.maintenance.liveness import is_serving

        now_ms = self.open_reads().now_ms()
        return is_serving(worker, here=self.here, now_ms=now_ms, lease_ms=lambda: self.settings.lease_ms)

    def rescue(self, *, spare: bool) -> None:
        """Rescue the jobs of dead workers of this host. `spare`: let runs go on that were not cancelled."""
        from queuectl.maintenance.rescuer import rescue_dead

        rescue_dead(self.open_store(), here=self.here, clock=self.clock, settings=self.settings, spare=spare)

    def close(self) -> None:
        for opened in (self._store, self._inbox, self._reads):
            if opened is not None:
                opened.close()
        self._store = self._inbox = self._reads = None

    # ── streams ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def stdout_is_terminal(self) -> bool:
        return self.stdout.isatty()

    @property
    def stderr_is_terminal(self) -> bool:
        return self.stderr.isatty()

    @property
    def stdin_bytes(self) -> BinaryIO:
        return self.stdin.buffer

    def print(self, line: str, *, flush: bool = False) -> None:
        self.write(line + "\n", flush=flush)

    def write(self, text: str, *, flush: bool = False) -> None:
        with self._failures():
            self.stdout.write(text)
            if flush:
                self.stdout.flush()

    def write_bytes(self, data: bytes) -> None:
        """Write bytes unchanged, and flush."""
        with self._failures():
            self.stdout.flush()
            self.stdout.buffer.write(data)
            self.stdout.buffer.flush()

    def discard_output(self) -> None:
        """Discard buffered output, and all that follows: otherwise the interpreter reports an error at exit."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stdout.fileno())
        os.close(nowhere)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise  # the reader of the pipe has exited, which is not an error
        except OSError as error:
            raise OutputFailed(error.strerror or str(error)) from error

    @property
    def shows_messages(self) -> bool:
        """Whether to print messages: on a terminal, and without --json or --quiet."""
        return self.stderr_is_terminal and not self.flags.json and not self.flags.quiet

    def say(self, line: str) -> None:
        """Print a message on stderr, if messages are wanted."""
        if self.shows_messages:
            self.warn(line)

    def warn(self, line: str) -> None:
        """Print a warning on stderr, also without a terminal; not with --json, where stderr holds errors only."""
        if not self.flags.json:
            self.write_stderr(line + "\n")

    def write_stderr(self, text: str) -> None:
        self.stdout.flush()  # keep the order of output: stdout may be buffered
        self.stderr.write(text)
        self.stderr.flush()

    def color_on(self, stream: TextIO) -> bool:
        if not stream.isatty() or self.flags.no_color or self.environ.get("TERM") == "dumb":
            return False
        return not self.environ.get("NO_COLOR")  # an empty one counts as unset: no-color.org

    def paint(self, text: str, style: str | None) -> str:
        """`text` in `style` if stdout shows colors. Escape control characters of `text` first."""
        return paint(text, style, color=self.color_on(self.stdout))

    @property
    def width(self) -> int | None:
        """The columns of the terminal on stdout; None for a pipe or file, where nothing is truncated."""
        return self.width_of(self.stdout) if self.stdout_is_terminal else None

    @property
    def height(self) -> int:
        """The lines of the terminal on stdout."""
        try:
            return os.get_terminal_size(self.stdout.fileno()).lines or 24
        except (OSError, ValueError):
            return 24

    def width_of(self, terminal: TextIO) -> int:
        # Not shutil.get_terminal_size: shutil imports all archive modules.
        columns = self.environ.get("COLUMNS", "")
        if columns.isdecimal() and len(columns) < 10 and int(columns) > 0:
            return max(MIN_WIDTH, int(columns))
        try:
            return max(MIN_WIDTH, os.get_terminal_size(terminal.fileno()).columns or WIDTH_WITHOUT_TERMINAL)
        except (OSError, ValueError):  # the terminal does not report its size, or the stream has no descriptor
            return WIDTH_WITHOUT_TERMINAL
