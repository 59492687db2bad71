"""The server stops while commands follow jobs: they survive a short outage, and report a long one correctly."""

from __future__ import annotations

import subprocess

from tests.e2e.hosts import Hosts, server_of
from tests.e2e.scene import Scene
from tests.wait import wait_until


class Onlooker:
    """A command that goes on beside the test; what it says goes to a file."""

    def __init__(self, scene: Scene, *words: str) -> None:
        self._file = scene.path(f"{words[0]}-{len(list(scene.directory.iterdir()))}.out")
        with self._file.open("wb") as out:
            self.process = scene.queuectl.start(*words, stdout=out, stderr=subprocess.STDOUT)

    @property
    def said(self) -> str:
        return self._file.read_text()

    def has_said(self, text: str) -> None:
        wait_until(lambda: text in self.said, what=f"{text!r} to be said")

    def end(self) -> tuple[int, str]:
        return self.process.wait(40), self.said


def test_following_commands_survive_a_restart_of_the_server(fragile: Hosts) -> None:
    a, b = fragile("a", "b")
    a.configure(backoff_base=1)  # makes the store
    a.worker()
    run = Onlooker(b, "run", "--id", "job", f"echo one; {a.note('begun')}; {a.until('go')}; echo two")
    a.wait_for_file("begun")
    wait = Onlooker(b, "wait", "--json", "job")
    watch = Onlooker(b, "status", "--watch", "--json")
    watch.has_said('"processing": 1')
    logs = Onlooker(b, "logs", "-f", "--no-markers", "job")
    logs.has_said("one\n")  # by now wait, which was started before, looks on, too
    server_of(fragile).halt()
    wait_until(lambda: b.queuectl("status").code == 1, what="the server to be gone")
    server_of(fragile).start()
    a.open("go")
    assert run.end() == (0, "one\ntwo\n")
    assert logs.end() == (0, "one\ntwo\n")
    code, said = wait.end()
    assert (code, said[:1]) == (0, "[")
    watch.has_said('"completed": 1')
    watch.process.terminate()
    watch.process.wait()


def test_when_the_server_stays_away_run_says_that_the_job_goes_on(fragile: Hosts) -> None:
    a, b = fragile("a", "b")
    a.configure(backoff_base=1)  # makes the store
    a.worker("--count", "2")
    command = f"{a.note('begun')}; {a.until('go')}"
    plain = Onlooker(b, "run", "--id", "plain", command)
    for_programs = Onlooker(b, "run", "--json", "--id", "json", command)
    a.wait_for_lines("begun", 2)
    server_of(fragile).halt()
    for run, name in ((plain, "plain"), (for_programs, "json")):
        code, said = run.end()
        assert code == 1
        assert "cannot reach the database" in said
        assert "try again" not in said
        assert f"the job keeps running; to follow it: queuectl logs -f {name}" in said
    server_of(fragile).start()
    a.open("go")
    for name in ("plain", "json"):
        a.wait_for(name, "completed")
