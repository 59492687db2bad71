"""Every program that queuectl starts for a user passes the same gate: alert commands, secret providers, jobs of arrays and batches."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene
from tests.users import OTHER, me, other
from tests.wait import wait_until
from tests.webhooks.receiver import receiving

WEBHOOKS = "queuectl.webhooks"
VALUE = "correct-horse-battery"


class Strict(Scene):
    """A scene whose policy allows `good`, and no shell."""

    @property
    def good(self) -> Path:
        path = self.path("good")
        if not path.exists():
            path.write_text(f"#!/bin/sh\nenv | grep ^QUEUECTL_ | sort >> {self.quoted('ran')}\n")
            path.chmod(0o755)
        return path

    def policy(self, text: str = "") -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        path = self.home / "policy.toml"
        path.write_text(f'user = "{me()}"\nprograms = ["{self.good}"]\n{text}')
        path.chmod(0o600)

    @property
    def ran(self) -> dict[str, str]:
        path = self.path("ran")
        return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else {}

    def add_alert(self, command: str) -> None:
        words = ("alert", "add", "deaths", "--dead", "1", "--command", command)
        self.queuectl(*words, check=0, cwd=self.directory)

    def alert_job(self) -> dict[str, Any]:
        """The job of the alert, once a worker has dealt with it."""
        self.worker("-q", "default")
        self.enqueue(argv=["/nowhere"], max_retries=1)  # the policy refuses it, and it is dead
        wait_until(
            lambda: any(job["state"] in ("dead", "completed") for job in self.alert_jobs()), what="the alert job"
        )
        return self.alert_jobs()[0]

    def alert_jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.queuectl("list", "--queue", WEBHOOKS, "--json", check=0).json
        return found


@pytest.fixture
def strict(scene: Scene) -> Iterator[Strict]:
    found = Strict(scene.queuectl, scene.directory)
    found.policy()
    yield found
    found.end()


# ── alert commands ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_test_and_a_worker_refuse_an_alert_command_by_the_same_rule(strict: Strict) -> None:
    strict.add_alert(str(strict.good))
    tested = strict.queuectl("alert", "test", "deaths", check=1).err
    assert tested.startswith("error: the command of deaths is refused by policy: shell: ")
    rule = tested.splitlines()[0].partition("refused by policy: ")[2]
    assert strict.alert_job()["error"] == f"refused by policy: {rule}"
    assert strict.ran == {}


@pytest.mark.parametrize("limit", ["", 'max-timeout = "10s"\n'])
def test_a_test_and_a_worker_run_an_alert_command_that_the_policy_allows(strict: Strict, limit: str) -> None:
    strict.policy(f'{limit}[queues."{WEBHOOKS}"]\nshell = true\n')
    strict.add_alert(str(strict.good))
    assert strict.queuectl("alert", "test", "deaths", check=0).out == f"ran {strict.good}\n"
    assert strict.ran["QUEUECTL_ALERT_STATE"] == "test"
    job = strict.alert_job()
    assert (job["state"], job["error"]) == ("completed", None)
    assert strict.ran["QUEUECTL_ALERT_STATE"] == "firing"


def test_a_check_without_a_worker_asks_the_policy_and_keeps_the_message(strict: Strict) -> None:
    strict.queuectl("enqueue", "--id", "bad", "false", "--max-retries", "1", check=0)
    strict.drain()
    strict.add_alert(str(strict.good))
    answer = strict.queuectl("alert", "check", check=1)
    assert "not delivered: the command of deaths is refused by policy: shell: " in answer.out
    assert strict.queuectl("alert", "show", "deaths", "--json", check=0).json["untold"] == 1
    assert strict.ran == {}


def test_a_policy_can_be_named_for_a_test_and_a_check(strict: Strict) -> None:
    elsewhere = str((strict.home / "policy.toml").rename(strict.path("policy.toml")))
    strict.add_alert(str(strict.good))
    strict.queuectl("alert", "test", "deaths", "--policy", elsewhere, check=1)
    assert strict.ran == {}
    strict.queuectl("alert", "test", "deaths", check=0)


def test_an_alert_command_runs_in_an_allowed_directory_only(strict: Strict) -> None:
    strict.policy(f'directories = ["/nowhere"]\n[queues."{WEBHOOKS}"]\nshell = true\n')
    strict.add_alert(str(strict.good))
    answer = strict.queuectl("alert", "test", "deaths", check=1)
    assert "refused by policy: directories: " in answer.err


def test_a_test_of_an_alert_is_in_the_audit_log(strict: Strict) -> None:
    strict.add_alert("id")
    strict.queuectl("alert", "test", "deaths", check=1)
    newest = strict.queuectl("audit", "--json", check=0).json[0]
    assert (newest["what"], newest["subjects"]) == ("alert test", ["deaths"])


# ── variables that queuectl sets ────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_does_not_refuse_a_job_for_its_index_in_an_array(strict: Strict) -> None:
    job_id = strict.queuectl("enqueue", "--array", "7", "--", strict.good, "x", check=0).lines[0]
    strict.drain()
    assert strict.job(job_id)["state"] == "completed"
    assert strict.ran["QUEUECTL_ARRAY_INDEX"] == "7"


def test_a_policy_does_not_refuse_the_completion_job_of_a_batch_for_its_variables(strict: Strict) -> None:
    strict.policy("[queues.free]\nshell = true\n")
    words = ("--batch", "night", "--queue", "free", "--on-complete", str(strict.good))
    strict.queuectl("enqueue", *words, "true", check=0)
    strict.drain()
    assert (strict.ran["QUEUECTL_BATCH"], strict.ran["QUEUECTL_BATCH_COMPLETED"]) == ("night", "1")


@pytest.mark.parametrize(
    "variable", ["QUEUECTL_ARRAY_INDEX=$(id)", "QUEUECTL_ALERT_TEXT=x", "QUEUECTL_DB=/x", "QUEUECTL_BATCH=../x"]
)
def test_a_job_cannot_bring_a_variable_along_under_a_name_of_ours(strict: Strict, variable: str) -> None:
    job_id = strict.queuectl("enqueue", "--env", variable, "--", strict.good, "x", check=0).lines[0]
    strict.drain()
    assert strict.job(job_id)["error"].startswith("refused by policy: job-environment: ")


# ── secret providers ────────────────────────────────────────────────────────────────────────────────────────────────


def provide(scene: Scene, words: str = f"echo {VALUE}") -> Path:
    script = scene.path("provider")
    script.write_text(f"#!/bin/sh\n{words}\n")
    script.chmod(0o755)
    path = scene.home / "secrets.toml"
    path.write_text(f'command = ["{script}", "{{name}}"]\n')
    path.chmod(0o600)
    return script


def test_a_secret_provider_that_the_policy_does_not_allow_is_not_started(strict: Strict) -> None:
    strict.policy('secrets = ["db"]\n')
    provide(strict, f"touch {strict.quoted('asked')}; echo {VALUE}")
    job_id = strict.enqueue(argv=[str(strict.good)], secrets=["PW=db"], max_retries=1)
    strict.drain()
    assert "is refused by policy: programs: " in strict.job(job_id)["error"]
    assert "[secret-provider]" in strict.job(job_id)["error"]
    assert "is refused by policy: programs: " in strict.queuectl("secret", "check", "db", check=1).err
    assert not strict.path("asked").exists()


def test_the_rules_of_the_secret_provider_let_it_run_and_no_job(strict: Strict) -> None:
    script = provide(strict)
    # Neither directories nor max-timeout is about what queuectl itself chooses.
    strict.policy(
        f'secrets = ["db"]\n[secret-provider]\nprograms = ["{script}"]\ndirectories = ["/srv"]\nmax-timeout = "5s"\n'
    )
    job_id = strict.enqueue(argv=[str(strict.good)], secrets=["QPW=db"], max_retries=1)
    other_id = strict.enqueue(argv=[str(script)], queue="secret-provider", max_retries=1)
    strict.drain()
    assert strict.job(job_id)["state"] == "completed"
    assert strict.job(other_id)["error"].startswith("refused by policy: programs: ")
    strict.queuectl("secret", "check", "db", check=0)


def test_a_secret_provider_runs_as_the_user_that_the_policy_names(scene: Scene) -> None:
    user = other()
    scene.home.mkdir(mode=0o700, exist_ok=True)
    (scene.home / "secrets.toml").write_text('command = ["/bin/sh", "-c", "id -un; pwd", "{name}"]\n')
    (scene.home / "secrets.toml").chmod(0o600)
    policy = scene.home / "policy.toml"
    policy.write_text(f'user = "root"\nsecrets = ["*"]\n[secret-provider]\nuser = "{OTHER}"\n')
    policy.chmod(0o600)
    job_id = scene.enqueue('[ "$PW" = "$WANTED" ]', secrets=["PW=db"], env={"WANTED": f"{user.pw_name}\n/"})
    scene.drain()
    assert scene.job(job_id)["state"] == "completed", scene.job(job_id)["error"]


# ── calls of webhooks, which run our own program ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "argv, env",
    [
        (["dead", "a", "1", "--db", "/x"], {}),
        (["--db", "/x", "dead"], {}),
        (["dead", "--help", "1"], {}),
        (["dead", "a", "1"], {"QUEUECTL_DB": "/x"}),
        (["dead", "a", "1"], {"PYTHONSTARTUP": "/x"}),
        (["alert", "a", "firing"], {"QUEUECTL_HOME": "/x"}),
        (["alert", "a", "-v"], {}),
    ],
)
def test_a_row_that_is_not_exactly_a_call_of_ours_passes_the_policy_like_any_job(
    strict: Strict, argv: list[str], env: dict[str, str]
) -> None:
    job_id = strict.enqueue(argv=[str(strict.good)], max_retries=1, delay="1h")
    values = (json.dumps(["queuectl:webhook", *argv]), json.dumps(env), WEBHOOKS, job_id)
    with sqlite3.connect(strict.home / "queue.db") as db:
        db.execute("update jobs set argv = ?, env = ?, queue = ? where id = ?", values)
    db.close()
    strict.queuectl("run-now", job_id, check=0)
    strict.drain()
    assert strict.job(job_id)["error"].startswith("refused by policy: ")


def test_the_webhook_of_an_alert_is_called_whatever_the_policy_allows(strict: Strict) -> None:
    strict.policy("directories = []\n")
    with receiving() as receiver:
        strict.queuectl("alert", "add", "deaths", "--dead", "1", "--webhook", receiver.url, check=0)
        assert strict.alert_job()["state"] == "completed"
        assert len(receiver.received) == 1


def test_a_call_that_queuectl_has_stored_is_made_whatever_the_policy_allows(strict: Strict) -> None:
    strict.policy("directories = []\n")
    strict.queuectl("config", "set", "webhook-allow-private", "true", check=0)
    with receiving() as receiver:
        strict.enqueue(argv=["/nowhere"], on_dead=receiver.url)
        strict.drain()
        assert len(receiver.received) == 1
