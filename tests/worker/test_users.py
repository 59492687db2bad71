"""A worker that is root, and jobs that run as others: what they are, what they find, and all that they must not be able to do."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.errors import StoreFailed
from queuectl.process.linux import processes
from queuectl.store.open import open_reads
from tests.e2e.processes import children, is_running
from tests.e2e.scene import Scene
from tests.groups import require_groups
from tests.needs import require
from tests.program import Program
from tests.users import OTHER, other
from tests.wait import wait_until

# UIDs without accounts and other processes: other tests run in parallel.
STRANGER, BULLY, OUTSIDER = (base + os.getpid() for base in (40_000_000, 50_000_000, 60_000_000))
POLICY = f"""
user = "{OTHER}"
[queues.strange]
user = "{STRANGER}:{STRANGER}"
[queues.bully]
user = "{BULLY}:{BULLY}"
[queues.admin]
user = "root"
"""


class Shared(Scene):
    """A home of root's on a machine of many, and `work`, where all may write."""

    def policy(self, text: str = POLICY) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        new = self.home / "policy.new"
        new.write_text(text)
        new.chmod(0o600)
        new.replace(self.home / "policy.toml")

    def printed(self, job_id: str) -> list[str]:
        return self.queuectl("logs", job_id, "--no-markers", check=0).lines

    def log(self, job_id: str) -> Path:
        return self.home / "logs" / f"{job_id}.log"


def as_user(user: int, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), user=user, group=user, extra_groups=[], capture_output=True, text=True, cwd="/"
    )


@pytest.fixture
def shared() -> Iterator[Shared]:
    other()
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        work = Path(place) / "work"
        work.mkdir()
        work.chmod(0o1777)
        made = Shared(Program(Path(place) / "home"), work)
        made.policy()
        yield made
        made.end()


# ── what they are ───────────────────────────────────────────────────────────────────────────────────────────────────

TELL = "grep -E '^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb))' /proc/self/status"


@pytest.mark.usefixtures("fresh")
def test_a_job_is_its_user_wholly_and_nothing_of_root_is_left(shared: Shared) -> None:
    job = shared.enqueue(TELL, queue="strange")
    shared.drain()
    told = dict(line.split(":", 1) for line in shared.printed(job))
    assert told["Uid"].split() == told["Gid"].split() == [str(STRANGER)] * 4
    assert told["Groups"].split() == [str(STRANGER)]
    assert {told[name].strip("\t0") for name in told if name.startswith("Cap")} == {""}


def test_it_has_the_groups_of_a_login(shared: Shared) -> None:
    job = shared.enqueue("id -u; id -g; id -G")
    shared.drain()
    user = other()
    uid, gid, groups = shared.printed(job)
    assert (int(uid), int(gid)) == (user.pw_uid, user.pw_gid)
    assert sorted(map(int, groups.split())) == sorted(os.getgrouplist(OTHER, user.pw_gid))


@pytest.mark.usefixtures("fresh")
def test_it_finds_what_a_login_gives_and_nothing_of_the_environment_of_root(shared: Shared) -> None:
    job = shared.enqueue("env", env={"OWN": "1"})
    secrets = {"PGPASSWORD": "x", "LD_PRELOAD": "", "SUDO_USER": "x", "XDG_RUNTIME_DIR": "/run/user/0", "LC_ALL": "C"}
    unset = dict.fromkeys(name for name in os.environ if name.startswith("LC_"))
    shared.drain(env={**unset, **secrets})
    seen = dict(line.split("=", 1) for line in shared.printed(job))
    user = other()
    assert (seen["HOME"], seen["USER"], seen["LOGNAME"]) == (user.pw_dir, OTHER, OTHER)
    assert seen["SHELL"] == user.pw_shell
    assert seen["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert (seen["OWN"], seen["LC_ALL"]) == ("1", "C")
    rest = {name for name in seen if not name.startswith("QUEUECTL_")}
    assert rest <= {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "OWN", "LC_ALL", "LANG", "LANGUAGE", "TZ", "PWD", "_", "SHLVL", "OLDPWD"}  # fmt: skip


WITH_A_KEY = 'keyctl add user queuectl-test TOP-SECRET @s > /dev/null && exec "$@"'
READ_THE_KEY = "keyctl print %user:queuectl-test; keyctl search @s user queuectl-test; keyctl add user own mine @s"


@pytest.mark.parametrize("queue", ["default", "strange"])
def test_a_job_of_another_user_has_a_session_keyring_of_its_own(shared: Shared, queue: str) -> None:
    require("keyctl", shutil.which("keyctl"), "it puts a key into the session keyring of the worker")
    job = shared.enqueue(READ_THE_KEY, queue=queue)
    shared.worker("--drain", through=("keyctl", "session", "-", "sh", "-c", WITH_A_KEY, "sh"), ready=False).wait()
    *refused, added = shared.printed(job)
    assert not [line for line in refused if "TOP-SECRET" in line or line.isdecimal()]
    assert added.isdecimal()  # it can use its own keyring


def test_a_job_of_root_keeps_the_session_keyring_of_the_worker(shared: Shared) -> None:
    require("keyctl", shutil.which("keyctl"), "it puts a key into the session keyring of the worker")
    job = shared.enqueue("keyctl print %user:queuectl-test", queue="admin")
    shared.worker("--drain", through=("keyctl", "session", "-", "sh", "-c", WITH_A_KEY, "sh"), ready=False).wait()
    assert shared.printed(job) == ["TOP-SECRET"]


# A seccomp filter that denies keyctl, as that of Docker does: load the number of the call, compare, return EPERM or allow.
WITHOUT_KEYCTL = """
import ctypes, os, struct, sys
import platform
from queuectl.process.linux import _KEYCTL
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, _KEYCTL[platform.machine()]), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execv(sys.executable, [sys.executable, "-m", "queuectl", *sys.argv[1:]])
"""


def test_doctor_says_where_a_job_cannot_have_a_keyring_of_its_own(shared: Shared) -> None:
    job = shared.enqueue("id -u")
    command, env = [sys.executable, "-c", WITHOUT_KEYCTL], shared.queuectl.environment()
    subprocess.run([*command, "worker", "start", "--drain"], env=env, check=True, capture_output=True)
    assert shared.printed(job) == [str(other().pw_uid)]  # it runs all the same
    done = subprocess.run([*command, "doctor", "--json"], env=env, capture_output=True, text=True)
    assert "policy-keyring" in done.stdout
    assert "policy-keyring" not in shared.queuectl("doctor", "--json").out


def test_a_list_of_variables_is_obeyed_but_the_home_is_that_of_the_user(shared: Shared) -> None:
    shared.policy(f'environment = ["HOME", "PATH", "GIVEN"]\n{POLICY}')
    job = shared.enqueue("echo $HOME; echo $GIVEN; echo $PATH")
    shared.drain(env={"GIVEN": "yes", "HOME": "/root", "PATH": "/opt/x:/usr/bin:/bin"})
    assert shared.printed(job) == [other().pw_dir, "yes", "/opt/x:/usr/bin:/bin"]


def test_the_umask_is_that_of_the_worker_unless_the_policy_has_another(shared: Shared) -> None:
    shared.policy(f'{POLICY}[queues.tight]\nuser = "{OTHER}"\numask = "027"\n')
    plain, tight = shared.enqueue("umask"), shared.enqueue("umask", queue="tight")
    shared.drain()
    mask = os.umask(0)
    os.umask(mask)
    assert [int(shared.printed(job)[0], 8) for job in (plain, tight)] == [mask, 0o027]


def test_a_job_can_reopen_its_output(shared: Shared) -> None:
    job = shared.enqueue("echo a > /dev/stdout; echo b > /dev/stderr")
    shared.drain()
    assert shared.printed(job) == ["a", "b"]


# ── or refuses ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_root_refuses_jobs_for_which_no_user_is_named_and_runs_those_for_which_root_is(shared: Shared) -> None:
    shared.policy('[queues.admin]\nuser = "root"\n')
    job, admin = shared.enqueue(shared.note("ran")), shared.enqueue("id -u", queue="admin")
    shared.drain()
    found = shared.job(job)
    assert (found["state"], found["attempts"], found["runs"]) == ("dead", 0, 0)
    assert (
        found["error"]
        == "refused by policy: user: the worker runs as root, and the policy names no user for the queue default"
    )
    assert not shared.path("ran").exists()
    assert shared.printed(admin) == ["0"]
    (record,) = shared.queuectl("audit", "--id", job, "--json", check=0).json[:1]
    assert record["what"] == "policy refuse"


def test_without_a_policy_root_runs_jobs_as_before(shared: Shared) -> None:
    (shared.home / "policy.toml").unlink()
    job = shared.enqueue("id -u")
    shared.drain()
    assert shared.printed(job) == ["0"]


def test_an_unknown_user_keeps_the_worker_from_starting(shared: Shared) -> None:
    shared.policy('user = "nosuchuser"\n')
    told = shared.queuectl("worker", "start", "--drain", check=1)
    assert "this host has no user nosuchuser" in told.err


# ── where it may go ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rule", ["", 'directories = ["/"]\n'])
def test_a_directory_is_entered_by_the_rights_of_the_user_and_so_is_the_way_there(shared: Shared, rule: str) -> None:
    shared.policy(rule + POLICY)
    closed = shared.path("closed")
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o700)
    jobs = [shared.enqueue("pwd", cwd=str(cwd), max_retries=1) for cwd in (closed, closed / "open")]
    fine = shared.enqueue("pwd", cwd=str(shared.directory))
    shared.drain()
    for job in jobs:
        assert "cannot be entered: permission denied" in shared.job(job)["error"], shared.job(job)["error"]
    assert shared.printed(fine) == [str(shared.directory)]


def test_a_directory_that_is_swapped_is_not_entered_by_others_either(shared: Shared) -> None:
    inside = shared.path("inside")
    inside.mkdir()
    shared.policy(f'directories = ["{inside}"]\n{POLICY}')
    (inside / "spot").symlink_to("/")
    job = shared.enqueue("pwd", cwd=str(inside / "spot"))
    shared.drain()
    assert shared.job(job)["error"].startswith("refused by policy: directories: ")


# ── logs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_is_readable_by_the_user_of_the_job_and_root_and_not_writable(shared: Shared) -> None:
    job, admin = shared.enqueue("echo hello"), shared.enqueue("echo hello", queue="admin")
    shared.drain()
    log, uid = shared.log(job), other().pw_uid
    assert "hello\n" in as_user(uid, "cat", log).stdout
    assert as_user(STRANGER, "cat", log).returncode
    assert as_user(OUTSIDER, "cat", log).returncode
    assert as_user(uid, "sh", "-c", f"echo x >> {log}").returncode
    assert as_user(uid, "cat", shared.log(admin)).returncode
    assert stat.S_IMODE(shared.log(admin).stat().st_mode) == 0o600
    for word, path in (("ls", shared.home), ("ls", log.parent), ("cat", shared.home / "queue.db"), ("rm", log)):
        assert as_user(uid, word, path).returncode, (word, path)
    assert "open-to-others" not in shared.queuectl("doctor", "--json").out


def test_a_log_that_is_rotated_stays_readable(shared: Shared) -> None:
    shared.configure(log_limit="64KiB")
    job = shared.enqueue("seq 1 50000")
    shared.drain()
    told = as_user(other().pw_uid, "cat", shared.log(job)).stdout
    assert told.startswith("--- CONTINUED at byte ")
    assert "\n50000\n" in told
    assert as_user(other().pw_uid, "cat", f"{shared.log(job)}.1").stdout.startswith("--- CONTINUED at byte ")


def test_who_takes_the_job_over_takes_over_the_log(shared: Shared) -> None:
    job = shared.enqueue("echo $USER; exit 1", max_retries=2, backoff_base=1)
    shared.policy(f'user = "{STRANGER}:{STRANGER}"')
    shared.drain()
    shared.policy()
    shared.queuectl("retry", job, check=0)
    shared.drain()
    assert as_user(STRANGER, "cat", shared.log(job)).returncode
    assert OTHER in as_user(other().pw_uid, "cat", shared.log(job)).stdout
    shared.policy('user = "root"')
    shared.queuectl("retry", job, check=0)
    shared.drain()
    assert as_user(other().pw_uid, "cat", shared.log(job)).returncode


def test_a_job_reads_the_output_of_parents_of_any_user(shared: Shared) -> None:
    parents = [shared.enqueue("echo one"), shared.enqueue("echo two", queue="strange")]
    words = 'for p in $QUEUECTL_PARENTS; do grep -v -e --- "$QUEUECTL_PARENT_LOGS/$p.log"; done'
    child = shared.enqueue(words, depends_on=parents)
    shared.drain()
    assert sorted(shared.printed(child)) == ["one", "two"]
    assert as_user(OUTSIDER, "cat", shared.log(parents[0])).returncode


# ── what it must not be able to do ──────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_locks_its_log_delays_no_other_job(shared: Shared) -> None:
    held = shared.enqueue(
        'log="$QUEUECTL_HOME/logs/held.log"; echo begin; until [ -e "$log" ]; do sleep 0.03; done; exec 9<"$log"; flock 9; '
        f"{shared.note('locked')}; {shared.until('go')}; echo end",
        id="held",
    )
    worker = shared.worker("--count", "2")
    shared.wait_for_file("locked")
    free = shared.enqueue("echo free; echo more", queue="strange")
    shared.wait_for(free, "completed")
    assert shared.printed(free) == ["free", "more"]
    shared.open("go")
    shared.wait_for(held, "completed")
    assert shared.printed(held) == ["begin", "end"]
    worker.send(signal.SIGTERM)


def test_a_job_can_neither_inspect_nor_kill_its_supervisor_nor_become_root(shared: Shared) -> None:
    worker = shared.worker("--count", "2")
    (supervisor,) = [child.pid for child in children(worker.pid)]
    tries = [
        f"{{ kill -0 {pid} || kill -9 {pid} || kill -STOP {pid} || cat /proc/{pid}/environ || ls /proc/{pid}/fd/ || "
        f"true > /proc/{pid}/mem; }} 2>/dev/null && echo got {pid}"
        for pid in (supervisor, worker.pid)
    ]
    tries += [
        "setpriv --reuid 0 true 2>/dev/null && echo root",
        "setpriv --regid 0 --clear-groups true 2>/dev/null && echo group",
        "cat $QUEUECTL_HOME/queue.db $QUEUECTL_HOME/policy.toml $QUEUECTL_HOME/workers/* 2>/dev/null && echo read",
        "{ true > $QUEUECTL_HOME/made; } 2>/dev/null && echo wrote",
        "ls /proc/self/fd | grep -v -e '^[0123]$' && echo descriptors",
        "echo tried",
    ]
    job = shared.enqueue("; ".join(tries))
    shared.wait_for(job, "completed")
    assert shared.printed(job) == ["tried"]
    assert is_running(supervisor)


def test_a_job_is_in_its_control_group_from_the_start_and_cannot_leave_it(shared: Shared) -> None:
    place = require_groups()
    leave = (
        f"{{ echo 0 > {place}/cgroup.procs || mkdir $d/inner || echo 1 > $d/cgroup.kill; }} 2>/dev/null && echo left"
    )
    job = shared.enqueue(f"d={place}$(tail -1 /proc/self/cgroup | cut -c4-); {leave}; tail -1 /proc/self/cgroup")
    shared.drain()
    (line,) = shared.printed(job)
    assert line.rpartition("/")[2].startswith("queuectl-run-")


def test_a_job_that_stops_all_processes_of_its_user_stops_no_others(shared: Shared) -> None:
    # For a moment between the supervisor and the program a process is its user's, and could be stopped: the supervisor waits for it.
    stop = "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p -gt $$ ] && kill -STOP $p; done 2>/dev/null"
    shared.configure(kill_grace="100ms")
    shared.enqueue(f"{shared.note('begun')}; {shared.loop('go', stop)}", queue="bully")
    worker = shared.worker("--count", "3")
    shared.wait_for_file("begun")
    shared.enqueue_all([{"command": "true", "queue": "bully", "timeout": 0.1, "max_retries": 1}] * 30)
    free = shared.enqueue_all([{"command": "true", "queue": "strange"}] * 30)
    wait_until(lambda: all(shared.state(job) == "completed" for job in free), timeout=60, what="the jobs of others")
    shared.open("go")
    shared.wait_for_all()
    worker.send(signal.SIGTERM)


def test_what_a_job_wants_loaded_is_loaded_by_itself_only(shared: Shared) -> None:
    job = shared.enqueue(argv=["/usr/bin/id", "-u"], env={"LD_PRELOAD": "/nowhere/evil.so"})
    shared.drain()
    *complaints, uid = shared.printed(job)
    assert uid == str(other().pw_uid)
    assert all("/nowhere/evil.so" in line for line in complaints)
    assert len(complaints) <= 1  # of the program, and of nothing that ran before it


# ── ends ────────────────────────────────────────────────────────────────────────────────────────────────────────────

HIDDEN = "setsid sh -c 'trap \"\" TERM; sleep 300' & sleep 300"


def family(uid: int) -> list[int]:
    found = []
    for one in processes():
        try:
            if os.stat(f"/proc/{one.pid}").st_uid == uid:
                found.append(one.pid)
        except FileNotFoundError:
            continue
    return found


@pytest.mark.parametrize("how", ["timeout", "cancel", "now"])
def test_timeout_cancel_and_stop_end_all_that_a_job_of_another_user_has_begun(shared: Shared, how: str) -> None:
    shared.configure(kill_grace="100ms")
    job = shared.enqueue(HIDDEN, queue="strange", max_retries=1, timeout=1 if how == "timeout" else 0)
    shared.worker()
    wait_until(lambda: len(family(STRANGER)) >= 3, what="its processes")
    if how == "cancel":
        shared.queuectl("cancel", job, check=0)
    elif how == "now":
        shared.queuectl("worker", "stop", "--now", check=0)
    shared.wait_for(job, {"timeout": "dead", "cancel": "cancelled", "now": "pending"}[how])
    wait_until(lambda: not family(STRANGER), what="nothing to be left")


def test_a_job_of_another_user_is_adopted_when_its_worker_dies_and_ends_as_it_ends(shared: Shared) -> None:
    job = shared.enqueue(f"echo before; {shared.until('go')}; echo after; exit 7", queue="strange", max_retries=1)
    worker = shared.worker()
    wait_until(lambda: shared.state(job) == "processing" and family(STRANGER), what="it to run")
    worker.send(signal.SIGKILL)
    shared.worker()
    shared.open("go")
    found = shared.wait_for(job, "dead")
    assert (found["exit_code"], found["runs"], found["crashes"]) == (7, 1, 0)
    assert shared.printed(job) == ["before", "after"]
    assert "after" in as_user(STRANGER, "cat", shared.log(job)).stdout


def test_what_a_dead_worker_and_its_supervisor_left_of_another_user_is_ended_and_runs_again(shared: Shared) -> None:
    job = shared.enqueue(f"{shared.note('ran')}; {shared.until('go')}", queue="strange")
    worker = shared.worker()
    shared.wait_for_lines("ran", 1)
    (supervisor,) = [child.pid for child in children(worker.pid)]
    first = wait_until(lambda: [run["pid"] for run in shared.history(job) if run["pid"]], what="its number")[0]
    worker.send(signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    shared.worker()
    shared.wait_for_lines("ran", 2)
    assert not is_running(first)
    shared.open("go")
    assert shared.wait_for(job, "completed")["crashes"] == 1


def test_the_store_of_root_says_to_others_that_it_is_not_theirs(shared: Shared) -> None:
    shared.enqueue("true")
    shared.drain()
    pid = os.fork()  # not another program: Python itself may lie where others cannot come
    if not pid:
        try:
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(other().pw_uid, other().pw_uid, other().pw_uid)
            with pytest.raises(StoreFailed, match="you may not read it"):
                open_reads(str(shared.home), None).workers()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
