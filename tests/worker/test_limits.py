"""What a job may use is kept from its first instruction on, whatever it tries, and what it has used is known."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.scene import Scene
from tests.needs import require
from tests.users import me
from tests.wait import wait_until

KINDS = {"memory": "v", "cpu_time": "t", "open_files": "n", "file_size": "f"}
SAID = {"memory": "64MiB", "cpu_time": 7, "open_files": 33, "file_size": "1MiB"}
HARD = {"memory": "65536", "cpu_time": "8", "open_files": "33", "file_size": "2048"}


def printed(scene: Scene, job_id: str) -> str:
    return str(scene.queuectl("logs", job_id, "--no-markers", check=0).out).strip()


LOOK = "; ".join(f"ulimit -H{option}" for option in KINDS.values())


@pytest.mark.parametrize(
    "fields",
    [
        {"command": LOOK},
        {"argv": ["/bin/sh", "-c", LOOK]},
        {"command": LOOK, "env": {"LD_PRELOAD": ""}},  # by which code of its own could run before
        {"command": LOOK + " #" + "x" * 131_000},  # with no room before it
        {"command": LOOK, "nice": 3},
        {"command": LOOK, "processes": 4_000_000},
    ],
    ids=["shell", "argv", "loader", "long", "nice", "processes"],
)
def test_every_way_of_making_a_process_limits_it(scene: Scene, fields: dict[str, object]) -> None:
    job_id = scene.enqueue_all([{**fields, **SAID}])[0]
    scene.drain()
    assert scene.state(job_id) == "completed", scene.job(job_id)
    assert printed(scene, job_id).split() == list(HARD.values())


def test_a_job_cannot_raise_its_own_limits(scene: Scene) -> None:
    script = (
        "import resource as r\n"
        "for kind in (r.RLIMIT_AS, r.RLIMIT_NOFILE, r.RLIMIT_FSIZE, r.RLIMIT_CPU):\n"
        "    soft, hard = r.getrlimit(kind)\n"
        "    try: r.setrlimit(kind, (hard, hard + 1)); print('raised')\n"
        "    except (ValueError, OSError): print('kept')\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", script]
    if os.geteuid() == 0:  # who may do everything may do that, too
        argv = ["/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups", *argv]
    job_id = scene.enqueue(None, argv=argv, **{**SAID, "memory": "512MiB"})
    scene.drain()
    assert printed(scene, job_id).split() == ["kept"] * 4, scene.job(job_id)


def test_where_no_code_may_be_made_limits_hold_all_the_same(scene: Scene) -> None:
    # As systemd's MemoryDenyWriteExecute, for the worker and all that it starts: see tests/process/test_machine.py.
    forbid = "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    job_id = scene.enqueue(None, argv=["/bin/sh", "-c", LOOK], **SAID)
    scene.worker("--drain", through=[sys.executable, "-c", forbid]).wait()
    assert printed(scene, job_id).split() == list(HARD.values())


def test_a_limit_that_the_shell_could_be_talked_out_of_holds(scene: Scene) -> None:
    # bash, where it is called sh, too, takes functions from the environment; they win over its builtins.
    env = {"BASH_FUNC_ulimit%%": "() { :; }", "BASH_FUNC_exit%%": "() { :; }", "ENV": "/dev/null"}
    job_id = scene.enqueue(
        "cut -d' ' -f1-9 /proc/self/limits | grep -c .; grep 'open files' /proc/self/limits", env=env, open_files=33
    )
    scene.drain()
    assert "33 33" in " ".join(printed(scene, job_id).split())


def test_lines_of_a_limited_command_keep_their_numbers_and_their_meaning(scene: Scene) -> None:
    command = "echo $?\necho '||exit 7;' \"$0\" $#\ncat <<E\nhere\nE\n"
    ids = scene.enqueue_all([{"command": command}, {"command": command, "open_files": 64}])
    wrong = scene.enqueue_all(
        [{"command": "fi", "max_retries": 1}, {"command": "fi", "max_retries": 1, "open_files": 64}]
    )
    scene.drain()
    assert printed(scene, ids[0]) == printed(scene, ids[1]) == "0\n||exit 7; /bin/sh 0\nhere"
    assert printed(scene, wrong[0]) == printed(scene, wrong[1])
    assert [scene.job(job_id)["exit_code"] for job_id in wrong] == [2, 2]


def test_the_nice_value_is_that_of_the_worker_and_more(scene: Scene) -> None:
    look = "cut -d' ' -f19 /proc/self/stat"
    ids = scene.enqueue_all(
        [{"command": look, "nice": 4}, {"argv": ["/bin/sh", "-c", look], "nice": 4}, {"command": look}]
    )
    scene.drain()
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert [int(printed(scene, job_id)) for job_id in ids] == [min(19, ours + 4), min(19, ours + 4), ours]


@pytest.mark.parametrize(
    "command, limits, signal_number, error",
    [
        ("while :; do :; done", {"cpu_time": 1}, signal.SIGXCPU, "cpu time limit of 1s reached"),
        ("trap '' XCPU; while :; do :; done", {"cpu_time": 1}, signal.SIGKILL, "cpu time limit of 1s reached"),
        (
            "exec head -c 9000000 /dev/zero > big",
            {"file_size": "1MiB"},
            signal.SIGXFSZ,
            "file size limit of 1MiB reached",
        ),
    ],
    ids=["cpu", "stubborn", "file"],
)
def test_a_job_that_its_limit_ends_says_so(
    scene: Scene, tmp_path: Path, command: str, limits: dict[str, object], signal_number: int, error: str
) -> None:
    job_id = scene.enqueue(command, cwd=str(tmp_path), max_retries=1, **limits)
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["signal"], job["error"]) == ("dead", signal_number, error)


def test_memory_beyond_its_limit_is_refused_to_the_program(scene: Scene) -> None:
    words = [sys.executable, "-I", "-S", "-c", "bytearray(400_000_000)"]
    job_id = scene.enqueue(None, argv=words, memory="200MiB", max_retries=1)
    scene.drain()
    assert scene.job(job_id)["state"] == "dead"
    assert "MemoryError" in printed(scene, job_id)


def test_files_beyond_the_limit_are_refused_to_the_program(scene: Scene) -> None:
    script = "import os\nfds = []\ntry:\n    while len(fds) < 99: fds.append(os.dup(0))\nexcept OSError as exc: print(exc.errno)"
    job_id = scene.enqueue(None, argv=[sys.executable, "-I", "-S", "-c", script], open_files=40)
    scene.drain()
    assert printed(scene, job_id) == "24"


def test_a_limit_is_no_more_than_the_worker_may_have_itself(scene: Scene) -> None:
    ids = scene.enqueue_all(
        [{"command": "ulimit -Hn", "open_files": 5000}, {"argv": ["sh", "-c", "ulimit -Hn"], "open_files": 5000}]
    )
    worker = scene.worker("--drain", through=["sh", "-c", 'ulimit -n 777; exec "$@"', "-"])
    worker.wait()
    assert [printed(scene, job_id) for job_id in ids] == ["777", "777"]


def test_a_job_that_cannot_be_started_fails_in_the_same_words_with_limits(scene: Scene) -> None:
    wanted = [{"argv": ["no-such-program"]}, {"argv": ["/etc/passwd"]}, {"command": "true", "cwd": "/no/such"}]
    plain = scene.enqueue_all([{**one, "max_retries": 1} for one in wanted])
    limited = scene.enqueue_all([{**one, "max_retries": 1, "open_files": 64} for one in wanted])
    scene.drain()
    assert [scene.job(one)["error"] for one in plain] == [scene.job(one)["error"] for one in limited]


def test_every_run_says_what_it_has_used(scene: Scene, tmp_path: Path) -> None:
    script = "import os\nx = bytearray(60_000_000)\nwhile sum(os.times()[:2]) < 0.3: pass"
    busy = scene.enqueue(None, argv=[sys.executable, "-I", "-S", "-c", script])
    writes = scene.enqueue("dd if=/dev/zero of=out bs=64k count=16 oflag=dsync 2>/dev/null", cwd=str(tmp_path))
    fails = scene.enqueue("exit 3", max_retries=2, backoff_base=1)
    gone = scene.enqueue(None, argv=["/no/such"], max_retries=1)
    scene.drain()
    (run,) = scene.history(busy)
    assert run["cpu_user_ms"] + run["cpu_system_ms"] >= 290
    assert run["max_rss_bytes"] >= 60_000_000
    (run,) = scene.history(writes)
    assert run["written_bytes"] >= 0
    assert [run["cpu_user_ms"] is not None for run in scene.history(fails)] == [True, True]
    assert scene.history(gone)[0]["cpu_user_ms"] is None


def test_a_run_that_was_adopted_says_what_it_has_used(scene: Scene, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    loop = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    job_id = scene.enqueue(f"{scene.note('begun')}; read x < {go}; {loop}", cpu_time=600)
    worker = scene.worker()
    scene.wait_for_lines("begun", 1)  # one that is claimed and has no process yet is given back, and runs again
    worker.process.send_signal(signal.SIGKILL)
    worker.wait()
    scene.worker()
    wait_until(lambda: scene.job(job_id)["worker"] != "" and scene.state(job_id) == "processing", what="it to go on")
    go.write_text("x\n")
    scene.wait_for(job_id, "completed")
    (run,) = scene.history(job_id)
    assert run["cpu_user_ms"] + run["cpu_system_ms"] > 0


def test_a_job_gets_what_its_queue_says_and_no_more_than_the_policy(scene: Scene) -> None:
    scene.queuectl("queue", "set", "small", "--open-files", "50", "--file-size", "1MiB", check=0)
    policy = scene.home / "policy.toml"
    policy.write_text(f'user = "{me()}"\nmax-open-files = 100\nmax-cpu-time = "1h"\n')
    policy.chmod(0o600)
    look = "ulimit -Hn; ulimit -Hf; ulimit -St"
    ids = scene.enqueue_all(
        [
            {"command": look, "queue": "small"},
            {"command": look},
            {"command": look, "queue": "small", "open_files": 60, "cpu_time": 9},
            {"command": look, "open_files": 101, "max_retries": 3},
        ]
    )
    scene.drain()
    assert [printed(scene, job_id).split() for job_id in ids[:3]] == [
        ["50", "2048", "3600"],
        ["100", "unlimited", "3600"],
        ["60", "2048", "9"],
    ]
    refused = scene.job(ids[3])
    assert (refused["state"], refused["attempts"]) == ("dead", 0)
    assert refused["error"] == "refused by policy: max-open-files: open files 101, at most 100"


def test_a_job_that_goes_on_forking_is_stopped_by_its_limit(scene: Scene) -> None:
    require("root", os.geteuid() == 0, "the limit is one of a user, and no other process of this one may run")
    script = (
        "import os, signal\n"
        "made = []\n"
        "try:\n"
        "    for _ in range(30):\n"
        "        pid = os.fork()\n"
        "        if not pid: signal.pause()\n"
        "        made.append(pid)\n"
        "except OSError as exc: print(exc.errno, len(made))\n"
        "finally:\n"
        "    for pid in made: os.kill(pid, 9); os.waitpid(pid, 0)\n"
    )
    words = ["/usr/bin/setpriv", "--reuid=54321", "--clear-groups", "/usr/bin/python3", "-I", "-S", "-c", script]
    job_id = scene.enqueue(None, argv=words, processes=5)
    scene.drain()
    assert printed(scene, job_id).split() == ["11", "4"], scene.job(job_id)
