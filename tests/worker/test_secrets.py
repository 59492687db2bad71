"""Secrets of jobs: resolution, refusal, redaction, and that other jobs do not wait for a provider."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene
from tests.wait import wait_until

VALUE = "correct-horse-battery"


def keep(scene: Scene, name: str = "db", value: str = VALUE) -> Path:
    scene.queuectl("secret", "set", name, input=value, check=0)
    return scene.home / "secrets" / name


def provider(scene: Scene, words: str, timeout: str = "20s") -> Path:
    """Let a shell script tell secrets: `$1` is the name."""
    script = scene.path("provider")
    script.write_text(f"#!/bin/sh\n{words}\n")
    script.chmod(0o755)
    path = scene.home / "secrets.toml"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(f'command = ["{script}", "{{name}}"]\ntimeout = "{timeout}"\n')
    path.chmod(0o600)
    return path


def logged(scene: Scene, job_id: str, *options: str) -> str:
    return scene.queuectl("logs", "--no-markers", *options, job_id, check=0).out


def ended(scene: Scene, command: str, **fields: Any) -> dict[str, Any]:
    """The job, after its one run."""
    job_id = scene.enqueue(command, max_retries=1, **fields)
    scene.drain()
    return scene.job(job_id)


# ── from a file ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_finds_its_secret_in_its_environment(scene: Scene) -> None:
    keep(scene)
    job = ended(scene, f'[ "$PW" = {VALUE} ] && [ "$db" = {VALUE} ]', secrets=["PW=db", "db"])
    assert (job["state"], job["secrets"]) == ("completed", ["PW=db", "db"])


def test_a_secret_wins_over_other_variables_of_its_name(scene: Scene) -> None:
    keep(scene)
    job_id = scene.enqueue(
        f'[ "$PW" = {VALUE} ] && [ "$(env | grep -c ^PW=)" = 1 ]', secrets=["PW=db"], env={"PW": "no"}
    )
    scene.drain(env={"PW": "neither"})
    assert scene.state(job_id) == "completed"


def test_a_secret_is_as_it_is_now_at_each_run(scene: Scene) -> None:
    keep(scene, value="first-value")
    job_id = scene.enqueue('[ "$PW" = second-value ]', secrets=["PW=db"], max_retries=1)
    scene.drain()
    assert scene.state(job_id) == "dead"
    keep(scene, value="second-value")
    scene.queuectl("dlq", "retry", job_id, check=0)
    scene.drain()
    assert scene.state(job_id) == "completed"


def test_a_secret_that_is_not_there_is_a_failed_run_that_says_what_to_do(scene: Scene) -> None:
    job_id = scene.enqueue(scene.note("ran"), secrets=["PW=db"], max_retries=2, backoff_base=1)
    scene.drain("--idle-timeout", "3s")
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["runs"]) == ("dead", 2, 2)
    assert scene.outcomes(job_id) == ["unstartable", "unstartable"]
    assert "there is no secret 'db' on this host: queuectl secret set db" in job["error"]
    assert scene.lines("ran") == []
    frames = scene.queuectl("logs", job_id, check=0).out
    assert frames.count("--- START ") == 2
    assert frames.count("could not start: there is no secret 'db'") == 2


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_may_read_is_refused(scene: Scene, mode: int) -> None:
    path = keep(scene)
    path.chmod(mode)
    job = ended(scene, scene.note("ran"), secrets=["PW=db"])
    assert job["state"] == "dead"
    assert f"other users can access {path} (mode {mode:04o}): chmod 600 {path}" in job["error"]
    assert scene.lines("ran") == []


def test_a_directory_of_secrets_that_others_may_look_into_is_refused(scene: Scene) -> None:
    path = keep(scene)
    path.parent.chmod(0o755)
    assert (
        f"other users can access {path.parent} (mode 0755): chmod 700 {path.parent}"
        in ended(scene, "true", secrets=["PW=db"])["error"]
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_secret_of_another_user_is_refused(scene: Scene) -> None:
    path = keep(scene)
    os.chown(path, 12345, -1)
    assert "is not owned by the user of the worker" in ended(scene, "true", secrets=["PW=db"])["error"]


def test_a_link_is_not_followed(scene: Scene) -> None:
    path = keep(scene)
    other = scene.path("elsewhere")
    other.write_text(VALUE)
    other.chmod(0o600)
    path.unlink()
    path.symlink_to(other)
    assert ended(scene, "true", secrets=["PW=db"])["state"] == "dead"


@pytest.mark.parametrize("value, problem", [(b"a\0b", "NUL"), (b"x" * 50_000, "longer than 49,152 bytes")])
def test_a_secret_that_no_variable_can_hold_is_refused(scene: Scene, value: bytes, problem: str) -> None:
    path = keep(scene)
    path.write_bytes(value)
    assert problem in ended(scene, "true", secrets=["PW=db"])["error"]


def test_secrets_that_are_too_long_together_are_refused(scene: Scene) -> None:
    keep(scene, "a", "x" * 30_000)
    keep(scene, "b", "y" * 30_000)
    assert "together" in ended(scene, "true", secrets=["A=a", "B=b"])["error"]


# ── from a command ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command_is_asked_for_what_lies_in_no_file(scene: Scene) -> None:
    keep(scene)
    provider(scene, 'echo "told-$1"')
    job = ended(scene, f'[ "$A $B $C" = "told-x told-y {VALUE}" ]', secrets=["A=x", "B=y", "C=db"])
    assert job["state"] == "completed"


def test_a_command_runs_without_a_shell_and_finds_nothing_on_stdin(scene: Scene) -> None:
    provider(scene, 'cat; echo "$#:$1"')
    assert ended(scene, '[ "$A" = "1:x.y:z-1" ]', secrets=["A=x.y:z-1"])["state"] == "completed"


@pytest.mark.parametrize(
    "words, timeout, problem",
    [
        (f"echo {VALUE} >&2; echo {VALUE}; exit 3", "20s", "ended with exit code 3"),
        ("kill -9 $$", "20s", "was killed by signal 9"),
        ("head -c 100000 /dev/zero | tr '\\0' x", "20s", "printed more than 49,153 bytes"),
        (f"echo {VALUE}; sleep 600", "300ms", "did not end within 0.3 s"),
        ("sleep 600 & wait", "300ms", "did not end within 0.3 s"),
    ],
)
def test_a_command_that_fails_is_a_failed_run_and_nothing_it_said_is_told(
    scene: Scene, words: str, timeout: str, problem: str
) -> None:
    provider(scene, words, timeout)
    job = ended(scene, "true", secrets=["A=x"])
    assert job["state"] == "dead"
    assert problem in job["error"]
    assert VALUE not in str(job)


def test_a_command_that_is_not_there_is_named(scene: Scene) -> None:
    provider(scene, "true")
    scene.path("provider").unlink()
    assert "cannot be run: no such program" in ended(scene, "true", secrets=["A=x"])["error"]


def test_who_is_asked_must_not_be_for_others_to_say(scene: Scene) -> None:
    path = provider(scene, f"{scene.note('asked')}; echo told")
    path.chmod(0o666)
    job = ended(scene, "true", secrets=["A=x"])
    assert f"{path} can be changed by others" in job["error"]
    assert scene.lines("asked") == []


def test_a_file_that_cannot_be_understood_is_named(scene: Scene) -> None:
    provider(scene, "true").write_text("command = 1")
    assert "secrets.toml: command: expected a list of text" in ended(scene, "true", secrets=["A=x"])["error"]


def test_other_jobs_do_not_wait_for_a_command_that_is_asked(scene: Scene) -> None:
    provider(scene, f"{scene.until('go')}; echo told")
    slow = scene.enqueue('[ "$A" = told ]', secrets=["A=x"])
    scene.worker("--count", "2")
    wait_until(lambda: scene.state(slow) == "processing", what="its secret to be asked for")
    for number in range(5):
        scene.wait_for(scene.enqueue(f"true {number}"), "completed")
    assert scene.state(slow) == "processing"
    scene.open("go")
    scene.wait_for(slow, "completed")


def test_a_job_can_be_cancelled_while_its_secret_is_asked_for(scene: Scene) -> None:
    provider(scene, f"{scene.note('asked', '$$')}; sleep 600")
    job_id = scene.enqueue(scene.note("ran"), secrets=["A=x"])
    scene.worker()
    (pid,) = scene.wait_for_lines("asked", 1)
    scene.queuectl("cancel", job_id, check=0)
    job = scene.job(job_id)
    assert (job["state"], job["attempts"]) == ("cancelled", 0)
    assert scene.lines("ran") == []
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the command to be ended")


def test_a_worker_that_stops_gives_back_what_still_waits_for_its_secret(scene: Scene) -> None:
    provider(scene, f"{scene.note('asked', '$$')}; sleep 600")
    job_id = scene.enqueue("true", secrets=["A=x"])
    worker = scene.worker()
    (pid,) = scene.wait_for_lines("asked", 1)
    worker.send(signal.SIGTERM)
    assert worker.process.wait(20) == 0
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["crashes"]) == ("pending", 0, 0)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the command to be ended")


def test_a_worker_that_dies_while_it_asks_costs_no_attempt(scene: Scene) -> None:
    provider(scene, f"{scene.note('asked', '$$')}; {scene.until('go')}; echo told")
    job_id = scene.enqueue("true", secrets=["A=x"])
    worker = scene.worker()
    (pid,) = scene.wait_for_lines("asked", 1)
    worker.kill()
    scene.open("go")
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["crashes"]) == ("completed", 0, 0)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the command to end")


def test_many_ask_at_once_and_each_gets_its_own(scene: Scene) -> None:
    provider(scene, 'sleep 0.1; echo "told-$1"')
    jobs = [{"command": f'[ "$A" = told-n{n} ]', "secrets": [f"A=n{n}"], "max_retries": 1} for n in range(30)]
    ids = scene.enqueue_all(jobs)
    scene.drain("--count", "20")
    assert {scene.state(job_id) for job_id in ids} == {"completed"}


# ── who may have which ──────────────────────────────────────────────────────────────────────────────────────────────


def test_with_a_policy_a_job_has_only_the_secrets_that_its_queue_may_have(scene: Scene) -> None:
    keep(scene)
    provider(scene, f"{scene.note('asked')}; echo told")
    policy = scene.home / "policy.toml"
    # A worker that runs as root needs a user for jobs.
    policy.write_text(f'user = "{os.geteuid()}"\n[queues.deploy]\nsecrets = ["db", "api-*"]\n')
    policy.chmod(0o600)
    fine = scene.enqueue(f'[ "$PW" = {VALUE} ]', secrets=["PW=db"], queue="deploy")
    refused = scene.enqueue("true", secrets=["PW=db"])
    other = scene.enqueue("true", secrets=["PW=root-password"], queue="deploy")
    scene.drain()
    assert scene.state(fine) == "completed"
    for job_id, rule, name in ((refused, "secrets", "db"), (other, "queues.deploy.secrets", "root-password")):
        job = scene.job(job_id)
        assert (job["state"], job["attempts"], job["runs"]) == ("dead", 0, 0)
        assert job["error"] == f"refused by policy: {rule}: a job may not have the secret {name}"
    assert scene.lines("asked") == []
    said = scene.queuectl("policy", "check", "--queue", "deploy", "--secret", "X=api-1", "true", check=0).out
    assert said.startswith("yes")
    assert scene.queuectl("policy", "check", "--secret", "X=api-1", "true", check=1).out.startswith("no: secrets")


# ── what they print ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_in_the_output_are_redacted(scene: Scene) -> None:
    keep(scene)
    job_id = scene.enqueue('echo "<$PW>"; printf %s "$PW" | fold -w 5', secrets=["PW=db"])
    scene.drain()
    assert logged(scene, job_id).startswith("<***>\ncorre\n")
    assert VALUE not in scene.queuectl("logs", "--tail", "9", job_id, check=0).out
    assert VALUE not in scene.queuectl("show", job_id, "--json", check=0).out
    assert "<***>" in scene.queuectl("show", job_id, check=0).out


def test_a_secret_in_pieces_is_masked_and_all_else_comes_at_once(scene: Scene) -> None:
    keep(scene)
    first, rest = shlex.quote(VALUE[:7]), shlex.quote(VALUE[7:])
    words = f"echo begun; printf {first}; {scene.until('go')}; printf %s {rest}; printf ' %s' {first}"
    job_id = scene.enqueue(words, secrets=["PW=db"])
    scene.worker()
    wait_until(lambda: logged(scene, job_id) == "begun\n", what="its first line")
    scene.open("go")
    scene.wait_for(job_id, "completed")
    assert logged(scene, job_id) == f"begun\n*** {VALUE[:7]}"


def test_of_a_secret_of_several_lines_each_is_masked_and_short_ones_are_not(scene: Scene) -> None:
    keep(scene, value="-----BEGIN KEY-----\nabcdefgh\nxy\n-----END KEY-----\n")
    job_id = scene.enqueue('echo "$KEY"', secrets=["KEY=db"])
    scene.drain()
    assert logged(scene, job_id) == "***\n***\nxy\n***\n"


def test_a_job_without_secrets_has_its_bytes_as_they_are(scene: Scene) -> None:
    keep(scene)
    job_id = scene.enqueue(f"printf '\\377\\000 {VALUE} ***'")
    scene.drain()
    raw = scene.queuectl("logs", "--no-markers", job_id, check=0).raw
    assert raw == b"\xff\x00 " + VALUE.encode() + b" ***"
    assert sorted(os.listdir(scene.home / "logs")) == [f"{job_id}.log"]


def test_every_run_is_redacted(scene: Scene) -> None:
    keep(scene)
    job_id = scene.enqueue('echo "$QUEUECTL_RUN $PW"; exit 1', secrets=["PW=db"], max_retries=2, backoff_base=1)
    scene.drain()
    assert logged(scene, job_id) == "1 ***\n2 ***\n"


def test_a_log_that_was_cut_is_masked_too(scene: Scene) -> None:
    keep(scene)
    scene.configure(log_limit="64KiB")
    words = 'i=0; while [ $i -lt 6000 ]; do echo "$i $PW padding"; i=$((i+1)); done'
    job_id = scene.enqueue(words, secrets=["PW=db"])
    scene.drain()
    found = logged(scene, job_id)
    assert VALUE not in found
    assert found.endswith("5999 *** padding\n")


def test_an_adopted_run_is_redacted(scene: Scene) -> None:
    keep(scene)
    job_id = scene.enqueue(f'{scene.note("ran")}; {scene.until("go")}; echo "late $PW"', secrets=["PW=db"])
    worker = scene.worker()
    scene.wait_for_lines("ran", 1)
    worker.kill()
    scene.queuectl("secret", "remove", "db", check=0)
    scene.worker()
    scene.open("go")
    job = scene.wait_for(job_id, "completed")
    assert (job["runs"], job["crashes"]) == (1, 0)
    assert logged(scene, job_id) == "late ***\n"


def test_what_a_job_leaves_running_is_masked_too(scene: Scene) -> None:
    keep(scene)
    job_id = scene.enqueue(f'(trap "" HUP; {scene.until("go")}; echo "late $PW") & echo soon', secrets=["PW=db"])
    scene.worker()
    scene.wait_for(job_id, "completed")
    scene.open("go")
    wait_until(lambda: "late" in scene.queuectl("logs", job_id).out, what="what was left to print")
    assert "late ***\n" in scene.queuectl("logs", job_id, check=0).out
