"""Moves what jobs print from their pipes into their logs.

Each run has one pipe for its standard output and standard error. Only the supervisor writes what comes out of it, so a log has a limit
however fast a job prints: a job that prints faster waits, as for any pipe. Children that a job leaves behind have the pipe, too, and it
is read until the last of them has ended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from queuectl.clock import SystemClock
from queuectl.logs.last_line import OutputTail
from queuectl.logs.markers import lost_line
from queuectl.logs.writer import LogWriter

if TYPE_CHECKING:
    from queuectl.logs.redaction import Redactor

READ_SIZE: Final = 256 * 1024
# After a write failed: output is dropped meanwhile, and counted.
RETRY_AFTER: Final = 1.0
# Reads at the end of a run: a child that continues to print cannot hold up its end.
MAX_READS_AT_END: Final = 16
SPARE_DESCRIPTORS: Final = 64  # for other things than pipes and logs
MAX_DESCRIPTORS: Final = 1 << 20  # where there is no limit

Secrets = Sequence[tuple[str, bytes]]  # by name


class RunOutput:
    """The reading end of the pipe of one run, and its log."""

    __slots__ = (
        "dropped",
        "fd",
        "is_announced",
        "is_open",
        "is_watched",
        "problem",
        "redactor",
        "retry_at",
        "tail",
        "token",
        "watch_at",
        "writer",
    )

    def __init__(self, token: str, fd: int, writer: LogWriter, redactor: Redactor | None) -> None:
        self.token = token
        self.fd = fd
        self.is_announced = False  # the worker knows where the output begins
        self.is_open = True
        self.is_watched = False  # the selector reports that its pipe is readable
        self.watch_at = 0.0
        self.writer = writer
        self.redactor = redactor
        self.dropped = 0  # bytes that could not be written and that the log does not mention yet
        self.problem = ""
        self.retry_at = 0.0
        self.tail = OutputTail()

    @property
    def last_line(self) -> str | None:
        return self.tail.last_line(has_secrets=self.redactor is not None)

    def note_failure(self, exc: OSError) -> None:
        self.problem = exc.strerror or str(exc)


def max_runs() -> int:
    """How many runs one supervisor can have at once: each needs a pipe and a log."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ((MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard) - SPARE_DESCRIPTORS) // 2


class OutputCollector:
    """Registers its pipes with `selector`; call `collect` when one is readable."""

    def __init__(self, selector: selectors.BaseSelector, limit: int) -> None:
        self._selector = selector
        self._limit = limit
        self._clock = SystemClock()
        self._open: set[RunOutput] = set()
        self._unwatched: deque[RunOutput] = deque()  # in this order
        self._max_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def __bool__(self) -> bool:
        """Whether a process may still print."""
        return bool(self._open)

    def open(
        self,
        token: str,
        log: str,
        head: Callable[[], bytes],
        secrets: Secrets = (),
        *,
        is_first: bool,
        watch_at: float = 0.0,
        reader: int | None = None,
    ) -> tuple[RunOutput, int]:
        """Create the pipe of a run. Returns it with its writing end, which the caller closes. `head` returns the START marker, which
        is written before the first byte of output. `watch_at`: its output may wait until then, unless the run ends before; by then, call
        `watch`. `reader`: a user that may read the log, and open the pipe. Raises OSError."""
        if 2 * len(self._open) + SPARE_DESCRIPTORS > self._max_descriptors:
            self._raise_limit()
        fd, out = os.pipe()
        os.set_blocking(fd, False)  # only our end: the other one belongs to the job
        if reader is not None:
            with contextlib.suppress(OSError):  # otherwise a shell could not open it again for `> /dev/stdout`
                os.fchown(out, reader, -1)
        writer = LogWriter(log, head, is_first=is_first, limit=self._limit, reader=reader)
        output = RunOutput(token, fd, writer, _redactor(secrets))
        self._open.add(output)
        if watch_at:
            output.watch_at = watch_at
            self._unwatched.append(output)
        else:
            self._watch(output)
        return output, out

    @property
    def watch_at(self) -> float | None:
        """When to call `watch`; None: not before another run starts."""
        while self._unwatched and not self._unwatched[0].is_open:
            self._unwatched.popleft()
        return self._unwatched[0].watch_at if self._unwatched else None

    def watch(self, now: float) -> None:
        """Register the pipes of the runs whose output has waited long enough."""
        while (at := self.watch_at) is not None and at <= now:
            self._watch(self._unwatched.popleft())

    def _watch(self, output: RunOutput) -> None:
        self._selector.register(output.fd, selectors.EVENT_READ, output)
        output.is_watched = True

    def set_limit(self, limit: int) -> None:
        """Limit the size of every log, from now on."""
        self._limit = limit
        for output in self._open:
            output.writer.limit = limit

    def collect(self, output: RunOutput) -> bool:
        """Move what has been printed. False if there was nothing."""
        if not output.is_open:
            return False
        try:
            data = os.read(output.fd, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self.close(output)
            return False
        if output.redactor is not None:
            data = output.redactor.feed(data)
        if data:
            self._write(output, data)
        return True

    def finish(self, output: RunOutput, end: Callable[[], bytes] | None) -> int | None:
        """The run has ended: move what it has printed, and write the END marker, if there is one to write and the run has a log. Returns
        where the output ends, None if that was not written. Processes that it has left behind may continue to print."""
        for _ in range(MAX_READS_AT_END):
            if not self.collect(output):
                break
        self._flush_redactor(output)
        if output.dropped:  # the last chance to mention it before the END marker
            output.retry_at = 0.0
            self._write(output, b"")
        if end is not None:
            try:
                return output.writer.end(end, has_followers=output.is_open)
            except OSError as exc:
                output.note_failure(exc)
        return None

    def close(self, output: RunOutput) -> None:
        if output.is_open:
            output.is_open = False
            self._flush_redactor(output)
            if output.is_watched:
                self._selector.unregister(output.fd)
            os.close(output.fd)
            self._open.discard(output)
        output.writer.close()

    def _raise_limit(self) -> None:
        """Allow more descriptors, up to the hard limit. Jobs inherit it: so only when there are many."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._max_descriptors = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
        with contextlib.suppress(OSError, ValueError):  # more than this system allows
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._max_descriptors, hard))

    def _flush_redactor(self, output: RunOutput) -> None:
        """Write what may have been the beginning of a secret: nothing follows."""
        if output.redactor is not None and output.redactor.is_holding:
            self._write(output, output.redactor.feed(b"", is_last=True))

    def _write(self, output: RunOutput, data: bytes) -> None:
        output.tail.add(data)
        now = self._clock.monotonic()
        if output.dropped and now < output.retry_at:
            output.dropped += len(data)
            return
        writer = output.writer
        before = writer.written
        try:
            if output.dropped:
                writer.append_line(lost_line(output.dropped, output.problem))
                output.dropped = 0
                before = writer.written
            if data:
                writer.append(data)
        except OSError as exc:
            # The job is worth more than its log: it continues.
            output.dropped += len(data) - (writer.written - before)
            output.note_failure(exc)
            output.retry_at = now + RETRY_AFTER


def _redactor(secrets: Secrets) -> Redactor | None:
    if not secrets:
        return None
    from queuectl.logs.redaction import Redactor  # here, since few jobs have secrets

    return Redactor(value for _, value in secrets)
