"""What jobs print, on its way from a pipe into a log.

Each run has one pipe, for its stdout and its stderr. The keeper alone writes what comes out of it, so a log can have a limit
however fast a job prints: a job that prints faster than we write waits, as for any pipe. Children that a job leaves behind
have the pipe too, and it is read until the last of them is gone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
from collections.abc import Iterator
from typing import Final

from queuectl.clock import SystemClock
from queuectl.logs.bounds import gone_line, limit_words, lost_line
from queuectl.logs.files import begin_log
from queuectl.logs.writing import Writing
from queuectl.process.orders import CannotLog
from queuectl.process.pipe import NO_PIPE, Pipe, redactor_of
from queuectl.process.relief import Gone, Masks, Relief

# Most jobs end before this, and print little: what is in their pipe is read at their end, and nobody is woken up for it.
YOUNG: Final = 0.005
# From one pipe at a time, so that none waits long for the others: more than a pipe holds, unless a job has made it larger.
AT_ONCE: Final = 256 * 1024
# After a log could not be written: what is printed meanwhile is thrown away.
PAUSE: Final = 1.0
# Descriptors that are for other things than pipes.
SPARE: Final = 64
RESERVED: Final = 4
# Bytes that are moved in one turn to cut a log.
MOST_TO_CUT: Final = 4 * 1024 * 1024
# At the end of a job, so that a child of it that goes on printing cannot hold it.
MOST_AT_END: Final = 16


class Pump:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._clock = SystemClock()
        self._ready = select.epoll()
        self._young: dict[int, Pipe] = {}  # the oldest first
        self._watched: dict[int, Pipe] = {}
        self._holding: dict[int, Pipe] = {}
        # Of those that are young: most of them are written to once more, at the end, and that soon.
        self._logs: dict[str, Writing] = {}
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._relief = Relief()
        self._room = bytearray(AT_ONCE)
        self._view = memoryview(self._room)

    def __bool__(self) -> bool:
        """Whether somebody may still print."""
        return bool(self._young or self._watched)

    def fileno(self) -> int:
        """Becomes readable when there is something to move."""
        return self._ready.fileno()

    def open(
        self, log: str, head: bytes, masks: Masks = (), *, is_first: bool, reader: int | None = None
    ) -> tuple[Pipe, int]:
        """Begin the log of a run with this line, for `reader` to read, too; `masks` are taken out of what comes. Returns a pipe into it, and the descriptor to write to, which the caller
        closes. Where we have too few descriptors for the pipe, another process reads it, see relief.py. Raises CannotLog, or
        OSError for want of descriptors or processes."""
        if 2 * (len(self._young) + len(self._watched)) + SPARE > self._most:
            self._allow_more()
        fd, out = os.pipe2(os.O_CLOEXEC)
        try:
            is_full = out + 3 * RESERVED > self._most
            if is_full:
                self._make_way(out)
            log_from = self._begin(log, head, is_first=is_first, reader=reader)
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)  # our end only: the other one is the job's
            if reader is not None:
                with contextlib.suppress(OSError):  # or it could not open it anew, as a shell does for > /dev/stdout
                    os.fchown(out, reader, -1)
            if is_full:
                return self._hand_on(fd, log, log_from, masks), out
        except (CannotLog, OSError):
            self._let_go(log)
            os.close(fd)
            os.close(out)
            raise
        pipe = Pipe(fd, log, log_from, self._clock.monotonic(), redactor=redactor_of(masks))
        self._young[fd] = pipe
        return pipe, out

    def take(self, fd: int, log: str, log_from: int, masks: Masks = ()) -> Pipe:
        """Read a pipe that another has handed on to us. Raises OSError, and closes it."""
        try:
            if fd + 2 * RESERVED > self._most and self._watched:
                self._make_way(fd)
                return self._hand_on(fd, log, log_from, masks)
            pipe = Pipe(fd, log, log_from, 0.0, redactor=redactor_of(masks))
            self._watch(pipe)
        except OSError:
            os.close(fd)
            raise
        return pipe

    def limit_to(self, limit: int) -> None:
        """No log may be longer, from now on."""
        self.limit = limit
        self._relief.limit_to(limit)

    def patience(self) -> float | None:
        """For how many seconds nothing has to be done unless `fileno` says so; None: for ever."""
        if self._holding:
            return 0.0
        for pipe in self._young.values():
            return max(0.0, pipe.born + YOUNG - self._clock.monotonic())
        return None

    def turn(self) -> None:
        """Move some of what has come."""
        if self._young:
            self._watch_grown(self._clock.monotonic())
        if self._watched:
            for fd in {*self._holding, *(fd for fd, _ in self._ready.poll(0))}:
                self._move(self._watched[fd])

    def finish(self, pipe: Pipe, end: bytes | None) -> int | None:
        """Its job has ended: move what it has printed, and write the line that says so, if there is one to write. Returns where
        the output ends, if that was written. What the job has left running may go on."""
        if pipe.handed is not None:
            self._let_go_of_all()
            with contextlib.suppress(Gone):  # then what it has read is in the log, and no more will come
                return pipe.handed.finish(end)
        for _ in range(MOST_AT_END):
            if not self._move(pipe, most=None):
                break
        self._let_out(pipe)
        if pipe.lost:  # the last chance to say so before the end is written
            pipe.again_at = 0.0
            self._write(pipe, self._view[:0], most=None)
        log_to = None
        if end is not None:
            with contextlib.suppress(OSError), self._writing(pipe.log) as log:
                size = max(log.size, pipe.log_from)
                log.append_line(end)
                log_to = size
        self._let_go(pipe.log)
        return log_to

    def close(self, pipe: Pipe) -> None:
        self._let_go(pipe.log)
        if pipe.handed is not None:
            self._let_go_of_all()
            with contextlib.suppress(Gone):
                pipe.handed.close()
        self._close(pipe)

    def _close(self, pipe: Pipe) -> None:
        if pipe.is_closed:
            return
        if pipe.is_watched:
            self._ready.unregister(pipe.fd)
            del self._watched[pipe.fd]
        else:
            del self._young[pipe.fd]
        pipe.is_closed = True
        os.close(pipe.fd)

    # ── logs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, path: str, head: bytes, *, is_first: bool, reader: int | None) -> int:
        self._let_go(path)  # or we would wait for ourselves
        try:
            log = begin_log(path, head, is_first=is_first, limit=self.limit, reader=reader)
        except OSError as exc:
            raise CannotLog(exc) from exc
        self._logs[path] = log
        return log.size

    @contextlib.contextmanager
    def _writing(self, path: str) -> Iterator[Writing]:
        """Nobody else writes to it meanwhile; we have it open already, if we have begun it just now."""
        if (log := self._logs.get(path)) is not None and log.look_again():
            yield log
        else:
            self._let_go(path)
            with Writing(path, limit=self.limit) as log:
                yield log

    def _let_go(self, path: str) -> None:
        if (log := self._logs.pop(path, None)) is not None:
            log.close()

    def _let_go_of_all(self) -> None:
        """Before we wait for another, who may have to write to one of them: what a former run has left running prints there."""
        for path in [*self._logs]:
            self._let_go(path)

    # ── descriptors ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _make_way(self, fd: int) -> None:
        """Before anything is written: is there room for this one, and somebody who takes it on?"""
        if fd + RESERVED > self._most:  # or we could neither write a log nor look at a process
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._relief.raise_it(self.limit)

    def _hand_on(self, fd: int, log: str, log_from: int, masks: Masks) -> Pipe:
        self._let_go_of_all()
        handed = self._relief.take(fd, log, log_from, self.limit, masks)
        os.close(fd)
        return Pipe(NO_PIPE, log, log_from, 0.0, handed)

    def _allow_more(self) -> None:
        """Descriptors, as far as we may. Jobs are then allowed more, too: so only where there are very many."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = 1 << 20 if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._most, hard))

    def _watch_grown(self, now: float) -> None:
        for pipe in list(self._young.values()):
            if now - pipe.born < YOUNG:
                break
            self._let_go(pipe.log)
            del self._young[pipe.fd]
            self._watch(pipe)

    def _watch(self, pipe: Pipe) -> None:
        self._ready.register(pipe.fd, select.EPOLLIN)
        self._watched[pipe.fd] = pipe
        pipe.is_watched = True

    def _move(self, pipe: Pipe, *, most: int | None = MOST_TO_CUT) -> bool:
        """Whether there was something."""
        if pipe.is_closed:
            return False
        if pipe.held is not None:
            self._write(pipe, memoryview(pipe.held), most=most)
            return True
        try:
            count = os.readv(pipe.fd, (self._room,))
        except BlockingIOError:
            return False
        if not count:
            self._let_out(pipe)
            self._close(pipe)
            return False
        data = self._view[:count]
        self._write(pipe, data if pipe.redactor is None else pipe.redacted(data), most=most)
        return True

    def _let_out(self, pipe: Pipe) -> None:
        """What may have been the beginning of a secret: nothing more comes now."""
        if pipe.redactor is not None and pipe.redactor.is_holding:
            self._write(pipe, pipe.redacted(b"", is_last=True), most=None)

    def _write(self, pipe: Pipe, data: memoryview, *, most: int | None) -> None:
        """Into the log; or hold it, if the log has to be cut before, and that takes more than one turn."""
        now = self._clock.monotonic()
        if pipe.lost and now < pipe.again_at:
            pipe.lost += len(data)
            return
        written = 0
        try:
            with self._writing(pipe.log) as log:
                if not log.make_room(len(data), most=most):
                    if pipe.held is None:
                        pipe.held = bytes(data)
                        self._holding[pipe.fd] = pipe
                    return
                if not log.size:  # somebody has emptied it: its first line is ours all the same
                    log.append_line(gone_line(0, limit_words(self.limit)))
                if pipe.lost:
                    log.append_line(lost_line(pipe.lost, pipe.why))
                    pipe.lost = 0
                before = log.size
                try:
                    log.append(data)
                except OSError:
                    written = log.size - before
                    raise
        except OSError as exc:
            # The job is worth more than its log. It goes on, and so do we.
            pipe.lost += len(data) - written
            pipe.why = exc.strerror or str(exc)
            pipe.again_at = now + PAUSE
        if pipe.held is not None:
            pipe.held = None
            del self._holding[pipe.fd]
