"""Secrets do not leak: every file and every response is searched byte by byte for the secrets of a job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from queuectl.tui.job_screen import JobScreen
from queuectl.tui.log_pane import LogPane
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.postgres import dump as text_of_postgres
from tests.tui.view import lines_of, play, view
from tests.wait import until, wait_until
from tests.web.server import FULL, Server
from tests.webhooks.receiver import Receiver, receiving

OF_FILE = "correct-horse-battery-staple"
OF_COMMAND = "zm9vYmFyLXRvbGQtYnktY29tbWFuZA"
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
HIDDEN = [OF_FILE.encode(), OF_COMMAND.encode(), *(line.encode() for line in KEY.splitlines())]
SECRETS = ["PW=db-password", "TOKEN=api-token", "KEY=deploy-key"]

# All of its environment, words of its own, several in a row, and one in two pieces with a pause between them.
PRINTS = (
    'env; echo "pw=$PW."; printf "%s" "$TOKEN$TOKEN$PW"; echo; echo "$KEY" >&2; '
    f"printf {OF_FILE[:9]}; sleep 0.2; printf '%s\\n' {OF_FILE[9:]}"
)


class Searched:
    """A scene in which a job runs that prints all that it was given, and everything that there is to search afterwards."""

    def __init__(self, scene: Scene, receiver: Receiver) -> None:
        self.scene = scene
        self.receiver = receiver
        say = scene.queuectl
        say("secret", "set", "db-password", input=OF_FILE + "\n", check=0)
        say("secret", "set", "deploy-key", input=KEY, check=0)
        script = scene.path("provider")
        # From a file: not in its words, which everybody sees.
        scene.path("told").write_text(OF_COMMAND + "\n")
        script.write_text(f'#!/bin/sh\n[ "$1" = api-token ] && cat {scene.quoted("told")}\n')
        script.chmod(0o755)
        settings = scene.home / "secrets.toml"
        settings.write_text(f'command = ["{script}", "{{name}}"]\n')
        settings.chmod(0o600)
        scene.configure(webhook_allow_private="true", max_retries=1)

    def run(self) -> str:
        scene = self.scene
        command = f"{PRINTS}; {scene.note('printed')}; {scene.until('go')}; exit 3"
        job_id = scene.enqueue(
            command, secrets=SECRETS, on_failure=self.receiver.url, on_dead=self.receiver.url, tags=["private"]
        )
        scene.wait_for_lines("printed", 1)
        return job_id

    # ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Whatever there is in the home and beside it, but the secrets themselves."""
        theirs = {self.scene.home / "secrets" / "db-password", self.scene.home / "secrets" / "deploy-key"}
        theirs.add(self.scene.path("told"))
        for folder, _, names in os.walk(self.scene.directory):
            for path in (Path(folder, name) for name in names):
                if path not in theirs and path.is_file():
                    yield str(path), path.read_bytes()

    def processes(self) -> Iterator[tuple[str, bytes]]:
        """What `ps` shows of everybody, and the environment of those of ours that are not the job."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                yield f"/proc/{pid}/cmdline", Path(f"/proc/{pid}/cmdline").read_bytes()
                environ = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:  # gone, or not ours to look at
                continue
            is_ours = f"QUEUECTL_HOME={self.scene.home}".encode() in environ
            if is_ours and b"QUEUECTL_JOB_ID=" not in environ:
                yield f"/proc/{pid}/environ", environ

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def commands(self, job_id: str) -> Iterator[tuple[str, bytes]]:
        for words in (
            ("show", job_id), ("show", job_id, "--json", "--show-env"), ("list",), ("list", "--json"), ("dlq", "list", "--json"),
            ("logs", job_id), ("logs", "--no-markers", job_id), ("logs", "--tail", "5", job_id), ("logs", "--run", "1", job_id),
            ("logs", "-f", job_id), ("logs", "--state", "dead"), ("dlq", "show", job_id), ("explain", job_id),
            ("export", "--history"), ("export", "--show-env"), ("audit", "--json"), ("status", "--json"), ("metrics", "--json"),
            ("doctor", "--json"), ("secret", "list", "--json"), ("secret", "check", "api-token"), ("config", "list"),
            ("worker", "list", "--json"), ("clone", job_id, "--delay", "1h", "--json"), ("policy", "show"),
        ):  # fmt: skip
            done = self.scene.queuectl(*words)
            yield " ".join(words), (done.out + done.err).encode("utf-8", "surrogateescape")

    def http(self, server: Server, job_id: str) -> Iterator[tuple[str, bytes]]:
        api = (
            f"/jobs/{job_id}",
            f"/jobs/{job_id}/logs",
            f"/jobs/{job_id}/logs/lines",
            f"/jobs/{job_id}/logs/search?text=e",
            "/jobs",
            "/dlq",
            "/deaths",
            "/audit",
            f"/jobs/{job_id}/explain",
            "/doctor",
        )
        for path in api:
            yield path, server.http.get(path).content
        events = {"Accept": "text/event-stream"}
        yield "events", server.http.get(f"/jobs/{job_id}/logs", headers=events).content
        yield "followed", server.http.get(f"/jobs/{job_id}/logs", params={"follow": "true"}, headers=events).content
        yield "part", server.http.get(f"/jobs/{job_id}/logs", headers={"Range": "bytes=0-4000"}).content
        with server.client(FULL) as client:
            for page in (
                "/",
                "/jobs",
                f"/jobs/{job_id}",
                f"/enqueue?clone={job_id}",
                "/dlq",
                "/audit",
                "/settings",
                "/workers",
                f"/jobs/{job_id}/log",
            ):
                found = client.get(server.url + page, headers={"Cookie": ""}, follow_redirects=True)
                yield f"page {page}", found.content

    def top(self, job_id: str) -> bytes:
        """The page of the job, with all that is to be read of its log."""
        seen: list[str] = []

        async def look() -> None:
            async with view(self.scene.home, db=self.scene.db) as (app, _):
                await app.push_screen(JobScreen(self.scene.store.get(job_id), log_only=False))
                pane = lambda: lines_of(app.screen.query_one(LogPane))  # noqa: E731 - it is one line
                await until(lambda: isinstance(app.screen, JobScreen), what="the job's page")
                await until(lambda: any("--- END" in line for line in pane()), what="its log")
                seen.extend(pane())
                seen.append(app.export_screenshot())

        play(look)
        return "\n".join(seen).encode()


def search(found: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    """All of it, after a look at each."""
    seen = {}
    for name, data in found:
        for hidden in HIDDEN:
            assert hidden not in data, f"{hidden!r} is in {name}: {data[max(0, data.find(hidden) - 60) :][:200]!r}"
        seen[name] = data
    return seen


@pytest.fixture(params=["sqlite", "postgres"])
def searched(request: pytest.FixtureRequest) -> Iterator[Searched]:
    with receiving() as receiver:
        if request.param == "sqlite":
            yield Searched(request.getfixturevalue("scene"), receiver)
        else:
            hosts: Hosts = request.getfixturevalue("hosts")
            yield Searched(hosts("a")[0], receiver)


def test_no_file_and_no_answer_has_a_secret_that_a_job_was_given_and_printed(searched: Searched) -> None:
    scene = searched.scene
    with ExitStack() as stack:
        server = stack.enter_context(Server(scene.queuectl, scene.directory, db=scene.db))
        scene.worker("--log-format", "json", ready=False)
        job_id = searched.run()
        while_it_runs = search(searched.processes())
        assert any(name.endswith("environ") for name in while_it_runs)
        search(searched.files())
        scene.open("go")
        scene.wait_for(job_id, "dead")
        wait_until(lambda: len(searched.receiver.received) >= 2, what="both to be called")
        scene.queuectl("backup", str(scene.path("backup.db")), check=0)

        files = search(searched.files())
        assert any(name.endswith(f"{job_id}.log") for name in files)
        answers = search(searched.commands(job_id))
        assert b"pw=***.\n" in answers[f"logs {job_id}"]
        assert b"******\n" in answers[f"logs {job_id}"]
        told = search(searched.http(server, job_id))
        for name in (f"/jobs/{job_id}/logs", "events", "followed", "part", f"/jobs/{job_id}", f"page /jobs/{job_id}"):
            assert b"pw=***." in told[name], (name, told[name][:300])
        search((one.path, one.body) for one in searched.receiver.received)
        seen = search(iter([("top", searched.top(job_id))]))
        assert b"pw=***." in seen["top"]
        if scene.db is not None:
            search(iter([("dump", text_of_postgres(scene.db).encode())]))


def test_another_host_gets_what_a_job_printed_without_its_secrets(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.queuectl("secret", "set", "db-password", input=OF_FILE, check=0)
    a.worker()
    job_id = b.enqueue(f'echo "pw=$PW."; {a.until("go")}; echo "again $PW"', secrets=["PW=db-password"])
    wait_until(lambda: "pw=***." in b.queuectl("logs", job_id).out, what="its first words")
    a.open("go")
    b.wait_for(job_id, "completed")
    for host in (a, b):
        assert host.queuectl("logs", "--no-markers", job_id, check=0).out == "pw=***.\nagain ***\n"
    assert OF_FILE not in str(hosts.execute("select convert_from(data, 'UTF8') from queuectl.output"))


def test_a_child_reads_of_its_parent_what_anybody_may_read(scene: Scene) -> None:
    scene.queuectl("secret", "set", "db-password", input=OF_FILE, check=0)
    parent = scene.enqueue('echo "pw=$PW."', secrets=["PW=db-password"])
    child = scene.enqueue('cat "$QUEUECTL_PARENT_LOGS"/*.log', depends_on=[parent])
    scene.drain()
    assert "pw=***." in scene.queuectl("logs", child, check=0).out
