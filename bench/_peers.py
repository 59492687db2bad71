"""Other job queues and runners, if they are installed. None of them is required.

huey: `pip install huey` into .venv, or BENCH_HUEY=/path/to/python of an environment that has it.
procrastinate: the same with BENCH_PROCRASTINATE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HUEY_APP = """
import subprocess
from huey import SqliteHuey
huey = SqliteHuey(filename={path!r}, fsync=True, results=True)

@huey.task(retries=3)
def run(command):
    return subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL).returncode
"""
HUEY_ENQUEUE = """
import sys
from app import run
for _ in range(int(sys.argv[1])):
    run("true")
"""
HUEY_CONSUME = """
import sys, threading, time
from app import huey
jobs = int(sys.argv[1])
consumer = huey.create_consumer(workers=8, worker_type="thread", initial_delay=0.001, max_delay=0.01)
began = time.perf_counter()
consumer.start()
while huey.storage.queue_size() or huey.result_count() < jobs:
    time.sleep(0.002)
print(time.perf_counter() - began)
consumer.stop()
"""
HUEY_INSERT = """
import sys, time
from app import run
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    run("true")
print(time.perf_counter() - began)
"""


def huey_python() -> str | None:
    """Return a Python with huey, or None."""
    python = os.environ.get("BENCH_HUEY", sys.executable)
    has_it = subprocess.run([python, "-c", "import huey"], capture_output=True, check=False).returncode == 0
    return python if has_it else None


def huey(place: Path, python: str, jobs: int) -> float:
    """Return `true` tasks per second, stored beforehand."""
    _huey(place, python, HUEY_ENQUEUE, jobs)
    return jobs / float(_huey(place, python, HUEY_CONSUME, jobs))


def huey_enqueue(place: Path, python: str, jobs: int) -> float:
    """Return stored tasks per second."""
    return jobs / float(_huey(place, python, HUEY_INSERT, jobs))


def _huey(place: Path, python: str, program: str, jobs: int) -> bytes:
    place.mkdir(exist_ok=True)
    (place / "app.py").write_text(HUEY_APP.format(path=str(place / "huey.db")), encoding="utf-8")
    argv = [python, "-c", program, str(jobs)]
    return subprocess.run(argv, cwd=place, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def task_spooler(place: Path, jobs: int) -> float:
    """Return jobs per second, queued beforehand while one job holds the only slot."""
    place.mkdir()
    gate = place / "gate"
    os.mkfifo(gate)
    env = {**os.environ, "TS_SOCKET": str(place / "socket"), "TMPDIR": str(place), "TS_MAXFINISHED": str(jobs + 10)}

    def tsp(*words: str) -> None:
        subprocess.run(["tsp", *words], env=env, check=True, stdout=subprocess.DEVNULL)

    try:
        tsp("-S", "1")
        tsp("sh", "-c", f"read line < {gate}")
        for _ in range(jobs):
            tsp("sh", "-c", "true")
        began = time.perf_counter()
        tsp("-S", "9")  # the gate job holds one
        tsp("-w")
        seconds = time.perf_counter() - began
        with gate.open("w") as opened:
            opened.write("go\n")
        return jobs / seconds
    finally:
        tsp("-K")


def gnu_parallel(place: Path, jobs: int) -> float:
    place.mkdir()
    argv = ["parallel", "--will-cite", "-j8", "true", ":::", *map(str, range(jobs))]
    env = {**os.environ, "PARALLEL_HOME": str(place), "SHELL": "/bin/sh"}
    began = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return jobs / (time.perf_counter() - began)


# ── procrastinate ───────────────────────────────────────────────────────────────────────────────────────────────────

PROCRASTINATE_APP = """
import subprocess
import procrastinate
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo={url!r}))

@app.task(retry=3)
def run(command):
    return subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL).returncode
"""
PROCRASTINATE_DRAIN = """
import asyncio, sys, time
from app import app, run
jobs = int(sys.argv[1])

async def main():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await run.batch_defer_async(*({"command": "true"} for _ in range(jobs)))
        began = time.perf_counter()
        await app.run_worker_async(concurrency=8, wait=False, install_signal_handlers=False)
        seconds = time.perf_counter() - began
        done = await app.job_manager.list_jobs_async(status="succeeded")
        assert len(list(done)) == jobs
        print(seconds)

asyncio.run(main())
"""


def procrastinate_python() -> str | None:
    """Return a Python with procrastinate, or None."""
    python = os.environ.get("BENCH_PROCRASTINATE", sys.executable)
    has_it = subprocess.run([python, "-c", "import procrastinate"], capture_output=True, check=False).returncode == 0
    return python if has_it else None


def procrastinate(place: Path, python: str, url: str, jobs: int) -> float:
    """Return `true` tasks per second, stored beforehand in an empty database, without the start of Python."""
    place.mkdir()
    (place / "app.py").write_text(PROCRASTINATE_APP.format(url=url), encoding="utf-8")
    argv = [python, "-c", PROCRASTINATE_DRAIN, str(jobs)]
    said = subprocess.run(argv, cwd=place, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return jobs / float(said)
