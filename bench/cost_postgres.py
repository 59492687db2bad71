"""The cost of a job on PostgreSQL (WAL bytes, round trips, rows, CPU time), extrapolated to large numbers of jobs."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from _bench import Lab, Report, median
from _far import Far
from _million import fill, new_job
from _postgres import Server, main_with_server
from idle import on_core

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, settle
from queuectl.jobs.retry import RetryPolicy
from queuectl.operations.enqueue import gc_paused
from queuectl.store.open import open_store
from queuectl.store.types import ClaimRequest, End, NewWorker, Start

HISTORY = 1_000_000
CALLS, AT_ONCE = 400, 10_000
THOUSAND, LIVES = 1_000, 50
BATCHES = (1, 8, 50)
TRACED = 20  # calls whose messages are counted
SYNCS = 200
SECONDS_A_DAY = 86_400
A_DAY, WORKERS = 100_000_000, 1_000
POLL_SECONDS, HEARTBEAT_SECONDS = 1.0, 5.0  # the defaults

ROWS = "select sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) from pg_stat_user_tables"


class Cost(NamedTuple):
    """The cost of one call of an operation on `jobs` jobs; values are per call unless they are named per job."""

    jobs: int
    seconds: float
    client: float  # seconds of CPU time
    server: float
    records: float  # bytes of WAL
    images: float  # WAL bytes of full pages, written once each between two checkpoints
    entries: float  # of indexes
    rows: float
    syncs: float
    round_trips: float
    sent: float
    received: float

    def cells(self) -> tuple[str, ...]:
        each = self.jobs
        return (
            f"{self.round_trips / each:.3g}",
            f"{self.rows / each:.3g}",
            f"{self.entries / each:.3g}",
            f"{self.records / each:,.0f}",
            f"{self.images / each:,.0f}",
            f"{self.syncs / each:.2g}",
            f"{(self.sent + self.received) / each:,.0f}",
            f"{self.client / each * 1e3:.3f}",
            f"{self.server / each * 1e3:.3f}",
            f"{self.seconds / each * 1e3:.3f}",
        )


HEADS = ("trips", "rows", "entries", "WAL", "+ pages", "syncs", "wire", "CPU here", "CPU server", "time")
UNITS = ("", "", "", "bytes", "bytes", "", "bytes", "ms", "ms", "ms")


class Bench:
    """One worker without processes, with one store."""

    def __init__(self, lab: Lab, server: Server, url: str) -> None:
        self._server, self._url, self._home = server, url, str(lab.new_home())
        os.makedirs(self._home)
        self.store: Any = open_store(self._home, url)
        self.store.claims.register(NewWorker("w", "host", 1, self._home, 50, None)).close()
        self._claims: list[Claim] = []

    # ── what is measured ────────────────────────────────────────────────────────────────────────────────────────────

    def enqueue(self, jobs: int) -> None:
        self.store.enqueue([new_job(number) for number in range(jobs)])

    def claim(self, jobs: int) -> None:
        """Claim until `count` jobs are claimed, so that an exchange settles and claims the same number."""
        while len(self._claims) != jobs:
            self._claims = self.store.claims.exchange(
                "w",
                ends=[_end(claim) for claim in self._claims],
                claim=ClaimRequest(jobs, None, "host", self._home),
            ).claims

    def exchange(self, jobs: int) -> None:
        """Settle `count` jobs and claim as many, as a worker does."""
        request = ClaimRequest(jobs, None, "host", self._home)
        self._claims = self.store.claims.exchange(
            "w", ends=[_end(claim) for claim in self._claims], claim=request
        ).claims
        assert len(self._claims) == jobs

    def start(self, jobs: int) -> None:
        """Record the start, as a worker does for jobs that take longer than 20 ms."""
        self.store.claims.exchange("w", starts=[Start(claim, 1, 0.02, 0) for claim in self._claims[:jobs]])

    def live(self, jobs: int) -> None:
        """Enqueue jobs together, and claim and settle them 8 at a time."""
        self.enqueue(jobs)
        for _ in range(jobs // len(self._claims)):
            self.exchange(len(self._claims))

    def look(self, _: int) -> None:
        """Do what a worker with free slots does on a wake-up, or when it polls after a write."""
        self.store.claims.orders("w")
        self.store.claims.exchange("w", claim=ClaimRequest(8, ("unused",), "host", self._home))

    def poll(self, _: int) -> None:
        self.store.changed()

    def beat(self, _: int) -> None:
        self.store.claims.heartbeat("w", slots=8, stopping=False)
        self.store.config()

    # ── how it is measured ──────────────────────────────────────────────────────────────────────────────────────────

    def cost(self, verb: Callable[[int], None], jobs: int, *, calls: int = CALLS) -> Cost:
        for _ in range(10):  # the server prepares a statement at its third use
            verb(jobs)
        sent, received, trips = self._trace(verb, jobs, calls=min(calls, TRACED))
        with self._server.connect(self._url) as db, gc_paused():
            db.execute("checkpoint")
            self._flush_counts()
            pids = [pid for (pid,) in db.execute("select pid from pg_stat_activity where pid <> pg_backend_pid()")]
            rows, syncs, lsn = self._rows(db), self._syncs(db), self._lsn(db)
            server, client, began = _on_cores(pids), time.process_time(), time.perf_counter()
            for _ in range(calls):
                verb(jobs)
            seconds, client = time.perf_counter() - began, time.process_time() - client
            server = _on_cores(pids) - server
            end = self._lsn(db)
            self._flush_counts()
            rows, syncs = self._rows(db) - rows, self._syncs(db) - syncs
        records, images, entries = self._read_wal(lsn, end)
        each = (seconds, client, server, records, images, entries, rows, syncs)
        return Cost(jobs, *(value / calls for value in each), trips, sent, received)

    def _trace(self, verb: Callable[[int], None], jobs: int, *, calls: int) -> tuple[float, float, float]:
        """Return bytes sent, bytes received, and round trips."""
        wire = self.store.db._session.pgconn  # noqa: SLF001 - the message trace of libpq
        with tempfile.TemporaryFile("w+") as file:
            wire.trace(file.fileno())
            for _ in range(calls):
                verb(jobs)
            wire.untrace()
            file.seek(0)
            messages = [line.split("\t")[1:3] for line in file if line.count("\t") >= 3]
        out = sum(int(size) for side, size in messages if side == "F")
        into = sum(int(size) for side, size in messages if side == "B")
        sides = [side for side, _ in messages]
        turns = sum(here == "F" and there == "B" for here, there in pairwise(sides))
        return out / calls, into / calls, turns / calls

    def _flush_counts(self) -> None:
        time.sleep(1.1)  # a session reports its statistics with the first transaction that ends a second later
        self.store.config()

    def _rows(self, db: Any) -> int:
        return sum(map(int, db.execute(ROWS).fetchone()))

    def _syncs(self, db: Any) -> int:
        modern = "select sum(fsyncs)::bigint from pg_stat_io where object = 'wal'"
        found = db.execute(modern if db.info.server_version >= 180000 else "select wal_sync from pg_stat_wal")
        return int(found.fetchone()[0])

    def _lsn(self, db: Any) -> str:
        return str(db.execute("select pg_current_wal_flush_lsn()").fetchone()[0])

    def _read_wal(self, begin: str, end: str) -> tuple[int, int, int]:
        """Return the bytes of WAL records, the bytes of full pages in them, and the number of index entries."""
        if begin == end:
            return 0, 0, 0
        argv = [self._server.programs / "bin" / "pg_waldump", "--stats=record", "-s", begin, "-e", end]
        argv += ["-p", self._server.data / "pg_wal"]
        said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        records = images = entries = 0
        for line in said.splitlines():
            if found := re.match(r"(\w+)/(\S+)\s+(\d+) \(.*?\)\s+(\d+) \(.*?\)\s+(\d+) \(", line):
                manager, name, count, size, page = found.groups()
                records, images = records + int(size), images + int(page)
                if manager == "Btree" and name.startswith("INSERT"):
                    entries += int(count)
        return records, images, entries


def cost(lab: Lab, server: Server) -> Report:
    report = Report("cost of a job on PostgreSQL")
    bench = Bench(lab, server, server.new_database())

    def measure(name: str, verb: Callable[[int], None], jobs: int, *, calls: int = CALLS) -> Cost:
        found = bench.cost(verb, jobs, calls=calls)
        report.row(name, *found.cells())
        return found

    report.row("per job", *HEADS)
    report.row("", *UNITS)
    enqueue = {1: measure("enqueue, 1 in a call", bench.enqueue, 1)}
    enqueue[AT_ONCE] = measure(f"enqueue, {AT_ONCE:,} in a call", bench.enqueue, AT_ONCE, calls=5)
    start, exchange = {}, {}
    for batch in BATCHES:
        bench.claim(batch)
        exchange[batch] = measure(f"settle and claim, {batch} in a call", bench.exchange, batch)
        start[batch] = measure(f"start, {batch} in a call", bench.start, batch)
    bench.claim(8)
    life = [measure(f"a life, {THOUSAND:,} at a time", bench.live, THOUSAND, calls=LIVES)]
    fill(bench.store, HISTORY)
    life.append(measure(f"the same behind {HISTORY:,} others", bench.live, THOUSAND, calls=LIVES))
    with server.connect() as db:
        db.execute("alter system set wal_compression = pglz")
        db.execute("select pg_reload_conf()")
    life.append(measure("the same with wal_compression", bench.live, THOUSAND, calls=LIVES))
    report.row("per action of an idle worker", *[""] * len(HEADS))
    look = measure("look for requested actions and jobs", bench.look, 1)
    poll = measure("check whether anything was written", bench.poll, 1)
    beat = measure("send the heartbeat", bench.beat, 1)

    report.note(
        f"The command `queuectl enqueue` takes {command_trips(lab, server)} round trips, including the connection."
    )
    rate = A_DAY / SECONDS_A_DAY
    report.note(f"{A_DAY:,} jobs a day are {rate:,.0f} a second. If they are")
    for words, way in (
        ("enqueued one by one, run one by one, each for 20 ms and more", [enqueue[1], start[1], exchange[1]]),
        ("enqueued in bulk, run by eights, each for 20 ms and more", [enqueue[AT_ONCE], start[8], exchange[8]]),
        ("enqueued in bulk, run by fifties, short", [enqueue[AT_ONCE], exchange[50]]),
    ):
        wal, cores = _a_job(way, "records"), _a_job(way, "server")
        report.note(
            f"- {words}: {wal * A_DAY / 1e9:,.0f} GB of WAL a day, {wal * rate / 1e6:.1f} MB/s; "
            f"{_a_job(way, 'rows') * rate:,.0f} rows/s; {_a_job(way, 'round_trips') * rate:,.0f} round trips/s; "
            f"{cores * rate:.2f} cores of the server, of which one is full at {1 / cores:,.0f} jobs/s"
        )
    few, many, squeezed = (f"{cost.images / cost.jobs * A_DAY / 1e9:,.0f} GB" for cost in life)
    report.note(
        f"and, with a checkpoint every {THOUSAND * LIVES:,} jobs, full pages in addition: {few}, {many} with {HISTORY:,} other jobs, "
        f"{squeezed} there with wal_compression"
    )
    sync = median(syncs(lab.path))
    report.note(f"A sync of this disk takes {sync * 1e3:.2f} ms: {1 / sync:,.0f} commits/s one after the other.")
    waiting = (poll.server + look.server) / POLL_SECONDS + beat.server / HEARTBEAT_SECONDS
    trips = (poll.round_trips + look.round_trips) / POLL_SECONDS + beat.round_trips / HEARTBEAT_SECONDS
    report.note("")
    report.note(
        f"{WORKERS:,} idle workers during constant writes: {2 * WORKERS:,} connections; {trips * WORKERS:,.0f} round trips/s; "
        f"{waiting * WORKERS:.2f} cores of the server;"
    )
    report.note(
        f"{beat.records * WORKERS / HEARTBEAT_SECONDS * SECONDS_A_DAY / 1e9:,.1f} GB of WAL a day for their heartbeats; "
        f"each wake-up takes {look.server * WORKERS:.2f} s of server CPU"
    )
    return report


def command_trips(lab: Lab, server: Server) -> int:
    """Return the round trips of one `enqueue` from a shell, without encryption and password."""
    far, home, url = Far(server.socket), lab.new_home(), urlsplit(server.new_database())
    db = urlunsplit(url._replace(netloc=f"postgres@127.0.0.1:{far.port}", query=""))
    lab.run("--db", db, "enqueue", "true", home=home)  # creates the tables
    before = far.round_trips
    lab.run("--db", db, "enqueue", "true", home=home)
    return far.round_trips - before


def syncs(folder: Path) -> list[float]:
    """Return the seconds to sync one page, as PostgreSQL does for its WAL."""
    found = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        file.write(bytes(8192 * SYNCS))
        os.fsync(file.fileno())
        file.seek(0)
        for _ in range(SYNCS):
            began = time.perf_counter()
            file.write(b"x" * 8192)
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - began)
    return found


def _a_job(way: Iterable[Cost], what: str) -> float:
    return sum(getattr(cost, what) / cost.jobs for cost in way)


def _end(claim: Claim) -> End:
    settlement = settle(claim, Exited(0), policy=RetryPolicy(1000, 0), chance=0.5)
    return End(claim, settlement, 1, 0.0, 0.0, 0, 0)


def _on_cores(pids: Iterable[int]) -> float:
    return sum(on_core(pid) for pid in pids if Path(f"/proc/{pid}").exists())


if __name__ == "__main__":
    main_with_server(cost, __doc__)
