"""Attacks on a worker with a policy: nothing may get through, and what is refused has not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene
from tests.program import COMMAND
from tests.users import me
from tests.wait import wait_until
from tests.webhooks.receiver import receiving

LONGEST = 131_071


class Fort:
    """A scene with two tools: `good` may run, `bad` may not, and each leaves a line in the file `ran`."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.place = Path(os.path.realpath(scene.directory)) / "fort"
        self.bin = self.place / "bin"
        self.bin.mkdir(parents=True)
        for folder in (self.place, self.bin):
            folder.chmod(0o755)
        self.good, self.bad = self.tool("bin/good"), self.tool("evil/bad")

    def tool(self, name: str, words: str = "") -> Path:
        path = self.place / name
        path.parent.mkdir(exist_ok=True, mode=0o755)
        path.parent.chmod(0o755)
        path.write_text(f'#!/bin/sh\necho {path.name} "$@" >> {self.scene.quoted("ran")}\n{words}\n')
        path.chmod(0o755)
        return path

    def policy(self, **said: Any) -> Path:
        said = {"programs": [str(self.good)], "user": me(), **said}
        path = self.place / "policy.toml"
        text = "\n".join(
            f"{key.replace('_', '-')} = {_toml(value)}" for key, value in said.items() if value is not None
        )
        new = path.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o600)
        new.replace(path)
        return path

    def drain(self, **env: str | None) -> None:
        self.scene.drain("--policy", str(self.place / "policy.toml"), env=env)

    def refused(self, job_id: str, rule: str) -> str:
        job = self.scene.job(job_id)
        assert (job["state"], job["attempts"], job["runs"], job["crashes"]) == ("dead", 0, 0, 0), job
        assert job["error"].startswith(f"refused by policy: {rule}: "), job["error"]
        assert self.scene.history(job_id) == []
        return str(job["error"])

    @property
    def ran(self) -> list[str]:
        path = self.scene.path("ran")
        return path.read_text().splitlines() if path.exists() else []


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


@pytest.fixture
def fort(scene: Scene) -> Fort:
    return Fort(scene)


def test_an_allowed_program_runs_and_a_refused_job_is_dead_at_once_without_an_attempt(fort: Fort) -> None:
    fort.policy()
    good = fort.scene.enqueue(argv=[str(fort.good), "a b", "$(x)"])
    bad = fort.scene.enqueue(argv=[str(fort.bad)], max_retries=5)
    fort.drain()
    assert fort.scene.state(good) == "completed"
    fort.refused(bad, "programs")
    assert fort.ran == ["good a b $(x)"]
    (record,) = fort.scene.queuectl("audit", "--id", bad, "--json", check=0).json[:1]
    assert (record["what"], record["after"]["state"]) == ("policy refuse", "dead")


@pytest.mark.parametrize(
    "words",
    [
        "{good}",
        "{good}; {bad}",
        "{good} && {bad}",
        "$({bad})",
        "`{bad}`",
        "{good}\n{bad}",
        "{good} | {bad}",
        "exec {bad}",
        "#",
    ],
)
def test_no_command_for_the_shell_runs_whatever_its_text_looks_like(fort: Fort, words: str) -> None:
    fort.policy()
    job = fort.scene.enqueue(words.format(good=fort.good, bad=fort.bad))
    fort.drain()
    fort.refused(job, "shell")
    assert fort.ran == []


def test_shell_metacharacters_in_words_mean_nothing(fort: Fort) -> None:
    fort.policy()
    tricks = [
        f"; {fort.bad}",
        f"$({fort.bad})",
        f"`{fort.bad}`",
        f"| {fort.bad}",
        f"> {fort.scene.path('made')}",
        "'",
        '"',
    ]
    fort.scene.enqueue_all([{"argv": [str(fort.good), trick]} for trick in tricks])
    fort.scene.enqueue(argv=[f"{fort.good}; {fort.bad}"])
    fort.scene.enqueue(argv=[f"{fort.good} {fort.bad}"])
    fort.drain()
    assert fort.scene.count("completed") == len(tricks)
    assert fort.scene.count("dead") == 2
    assert all(line.startswith("good ") for line in fort.ran)
    assert not fort.scene.path("made").exists()


def test_a_program_found_on_another_path_is_another_program(fort: Fort) -> None:
    fort.policy()
    impostor = fort.tool("evil/good")
    by_worker = fort.scene.enqueue(argv=["good"])
    by_job = fort.scene.enqueue(argv=["good"], env={"PATH": f"{impostor.parent}:{fort.bin}"})
    here = fort.scene.enqueue(argv=["good"], cwd=str(impostor.parent))
    fort.drain(PATH=f"{fort.bin}:{os.environ['PATH']}")
    assert fort.scene.state(by_worker) == "completed"
    fort.refused(by_job, "job-environment")
    # An empty entry of the worker's PATH would be the working directory of the job.
    assert fort.scene.state(here) == "completed"
    assert len(fort.ran) == 2
    last = fort.scene.enqueue(argv=["good"], cwd=str(impostor.parent))
    fort.drain(PATH=f":{fort.bin}:{os.environ['PATH']}")
    fort.refused(last, "programs")
    assert len(fort.ran) == 2


@pytest.mark.parametrize(
    "word",
    [
        "good",
        "./good",
        "../bin/good",
        "../bin/../bin/good",
        "link",
        "loop",
        "dir/",
        "../bin/good/",
        "../bin/good/.",
        "",
    ],
)
def test_a_path_is_judged_by_what_it_leads_to(fort: Fort, word: str) -> None:
    fort.policy()
    fort.tool("evil/good")  # in the working directory
    evil = fort.bad.parent
    (evil / "link").symlink_to(fort.bad)
    (evil / "loop").symlink_to("loop")
    (evil / "dir").symlink_to(fort.bin)
    if not word:
        return  # refused by enqueue already
    job = fort.scene.enqueue(argv=[word], cwd=str(evil))
    fort.drain(PATH="/usr/bin:/bin")
    if word in ("../bin/good", "../bin/../bin/good"):
        assert fort.scene.state(job) == "completed"
        assert fort.ran == ["good"]
    else:
        fort.refused(job, "programs")
        assert fort.ran == []


def test_a_link_to_an_allowed_program_runs_as_that_and_under_its_name(fort: Fort) -> None:
    # As with busybox: which of its programs runs is decided by the name that it is called by.
    many = fort.tool("bin/many")
    for name in ("list", "remove"):
        (fort.bin / name).symlink_to("many")
    (fort.place / "alias").symlink_to(fort.bin / "list")
    fort.policy(programs=[str(fort.bin / "list")])
    listed, alias = fort.scene.enqueue(argv=[f"{fort.bin}/list"]), fort.scene.enqueue(argv=[f"{fort.place}/alias"])
    removed, itself = fort.scene.enqueue(argv=[f"{fort.bin}/remove"]), fort.scene.enqueue(argv=[str(many)])
    fort.drain()
    assert [fort.scene.state(job) for job in (listed, alias)] == ["completed", "completed"]
    fort.refused(removed, "programs")
    fort.refused(itself, "programs")


def test_a_program_is_called_by_the_name_of_its_rule(fort: Fort) -> None:
    (fort.bin / "python").symlink_to(os.path.realpath(sys.executable))
    (fort.place / "alias").symlink_to(fort.bin / "python")
    fort.policy(programs=[str(fort.bin / "python")])
    tell = "import sys; print(open('/proc/self/cmdline').read().split('\\0')[0])"
    direct = fort.scene.enqueue(argv=[f"{fort.bin}/python", "-Ic", tell])
    alias = fort.scene.enqueue(argv=[f"{fort.place}/alias", "-Ic", tell])
    fort.drain()
    for job in (direct, alias):
        if fort.scene.state(job) != "completed":
            # Where Python itself lies in a place that others can write, it is refused for that.
            assert "can be changed by others" in fort.refused(job, "programs[1]")
        else:
            assert fort.scene.queuectl("logs", job, "--no-markers", check=0).out.strip() == f"{fort.bin}/python"


LOADING = (
    {"LD_PRELOAD": "/tmp/evil.so"},
    {"LD_LIBRARY_PATH": "/tmp"},
    {"LD_AUDIT": "/tmp/evil.so"},
    {"BASH_ENV": "/tmp/evil"},
    {"ENV": "/tmp/evil"},
    {"PYTHONSTARTUP": "/tmp/evil", "PYTHONPATH": "/tmp"},
    {"PERL5OPT": "-Mevil"},
    {"IFS": "/"},
    {"GIT_SSH_COMMAND": "evil"},
    {"HOME": "/tmp/evil"},
    {"MAKEFLAGS": "--eval=$(shell evil)"},
    {"JAVA_TOOL_OPTIONS": "-javaagent:evil.jar"},
    {"ANSIBLE_CONFIG": "/tmp/evil.cfg"},
    {"BASH_FUNC_echo%%": "() { evil; }"},
    {"ld_preload": "x", "LD_PRELOAD": "x"},
)


@pytest.mark.parametrize("listed", [None, ["*"]])
def test_a_job_cannot_make_a_program_load_other_code(fort: Fort, listed: list[str] | None) -> None:
    fort.policy(job_environment=listed)
    jobs = [fort.scene.enqueue(argv=[str(fort.good)], env=env) for env in LOADING]
    fort.drain()
    for job in jobs:
        fort.refused(job, "job-environment")
    assert fort.ran == []


def test_a_job_sees_of_its_workers_environment_what_is_listed(fort: Fort) -> None:
    tell = fort.tool("bin/tell", "env")
    fort.policy(programs=[str(tell)], environment=["PATH", "LC_*"], job_environment=["REPORT_*"])
    job = fort.scene.enqueue(argv=[str(tell)], env={"REPORT_DAY": "monday"})
    unset = dict.fromkeys(name for name in os.environ if name.startswith("LC_"))
    fort.drain(**{**unset, "LC_ALL": "C", "AWS_SECRET": "x", "LD_DEBUG_OUTPUT": "/nowhere"})
    assert fort.scene.state(job) == "completed"
    seen = dict(
        line.split("=", 1) for line in fort.scene.queuectl("logs", job, "--no-markers", check=0).lines if "=" in line
    )
    assert {name for name in seen if not name.startswith("QUEUECTL_")} - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH",
        "LC_ALL",
        "REPORT_DAY",
    }
    assert seen["QUEUECTL_JOB_ID"] == job
    assert seen["QUEUECTL_HOME"] == str(fort.scene.home)


@pytest.mark.parametrize(
    "words, is_fine",
    [
        (["-f", "/srv/sql/day.sql"], True),
        (["-f", "/srv/sql/../../etc/x.sql"], False),
        (["-f", "/srv/sql/a/day.sql"], False),
        (["-f", "/srv/sql/day.sql", "--more"], False),
        (["-f", "--output=x.sql"], False),
        (["-f"], False),
        ([], False),
        (["-f", "/srv/sql/day.sql\n--more"], False),
        (["-f", "/srv/sql/" + "a" * LONGEST], False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_words_have_to_fit_the_patterns_of_their_program(fort: Fort, words: list[str], is_fine: bool) -> None:
    fort.policy(programs=[{"program": str(fort.good), "args": ["-f", "/srv/sql/*.sql"], "name": "sql"}])
    job = fort.scene.enqueue(argv=[str(fort.good), *[word[: LONGEST - 10] for word in words]])
    fort.drain()
    if is_fine:
        assert fort.scene.state(job) == "completed"
    else:
        fort.refused(job, "sql")
    assert len(fort.ran) == is_fine


def test_huge_words_are_judged_in_no_time(fort: Fort) -> None:
    fort.policy(programs=[{"program": str(fort.good), "args": ["*a*a*a*a*a*a*b..."]}])
    jobs = [{"argv": [str(fort.good), *["a" * 100_000] * 5]}, {"argv": ["x" * 100_000]}, {"argv": ["/" * 100_000]}]
    text = "\n".join(map(json.dumps, jobs))
    fort.scene.queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0, cwd=fort.scene.directory)
    fort.drain()
    assert fort.scene.count("dead") == 3
    assert fort.ran == []


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_script_whose_interpreter_others_could_replace_does_not_run(fort: Fort, what: str) -> None:
    place = fort.place / "open"
    place.mkdir()
    between, last = place / "between", place / "sh"
    last.symlink_to("/bin/sh")
    between.write_text(f"#!{last}\n")
    between.chmod(0o755)
    fort.good.write_text(fort.good.read_text().replace("#!/bin/sh", f"#! {between} -x"))
    (between if what == "file" else place).chmod(0o777)
    fort.policy()
    job = fort.scene.enqueue(argv=[str(fort.good)])
    fort.drain()
    assert "can be changed by others" in fort.refused(job, "programs[1]")
    between.unlink()
    fort.scene.queuectl("dlq", "retry", job, check=0)
    fort.drain()
    assert "interpreter" in fort.refused(job, "programs[1]")
    assert fort.ran == []


@pytest.mark.parametrize("what", ["file", "directory", "owner"])
def test_a_program_that_others_could_replace_does_not_run(fort: Fort, what: str) -> None:
    fort.policy()
    if what == "file":
        fort.good.chmod(0o777)
    elif what == "directory":
        fort.bin.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(fort.good, 65534, 65534)
    else:
        pytest.skip("only root can give files away")
    job = fort.scene.enqueue(argv=[str(fort.good)])
    fort.drain()
    assert fort.refused(job, "programs" if what == "directory" else "programs[1]")
    assert fort.ran == []


def test_a_link_that_changes_all_the_time_never_lets_the_other_program_run(fort: Fort) -> None:
    # The link is changed between the check and the start: the checked program runs.
    fort.policy()
    link = fort.place / "evil/flip"
    link.symlink_to(fort.good)
    flip = (
        "import os, sys\nwhile True:\n"
        "    for target in sys.argv[2:]:\n"
        "        os.symlink(target, sys.argv[1] + '.new'); os.replace(sys.argv[1] + '.new', sys.argv[1])\n"
    )
    attacker = subprocess.Popen([sys.executable, "-Ic", flip, str(link), str(fort.good), str(fort.bad)])
    try:
        fort.scene.enqueue_all([{"argv": [str(link)]} for _ in range(60)])
        fort.drain()
    finally:
        attacker.kill()
        attacker.wait()
    assert fort.scene.count("completed") + fort.scene.count("dead") == 60
    assert set(fort.ran) <= {"good"}
    assert len(fort.ran) == fort.scene.count("completed")


def test_a_directory_that_changes_all_the_time_is_entered_only_while_it_is_allowed(fort: Fort) -> None:
    tell = fort.tool("bin/tell", f"pwd -P >> {fort.scene.quoted('where')}")
    inside, outside = fort.place / "inside", fort.place / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "real").mkdir()
    (inside / "spot").symlink_to("real")
    fort.policy(programs=[str(tell)], directories=[str(inside)])
    flip = (
        "import os, sys\nwhile True:\n"
        "    for target in ('real', '../outside'):\n"
        "        os.symlink(target, sys.argv[1] + '.new'); os.replace(sys.argv[1] + '.new', sys.argv[1])\n"
    )
    attacker = subprocess.Popen([sys.executable, "-Ic", flip, str(inside / "spot")])
    try:
        fort.scene.enqueue_all(
            [{"argv": [str(tell)], "cwd": str(inside / "spot"), "max_retries": 1} for _ in range(60)]
        )
        fort.drain()
    finally:
        attacker.kill()
        attacker.wait()
    assert fort.scene.count("completed") + fort.scene.count("dead") == 60
    assert set(fort.scene.lines("where")) <= {str(inside / "real")}


def test_a_directory_that_is_swapped_is_not_entered(fort: Fort) -> None:
    inside, outside = fort.place / "inside", fort.place / "outside"
    inside.mkdir()
    outside.mkdir()
    fort.policy(directories=[str(inside)])
    (inside / "out").symlink_to(outside)
    jobs = {
        where: fort.scene.enqueue(argv=[str(fort.good)], cwd=str(where)) for where in (inside, outside, inside / "out")
    }
    missing = fort.scene.enqueue(argv=[str(fort.good)], cwd=str(inside / "missing"))
    fort.drain()
    assert fort.scene.state(jobs[inside]) == "completed"
    for where in (outside, inside / "out"):
        fort.refused(jobs[where], "directories")
    fort.refused(missing, "directories")
    assert fort.ran == ["good"]


def test_the_longest_time_limit_ends_a_job_that_asked_for_none(fort: Fort) -> None:
    slow = fort.tool("bin/slow", "exec sleep 60")
    fort.policy(programs=[str(slow)], max_timeout="100ms")
    none, more = fort.scene.enqueue(argv=[str(slow)], max_retries=1), fort.scene.enqueue(argv=[str(slow)], timeout=5)
    fort.drain()
    assert fort.scene.job(none)["error"].startswith("timeout after 100ms")
    fort.refused(more, "max-timeout")


def test_a_queue_has_its_own_rules(fort: Fort) -> None:
    path = fort.policy()
    path.write_text(path.read_text() + "\n[queues.free]\nshell = true\n[queues.none]\nprograms = []\n")
    free, none = (
        fort.scene.enqueue(f"{fort.bad}", queue="free"),
        fort.scene.enqueue(argv=[str(fort.good)], queue="none"),
    )
    fort.drain()
    assert fort.scene.state(free) == "completed"
    fort.refused(none, "queues.none.programs")
    assert fort.ran == ["bad"]


def test_a_policy_in_the_home_is_in_force_without_being_named(fort: Fort) -> None:
    fort.scene.home.mkdir(mode=0o700)
    fort.policy().rename(fort.scene.home / "policy.toml")
    job = fort.scene.enqueue("true")
    fort.scene.drain()
    fort.refused(job, "shell")


@pytest.mark.usefixtures("fresh")
def test_a_detached_worker_and_a_restarted_one_keep_the_policy(fort: Fort) -> None:
    path = fort.policy()
    words = ["worker", "start", "--detach", "--name", "w1", "--policy", path.name]
    fort.scene.queuectl(*words, cwd=path.parent, check=0)
    first = fort.scene.enqueue(argv=[str(fort.bad)])
    fort.scene.wait_for(first, "dead")
    fort.refused(first, "programs")
    fort.scene.queuectl("worker", "restart", "w1", check=0)
    second, good = fort.scene.enqueue(argv=[str(fort.bad)]), fort.scene.enqueue(argv=[str(fort.good)])
    fort.scene.wait_for(second, "dead")
    fort.refused(second, "programs")
    fort.scene.wait_for(good, "completed")
    fort.scene.queuectl("worker", "stop", check=0)


def test_a_running_worker_follows_a_change_of_its_policy(fort: Fort) -> None:
    path = fort.policy()
    fort.scene.configure(heartbeat="100ms")
    worker = fort.scene.worker("--policy", path)
    fort.scene.wait_for(fort.scene.enqueue(argv=[str(fort.bad)]), "dead")
    fort.policy(programs=[str(fort.bad)])
    wait_until(lambda: worker.output.count("policy.toml is active") >= 2, what="the worker to follow")
    fort.scene.wait_for(fort.scene.enqueue(argv=[str(fort.bad)]), "completed")
    path.chmod(0o666)
    wait_until(lambda: "the previous policy stays active" in worker.output, what="the worker to complain")
    fort.scene.wait_for(fort.scene.enqueue(argv=[str(fort.good)]), "dead")


@pytest.mark.parametrize("words", [("--detach",), ()])
def test_a_worker_does_not_start_without_the_policy_it_was_given(fort: Fort, words: tuple[str, ...]) -> None:
    path = fort.policy()
    path.chmod(0o666)
    answer = fort.scene.queuectl("worker", "start", "--policy", path, *words, check=1)
    assert "can be changed by others" in answer.err
    assert not fort.scene.home.exists() or not list(fort.scene.home.glob("queue.db"))
    path.chmod(0o600)
    path.write_text("shel = true")
    assert "did you mean" in fort.scene.queuectl("worker", "start", "--policy", path, *words, check=2).err


def test_a_job_that_was_refused_runs_when_the_policy_allows_it(fort: Fort) -> None:
    fort.policy(programs=[])
    job = fort.scene.enqueue(argv=[str(fort.good)])
    fort.drain()
    fort.refused(job, "programs")
    fort.policy()
    fort.scene.queuectl("dlq", "retry", job, check=0)
    fort.drain()
    assert (fort.scene.state(job), fort.scene.outcomes(job)) == ("completed", ["completed"])


def test_a_job_cannot_start_a_worker_that_knows_no_policy_by_being_allowed_one_tool(fort: Fort) -> None:
    fort.policy()
    job = fort.scene.enqueue(argv=[*COMMAND, "worker", "start", "--drain"])
    fort.drain()
    fort.refused(job, "programs")


def test_webhooks_are_delivered_under_any_policy(fort: Fort) -> None:
    fort.policy()
    fort.scene.configure(webhook_allow_private="true")
    with receiving() as receiver:
        good = fort.scene.enqueue(argv=[str(fort.good)], on_success=receiver.url)
        bad = fort.scene.enqueue(argv=[str(fort.bad)], on_dead=receiver.url)
        fort.drain()
        told = {one["job_id"]: one["event"] for one in (json.loads(call.body) for call in receiver.received)}
    assert told == {good: "success", bad: "dead"}
    assert fort.ran == ["good"]
