"""One invocation: its flags, its streams, and the way to the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, TextIO

from queuectl.cli.style import paint
from queuectl.clock import Clock, SystemClock
from queuectl.config import Settings, actor, db_address, environ, home_path, host_name, load_settings
from queuectl.errors import OutputFailed
from queuectl.home import trusts_home

if TYPE_CHECKING:
    from queuectl.job.newjob import QueueDefaults
    from queuectl.store.protocol import Inbox, Reads, Store
    from queuectl.upkeep.lock_breaker import LockBreaker

SAY_SO_AFTER = 2.0  # seconds of waiting for a locked database
NARROWEST = 20
WIDTH_WITHOUT_TERMINAL = 80


class Flags:
    """The options that every command has; the rightmost of the command line wins."""

    __slots__ = ("db", "home", "json", "no_color", "quiet", "trust_home")

    def __init__(self) -> None:
        self.home: str | None = None
        self.db: str | None = None
        self.json = False
        self.quiet = False
        self.no_color = False
        self.trust_home = False


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
        self.done: str | None = None  # what has happened for good: said if the answer itself cannot be printed
        self._store: Store | None = None
        self._reads: Reads | None = None
        self._inbox: Inbox | None = None
        self._is_found = False
        self._breaker: LockBreaker | None = None
        self._has_said_locked = False  # in this wait

    # ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────

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
        """The name that runs of this machine have in the store."""
        return host_name(self.environ)

    def open_store(self) -> Store:
        """The store, to write; home and store are made when they are missing. Validate what was said before."""
        if self._store is None:
            from queuectl.store.open import open_store

            self._store = open_store(self.home, self.db, self.clock, on_wait=self.on_locked)
            self._store.actor = actor(self.environ)
        return self._store

    def open_inbox(self) -> Inbox:
        """The store, to add jobs only: loads faster than all of it."""
        if self._store is not None:
            return self._store
        if self._inbox is None:
            from queuectl.store.open import open_inbox

            self._inbox = open_inbox(self.home, self.db, self.clock, on_wait=self.on_locked)
            self._inbox.actor = actor(self.environ)
        return self._inbox

    def open_reads(self) -> Reads:
        """The store, to look only; an empty one stands in for a missing one, and nothing is made."""
        if self._store is not None:
            return self._store
        if self._reads is None or not self._is_found:
            from queuectl.queue.look import looking
            from queuectl.store.open import open_reads, store_exists, store_path

            # One that is made while we look (`status --watch`) takes the place of its stand-in.
            self._is_found = store_exists(self.home, self.db)
            if self._reads is None or self._is_found:
                with looking(lambda: store_path(self.home, self.db)):
                    self._reads = open_reads(self.home, self.db, self.clock, on_wait=self.on_locked)
        return self._reads

    @property
    def settings(self) -> Settings:
        """What holds now: environment over stored over default. A command's own flags are not in it."""
        source = self._inbox if self._inbox is not None else self.open_reads()
        return load_settings(source.config(), self.environ)

    @property
    def queue_defaults(self) -> QueueDefaults:
        """What jobs of some queues get that do not say otherwise."""
        source = self._inbox if self._inbox is not None else self.open_reads()
        return source.queue_defaults()

    def on_locked(self, path: str, waited: float, stored: Callable[[], Mapping[str, str]]) -> str | None:
        """What a command does while it waits for a locked database: see upkeep/lock_breaker.py."""
        if waited < SAY_SO_AFTER:
            self._has_said_locked = False
        elif not self._has_said_locked:
            self._has_said_locked = True
            self.say("the store is locked by another program; waiting for it, up to 30 s in all")
        if self._breaker is None:
            from queuectl.upkeep.lock_breaker import LockBreaker

            self._breaker = LockBreaker(self.environ, self.clock, on_kill=lambda killed: self.warn(killed.message))
        return self._breaker(path, stored)

    def close(self) -> None:
        for opened in (self._store, self._inbox):
            if opened is not None:
                opened.close()
        self._store = self._inbox = None

    # ── the streams ─────────────────────────────────────────────────────────────────────────────────────────────────

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
        """Bytes as they are, and at once."""
        with self._failures():
            self.stdout.flush()
            self.stdout.buffer.write(data)
            self.stdout.buffer.flush()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise  # whoever read it has had enough: nothing to complain about
        except OSError as error:
            raise OutputFailed(error.strerror or str(error)) from error

    @property
    def is_talking(self) -> bool:
        """Whether words for people are wanted: on a terminal, and not beside output that a program asked for."""
        return self.stderr_is_terminal and not self.flags.json and not self.flags.quiet

    def say(self, line: str) -> None:
        """Words for people, on stderr."""
        if self.is_talking:
            # What was printed before has to be seen before, also when stdout is buffered.
            self.stdout.flush()
            self.stderr.write(line + "\n")
            self.stderr.flush()

    def warn(self, line: str) -> None:
        """One line on stderr that a script's log shall hold too; not with --json, where only errors stand there."""
        if not self.flags.json:
            self.stdout.flush()
            self.stderr.write(line + "\n")
            self.stderr.flush()

    def colour_on(self, stream: TextIO) -> bool:
        if not stream.isatty() or self.flags.no_color or self.environ.get("TERM") == "dumb":
            return False
        return not self.environ.get("NO_COLOR")  # an empty one counts as unset: no-color.org

    def paint(self, text: str, style: str | None) -> str:
        """`text` in `style` if stdout shows colours. `text` must be safe to print already."""
        return paint(text, style, colour=self.colour_on(self.stdout))

    @property
    def width(self) -> int | None:
        """The columns of the terminal on stdout, None where there is none: what goes into a pipe is never cut."""
        return self.width_of(self.stdout) if self.stdout_is_terminal else None

    def width_of(self, terminal: TextIO) -> int:
        # Not shutil.get_terminal_size: it loads every archive format that Python knows.
        columns = self.environ.get("COLUMNS", "")
        if columns.isdecimal() and len(columns) < 10 and int(columns) > 0:
            return max(NARROWEST, int(columns))
        try:
            return max(NARROWEST, os.get_terminal_size(terminal.fileno()).columns or WIDTH_WITHOUT_TERMINAL)
        except (OSError, ValueError):  # a terminal that does not say, or a stream of a test
            return WIDTH_WITHOUT_TERMINAL
