"""Features of all commands: global options, help, errors, exit status."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from queuectl import __version__
from queuectl.cli.command import LazyGroup
from queuectl.cli.commands import root
from queuectl.store.open import open_store
from queuectl.store.types import NewWorker
from tests.needs import require
from tests.program import COMMAND, Program, environment
from tests.terminal import Terminal, plain


def every_command(group: LazyGroup = root, *path: str) -> list[tuple[str, ...]]:
    """The path of each command and group."""
    found: list[tuple[str, ...]] = [path]
    for name in group.table:
        command = group.get_command(None, name)  # type: ignore[arg-type] # the table needs no context
        found += every_command(command, *path, name) if isinstance(command, LazyGroup) else [(*path, name)]
    return found


COMMANDS = every_command()


# ── help ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help_with_examples(queuectl: Program, arguments: tuple[str, ...], option: str) -> None:
    page = queuectl(*arguments, option, check=0)
    assert page.err == ""
    assert page.out.startswith(" ".join(["Usage: queuectl", *arguments]))
    assert "\nExamples:\n" in page.out
    assert "--home DIR" in page.out
    assert not queuectl.home.exists()


def test_the_program_alone_prints_its_help(queuectl: Program) -> None:
    alone = queuectl(check=0)
    assert alone.out == queuectl("--help", check=0).out
    assert "enqueue" in alone.out


def test_the_help_of_the_program_loads_no_command(home: Path) -> None:
    script = "import sys; from queuectl.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], env=environment(home), capture_output=True, text=True)
    loaded = [name for name in done.stderr.split() if name.startswith("queuectl.")]
    assert "queuectl.cli.commands" in loaded
    assert not [name for name in loaded if name.startswith("queuectl.cli.commands.")]
    assert not [name for name in loaded if name.startswith("queuectl.store")]


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_one_line(queuectl: Program, option: str) -> None:
    assert queuectl(option, check=0).out == f"queuectl {__version__}\n"


# ── global options ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "config", "list"),
        ("config", "--json", "list"),
        ("config", "list", "--json"),
    ],
)
def test_global_options_stand_anywhere(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert queuectl(*arguments, check=0).json[0]["key"] == "max-retries"


def test_the_rightmost_home_wins_over_the_environment(queuectl: Program, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    queuectl("--home", first, "enqueue", "true", "--home", second, check=0)
    assert (first.exists(), second.exists(), queuectl.home.exists()) == (False, True, False)


def test_a_path_and_a_url_name_the_same_store(queuectl: Program, tmp_path: Path) -> None:
    job_id = queuectl("--db", tmp_path / "x.db", "enqueue", "true", check=0).out
    assert queuectl("list", "--quiet", "--db", f"sqlite:///{tmp_path}/x.db", check=0).out == job_id
    assert queuectl("list", "--quiet", env={"QUEUECTL_DB": str(tmp_path / "x.db")}, check=0).out == job_id


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("list",),
        ("show", "x"),
        ("enqueue", "true"),
        ("worker", "start"),
        ("copy", "--from", "oracle://h/a", "--to", "b.db"),
    ],
)
def test_a_database_of_an_unknown_kind_is_invalid_usage(
    queuectl: Program, home: Path, arguments: tuple[str, ...]
) -> None:
    done = queuectl("--db", "oracle://user:secret@host/name", *arguments, check=2)
    assert done.err.splitlines()[0] == "error: unsupported database oracle://"
    assert (done.out, len(done.err.splitlines())) == ("", 2)
    assert not home.exists()


def test_a_missing_directory_of_the_database_is_reported(queuectl: Program, tmp_path: Path) -> None:
    store = tmp_path / "no" / "x.db"
    what, hint = queuectl("enqueue", "true", "--db", store, check=1).err.splitlines()
    assert what == f"error: the database {store} failed: its directory does not exist"
    assert "--db" in hint
    assert queuectl("list", "--quiet", "--db", store, check=0).out == ""
    assert not store.parent.exists()


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────

WRONG = [
    ("enqueu",),
    ("config", "gett"),
    ("config",),
    ("config", "get", "a", "b"),
    ("--bogus",),
    ("enqueue", "--bogus"),
    ("enqueue", "--priority"),
    ("enqueue", "true", "--priority", "x"),
    ("enqueue", "true", "--stream=1"),
    ("completion", "tcsh"),
    ("--home",),
    ("--home", "", "list"),
    ("list", "--limit", "-1"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_is_two_lines_on_stderr(queuectl: Program, arguments: tuple[str, ...]) -> None:
    printed = queuectl(*arguments, check=2)
    assert printed.out == ""
    what, what_to_do = printed.err.splitlines()
    assert what.startswith("error: ")
    assert what_to_do.startswith("hint: ")


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_with_json_is_one_object(queuectl: Program, arguments: tuple[str, ...]) -> None:
    printed = queuectl("--json", *arguments, check=2)
    assert printed.out == ""
    error = json.loads(printed.err)
    assert set(error) == {"error"}
    assert set(error["error"]) == {"code", "message", "hint"}
    assert all(error["error"].values())


def test_json_anywhere_in_the_arguments_makes_errors_json(queuectl: Program) -> None:
    assert json.loads(queuectl("--bogus", "list", "--json", check=2).err)["error"]["code"] == "usage"
    # After -- it is an argument of the command.
    assert queuectl("enqueue", "--bogus", "--", "curl", "--json", check=2).err.startswith("error: ")


@pytest.mark.parametrize(
    "arguments, nearest",
    [
        (("enqeue", "x"), "enqueue"),
        (("config", "lst"), "list"),
        (("list", "--jsn"), "--json"),
        (("enqueue", "--max-retry", "3"), "--max-attempts"),
    ],
)
def test_a_mistyped_name_suggests_the_nearest(queuectl: Program, arguments: tuple[str, ...], nearest: str) -> None:
    assert "did you mean" in (printed := queuectl(*arguments, check=2).err)
    assert nearest in printed


def test_a_choice_that_is_missing_is_named_on_one_line(queuectl: Program) -> None:
    printed = queuectl("completion", check=2).err
    assert "\\n" not in printed
    assert "bash, zsh, fish" in printed


@pytest.mark.parametrize(
    "arguments",
    [("list", "--limit", "1_0"), ("list", "--offset", "٣"), ("logs", "x", "--tail", "٣"), ("logs", "x", "--run=1_0")],
)
def test_only_plain_digits_are_a_number(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert "expected an integer of at least" in queuectl(*arguments, check=2).err


@pytest.mark.parametrize("text", ["9" * 5000, "0" * 5000 + "1", "9" * 30, "0000000019999999999", "٣"], ids=len)
@pytest.mark.parametrize(
    "arguments",
    [
        ("worker", "start", "--drain", "--count={}"),
        ("worker", "start", "--drain", "--queue=q={}"),
        ("queue", "set", "q", "--concurrency={}"),
        ("queue", "set", "q", "--per-key={}"),
        ("queue", "set", "q", "--priority={}"),
        ("queue", "set", "q", "--rate={}/s"),
        ("cron", "add", "c", "{} * * * *", "true"),
        ("enqueue", "--priority={}", "true"),
        ("enqueue", "--array=1-{}", "true"),
        ("dashboard", "--port={}"),
        ("audit", "verify", "--head={}:" + 64 * "a"),
    ],
    ids=" ".join,
)
def test_a_number_of_absurd_length_or_script_is_refused(
    queuectl: Program, arguments: tuple[str, ...], text: str
) -> None:
    answer = queuectl(*(word.format(text) for word in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 2
    assert "unexpected" not in answer.err
    assert not queuectl.home.exists()


def test_an_invalid_size_is_refused_with_the_accepted_form(queuectl: Program) -> None:
    for text in ("5000TiB", "5TiB", "1", "x"):
        printed = queuectl("config", "set", "log-limit", text, check=2).err
        assert printed.startswith(f"error: log-limit: expected a size from 1KiB to 1TiB, got '{text}'\n")
        assert "1024TiB" not in printed


READ_ONLY = 'mount --bind "$QUEUECTL_HOME" "$QUEUECTL_HOME" && mount -o remount,bind,ro "$QUEUECTL_HOME" && exec "$@"'


def on_a_read_only_disk(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    aside = ["unshare", "--mount", "--map-root-user"]
    able = shutil.which("unshare") and subprocess.run([*aside, "true"], capture_output=True).returncode == 0
    require("unshare --mount", able, "a view of the disk of its own needs privileges")
    command = [*aside, "sh", "-c", READ_ONLY, "sh", *COMMAND, *arguments]
    return subprocess.run(command, env=environment(home), capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [("status",), ("list",), ("show", "j"), ("logs", "j"), ("metrics",)])
def test_a_database_on_a_read_only_disk_can_be_read(queuectl: Program, home: Path, arguments: tuple[str, ...]) -> None:
    queuectl("enqueue", "--id", "j", "echo said", check=0)
    queuectl("worker", "start", "--drain", check=0)
    with contextlib.closing(sqlite3.connect(home / "queue.db")) as last:
        last.execute("select * from jobs").fetchall()  # the last connection removes -wal and -shm
    done = on_a_read_only_disk(home, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "said" in done.stdout if arguments[0] == "logs" else "completed" in done.stdout
    refused = on_a_read_only_disk(home, "enqueue", "true")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "cannot be written" in refused.stderr


@pytest.mark.parametrize("folders", [False, True], ids=["a new home", "a home that was used"])
def test_a_worker_on_a_read_only_disk_reports_it(queuectl: Program, home: Path, tmp_path: Path, folders: bool) -> None:
    elsewhere = ("--db", str(tmp_path / "elsewhere.db"))
    queuectl(*elsewhere, "enqueue", "true", check=0)
    home.mkdir(exist_ok=True)
    if folders:
        queuectl(*elsewhere, "worker", "start", "--drain", check=0)
        queuectl(*elsewhere, "enqueue", "true", check=0)
    done = on_a_read_only_disk(home, *elsewhere, "worker", "start", "--drain")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"error: cannot use {home} as the data directory: Read-only file system",
        "hint: choose another directory with --home or QUEUECTL_HOME",
    ]


def test_a_database_that_needs_writes_to_be_read_is_reported(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    with contextlib.closing(sqlite3.connect(home / "queue.db")) as other:
        other.execute("pragma user_version").fetchall()
        (home / "queue.db-wal").write_bytes((home / "queue.db-wal").read_bytes() or b"x" * 32)
        kept = (home / "queue.db-wal").read_bytes()
    (home / "queue.db-wal").write_bytes(kept)  # as after a power failure
    done = on_a_read_only_disk(home, "status")
    assert (done.returncode, done.stdout) == (1, "")
    what, what_to_do = done.stderr.splitlines()
    assert "its directory is read-only" in what
    assert "copy it" in what_to_do


def test_control_characters_in_errors_are_escaped(queuectl: Program) -> None:
    printed = queuectl("show", "\x1b[31mred\x07\n\x9b", check=1).err
    assert len(printed.splitlines()) == 2
    assert not [char for char in printed if char != "\n" and not char.isprintable()]
    printed = queuectl(b"x\xff\x1b".decode("utf-8", "surrogateescape"), check=2).err
    assert "\\xff" in printed or "\\udcff" in printed


@pytest.mark.parametrize("home", ["/dev/null", "/dev/null/x", "/proc/nowhere"])
def test_an_invalid_data_directory_is_reported_in_one_line(queuectl: Program, home: str) -> None:
    printed = queuectl("--home", home, "enqueue", "true", "--json", check=1)
    assert json.loads(printed.err)["error"]["code"] == "home-unusable"


def test_a_bad_setting_in_the_environment_is_named(queuectl: Program) -> None:
    printed = queuectl("enqueue", "true", env={"QUEUECTL_PRIORITY": "high"}, check=2)
    assert printed.err.startswith("error: QUEUECTL_PRIORITY: ")
    assert not queuectl.home.exists()


def test_an_unexpected_error_is_a_line_and_not_a_traceback(home: Path) -> None:
    script = (
        "import sys; from queuectl.cli import main, render\n"
        "render.render = lambda app, result: 1 / 0\n"
        "sys.exit(main.run(['config', 'list']))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: unexpected ZeroDivisionError: division by zero"
    assert "QUEUECTL_DEBUG=1" in done.stderr
    debugged = subprocess.run(command, env=environment(home, {"QUEUECTL_DEBUG": "1"}), capture_output=True, text=True)
    assert "Traceback" in debugged.stderr


@pytest.mark.parametrize("arguments", [("config", "list"), ("config", "get", "lease"), ("list",), ("--help",)])
def test_reading_a_missing_data_directory_creates_nothing(queuectl: Program, arguments: tuple[str, ...]) -> None:
    queuectl(*arguments, check=0)
    assert not queuectl.home.exists()


# ── on a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments, env, colored",
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        (("--no-color",), {}, False),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    home: Path, arguments: tuple[str, ...], env: dict[str, str | None], colored: bool
) -> None:
    terminal = Terminal(home, "config", "list", *arguments, env=env)
    assert terminal.end() == 0
    assert ("\x1b[" in terminal.shown) is colored
    terminal = Terminal(home, "bogus", *arguments, env=env)
    assert terminal.end() == 2
    assert ("\x1b[" in terminal.shown) is colored


@pytest.mark.parametrize("columns", [60, 100, 120])
def test_a_table_fits_its_terminal(home: Path, columns: int) -> None:
    terminal = Terminal(home, "config", "list", columns=columns)
    assert terminal.end() == 0
    lines = plain(terminal.shown).splitlines()
    assert max(map(len, lines)) <= columns
    assert ("…" in plain(terminal.shown)) is (columns < 120)


@pytest.mark.parametrize("columns", ["9" * 5000, "0", "wide", ""], ids=len)
def test_an_invalid_width_is_ignored(home: Path, columns: str) -> None:
    terminal = Terminal(home, "config", "list", columns=60, env={"COLUMNS": columns})
    assert terminal.end() == 0
    assert max(map(len, plain(terminal.shown).splitlines())) <= 60


@pytest.mark.parametrize(
    "arguments", [("list",), ("dlq", "list"), ("worker", "list"), ("config", "list"), ("show", "j")]
)
def test_a_row_is_one_line_on_the_narrowest_terminal(queuectl: Program, home: Path, arguments: tuple[str, ...]) -> None:
    fields = {"queue": "q" * 64, "priority": -1_000_000, "tags": ["t" * 64], "command": "false " + "x" * 100}
    queuectl("enqueue", json.dumps([{**fields, "id": name, "max_retries": 1} for name in ("j", "j" * 128)]), check=0)
    queuectl("worker", "start", "--drain", check=0)
    if arguments[0] == "worker":
        with contextlib.closing(open_store(str(home))) as store:
            store.claims.register(NewWorker("w" * 64, "h" * 64, 4_000_000, str(home), 1000, ("q" * 64,))).close()
    terminal = Terminal(home, *arguments, columns=40)
    assert terminal.end() == 0
    lines = plain(terminal.shown).splitlines()
    rows = lines[lines.index("") :] if arguments[0] == "show" else lines  # the page of a job is no table
    if arguments[0] == "show":
        rows = [line for line in rows if line.split()[:1] in (["RUN"], ["1"])]
    assert len(rows) >= 2
    assert max(map(len, rows)) <= 40
    assert rows[0].split()[0] in ("ID", "WORKER", "KEY", "RUN")


def test_waiting_for_a_locked_database_is_reported(home: Path, queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    with contextlib.closing(sqlite3.connect(home / "queue.db", isolation_level=None)) as holder:
        holder.execute("begin immediate")
        terminal = Terminal(home, "enqueue", "true")
        terminal.wait_for("locked by another program")
        holder.execute("rollback")
        assert terminal.end() == 0
    assert len(queuectl("list", "--quiet", check=0).lines) == 2


@pytest.mark.parametrize(
    "arguments", [("list",), ("worker", "list"), ("config", "get", "priority"), ("status", "--json")]
)
def test_a_bad_variable_is_refused_by_every_command_and_by_name(
    queuectl: Program, arguments: tuple[str, ...], home: Path
) -> None:
    for variables in (
        {"QUEUECTL_AGEING": "1s"},
        {"QUEUECTL_MAX_RETRIES": "many"},
        {"QUEUECTL_LEASE": "9s", "QUEUECTL_HEARTBEAT": "5s"},
    ):
        answer = queuectl(*arguments, env=variables)
        assert (answer.code, answer.out) == (2, "")
        assert all(variable in answer.err for variable in variables)
    assert not home.exists()


def test_queuectl_db_path_is_another_name_of_queuectl_db(queuectl: Program, tmp_path: Path) -> None:
    store, other = str(tmp_path / "x.db"), str(tmp_path / "y.db")
    job_id = queuectl("enqueue", "true", env={"QUEUECTL_DB_PATH": store}, check=0).out
    assert queuectl("list", "--quiet", env={"QUEUECTL_DB": store}, check=0).out == job_id
    assert queuectl("list", "--quiet", env={"QUEUECTL_DB": store, "QUEUECTL_DB_PATH": store}, check=0).out == job_id
    assert queuectl("list", "--quiet", "--db", store, env={"QUEUECTL_DB_PATH": other}, check=0).out == job_id
    refused = queuectl("list", env={"QUEUECTL_DB": store, "QUEUECTL_DB_PATH": other}, check=2)
    assert "QUEUECTL_DB_PATH" in refused.err
    assert "QUEUECTL_DB " in refused.err
    assert "QUEUECTL_DB_PATH" in queuectl("list", env={"QUEUECTL_DB_PATH": ""}, check=2).err


def test_a_job_gets_the_database_of_its_worker_under_one_name(queuectl: Program, tmp_path: Path) -> None:
    env = {"QUEUECTL_DB_PATH": str(tmp_path / "x.db")}
    queuectl("enqueue", "--id", "look", "env", env=env, check=0)
    queuectl("worker", "start", "--drain", env=env, check=0)
    printed = queuectl("logs", "look", env=env, check=0).lines
    assert f"QUEUECTL_DB={tmp_path}/x.db" in printed
    assert not [line for line in printed if line.startswith("QUEUECTL_DB_PATH=")]


def test_an_inaccessible_data_directory_is_not_treated_as_empty(queuectl: Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        answer = queuectl("list", "--home", home)
        assert (answer.code, answer.out) == (1, "")
        assert "cannot use" in answer.err


def test_a_huge_count_means_all(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    assert len(queuectl("list", "--limit", "9" * 30, "--json", check=0).json) == 1
    assert queuectl("list", "--offset", "9" * 30, "--json", check=0).json == []
    assert len(queuectl("audit", "--limit", "9" * 30, "--json", check=0).json) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--limit"),
        ("list", "--offset"),
        ("dlq", "list", "--limit"),
        ("audit", "--limit"),
        ("logs", "x", "--tail"),
    ],
    ids=" ".join,
)
def test_a_negative_count_is_refused(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert (
        queuectl(*arguments, "-1", check=2).err
        == f"error: {arguments[-1]}: expected an integer of at least 0, got -1\nhint: for example, {arguments[-1]}=10\n"
    )


def test_the_directory_of_a_foreign_database_is_not_changed(queuectl: Program, home: Path) -> None:
    home.mkdir()
    (home / "queue.db").write_text("something else, and longer than a header of a hundred bytes " * 3)
    assert queuectl("enqueue", "true").code == 1
    assert [path.name for path in home.iterdir()] == ["queue.db"]
