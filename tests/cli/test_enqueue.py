from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.program import COMMAND, Program
from tests.terminal import Terminal, plain
from tests.wait import wait_until

PIPE = subprocess.PIPE


def enqueued(queuectl: Program, *args: str, input: str | bytes | None = None) -> dict[str, object]:
    """The single job that these arguments add."""
    job: dict[str, object] = queuectl("--json", "enqueue", *args, input=input, check=0).json
    return job


def refused(queuectl: Program, *args: str, input: str | bytes | None = None, code: int = 2) -> str:
    """The error for invalid arguments; nothing is printed on stdout or created."""
    result = queuectl("enqueue", *args, input=input, check=code)
    assert result.out == ""
    first, second = result.err.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("hint: ")
    assert not queuectl.home.exists()
    return result.err


def listed(queuectl: Program) -> list[dict[str, object]]:
    """All jobs, in the order of their enqueue."""
    jobs: list[dict[str, object]] = queuectl("list", "--json", check=0).json
    return jobs[::-1]


# ── one job ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_stdout_is_the_bare_id_of_a_job_that_is_stored(queuectl: Program) -> None:
    done = queuectl("enqueue", "echo hi", check=0)
    assert done.err == ""
    (job,) = listed(queuectl)
    assert done.out == f"{job['id']}\n"
    assert (job["command"], job["argv"], job["state"]) == ("echo hi", None, "pending")


def test_several_arguments_are_an_unchanged_argv(queuectl: Program) -> None:
    job = enqueued(queuectl, "printf", "%s\n", "a b", "")
    assert (job["command"], job["argv"]) == (None, ["printf", "%s\n", "a b", ""])


def test_after_two_dashes_everything_is_the_command(queuectl: Program) -> None:
    job = enqueued(queuectl, "--priority", "5", "--", "git", "checkout", "--", "--json", "-h")
    assert job["argv"] == ["git", "checkout", "--", "--json", "-h"]
    assert job["priority"] == 5
    assert enqueued(queuectl, "--", "-x")["command"] == "-x"


def test_options_may_follow_a_single_argument_in_any_order(queuectl: Program) -> None:
    job = enqueued(queuectl, "sleep 2", "--priority", "-5", "-q", "mail", "--tag", "b", "--tag", "a", "--timeout", "1m")
    assert (job["command"], job["priority"], job["queue"]) == ("sleep 2", -5, "mail")
    assert (job["tags"], job["timeout"]) == (["a", "b"], 60)
    assert queuectl("enqueue", "true", "--json", check=0).json["duplicate"] is False


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls", "-la"),
        ("echo", "hi", "--priority", "5"),
        ("echo", "--priority", "5", "hi"),
        ("sh", "-c", "true"),
        ("git", "checkout", "--", "file"),
        ("echo", "hi", "--json"),
        ("sleep 1", "--priority"),
    ],
)
def test_an_option_among_several_arguments_is_refused(queuectl: Program, arguments: tuple[str, ...]) -> None:
    failure = queuectl("enqueue", *arguments, check=2)
    assert failure.out == ""
    assert "put -- before the command" in failure.err
    assert not queuectl.home.exists()


def test_a_mistyped_option_after_a_single_argument_suggests_the_nearest(queuectl: Program) -> None:
    failure = refused(queuectl, "sleep 2", "--prioriti", "5")
    assert "--prioriti" in failure
    assert "did you mean --priority?" in failure
    assert "put -- before the command" in failure


def test_an_argument_that_begins_with_a_brace_is_json(queuectl: Program) -> None:
    job = enqueued(queuectl, ' {"id": "job1", "command": "sleep 2", "priority": 7}')
    assert (job["id"], job["command"], job["priority"]) == ("job1", "sleep 2", 7)


def test_json_that_the_shell_has_split_is_joined(queuectl: Program) -> None:
    arguments = ['{"command":', '"ls', '-la",', '"priority":', "-5}"]
    job = enqueued(queuectl, *arguments)
    assert (job["command"], job["priority"]) == ("ls -la", -5)
    assert enqueued(queuectl, *arguments, "--priority", "1", "--queue", "q")["priority"] == 1


@pytest.mark.parametrize("word", ["{ echo a; }", "[ -f x ] && echo y", "{", '{"command": "x"} {}', "[1]", "[[]]"])
def test_json_arguments_must_be_objects(queuectl: Program, word: str) -> None:
    assert f"for a shell command that starts with {word[0]} use --command" in refused(queuectl, word)


def test_the_option_command_accepts_text_that_looks_like_json(queuectl: Program) -> None:
    job = enqueued(queuectl, "--id", "x1", "--command", "{ echo a; }")
    assert (job["id"], job["command"]) == ("x1", "{ echo a; }")


def test_every_option_of_a_job_reaches_it(queuectl: Program, tmp_path: Path) -> None:
    options = [
        "--max-retries",
        "7",
        "--backoff-base",
        "1.5",
        "--timeout",
        "1h30m",
        "--cwd",
        str(tmp_path),
        "--env",
        "A=1",
    ]
    job = enqueued(queuectl, "true", *options, "--run-at", "2999-01-02T03:04:05Z")
    assert (job["max_retries"], job["backoff_base"], job["timeout"]) == (7, 1.5, 5400)
    assert (job["cwd"], job["env"], job["run_at"]) == (str(tmp_path), {"A": "***"}, "2999-01-02T03:04:05.000Z")
    assert enqueued(queuectl, "true", "--retries", "2")["max_retries"] == 2
    assert enqueued(queuectl, "true", "--max-retries", "0")["max_retries"] == 0
    assert enqueued(queuectl, "true", "--max-attempts", "4")["max_retries"] == 4


def test_an_option_overrides_a_field_under_any_of_its_names(queuectl: Program) -> None:
    fields = (
        '{"command": "x", "priority": 1, "timeout_sec": 5, "max_attempts": 9, "run_at": "2999-01-01", "argv": null}'
    )
    flags = ["--priority", "2", "--timeout", "7", "--max-retries", "1", "--delay", "0", "--command", "y"]
    job = enqueued(queuectl, fields, *flags)
    assert (job["priority"], job["timeout"], job["max_retries"], job["command"]) == (2, 7, 1, "y")
    assert str(job["run_at"]) < "2999"


def test_env_with_a_name_alone_copies_the_variable(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "e1", "--env", "FROM_HERE", "--env", "B=x=y", "true", env={"FROM_HERE": "v"}, check=0)
    shown = queuectl("show", "e1", "--json", "--show-env", check=0).json
    assert shown["env"] == {"FROM_HERE": "v", "B": "x=y"}


def test_a_variable_that_is_not_set_is_refused(queuectl: Program) -> None:
    assert "NOT_HERE" in refused(queuectl, "--env", "NOT_HERE", "true")


def test_the_directory_is_where_enqueue_was_called(queuectl: Program, tmp_path: Path) -> None:
    there = tmp_path / "sp ace é"
    there.mkdir()
    assert queuectl("enqueue", "--json", "true", cwd=there, check=0).json["cwd"] == str(there)
    assert queuectl("enqueue", "--json", "true", "--cwd", "sub/..", cwd=there, check=0).json["cwd"] == str(there)


@pytest.mark.parametrize("name", ["run_at", "available_at", "run_after", "next_run_at"])
@pytest.mark.parametrize("when", ["2001-01-02T03:04:05Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_past_run_at_means_now(queuectl: Program, name: str, when: str) -> None:
    job = enqueued(queuectl, json.dumps({"command": "true", name: when}))
    assert job["run_at"] == job["created_at"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("",),
        ("  ",),
        ("true", "--priority", "1000001"),
        ("true", "--priority", "x"),
        ("true", "--max-retries", "-1"),
        ("true", "--timeout", "soon"),
        ("true", "--delay", "-1"),
        ("true", "--run-at", "2026-13-01"),
        ("true", "--delay", "1", "--run-at", "2030-01-01"),
        ("true", "--id", "last"),
        ("true", "--id", "a b"),
        ("true", "--queue", "-"),
        ("true", "--backoff-base", "nan"),
        ("true", "--tag", "a b"),
        ("true", "--env", "=x"),
        ("true", "--command", "false"),
        ("true", "--file", "x"),
        ("-", "--file", "x"),
        ("true", "--stream"),
        ("true", "--format", "json"),
        ("--format", "yaml", "--file", "-"),
        ("--after", "x,", "true"),
        ("--if-exists", "error", "true"),
        ("--unique-for", "1h", "true"),
        ("--unique", "x", "--if-exists", "never", "true"),
        ("--unique", "", "true"),
        ('{"command": "a", "prority": 1}',),
        ('{"command": "a", "command": "b"}',),
        ('{"command": NaN}',),
        ("[" * 200,),
        (b"\xff".decode("utf-8", "surrogateescape"),),
        ("true", "--cwd", b"/\xff".decode("utf-8", "surrogateescape")),
    ],
)
def test_invalid_input_is_refused_and_creates_nothing(queuectl: Program, arguments: tuple[str, ...]) -> None:
    refused(queuectl, *arguments)


def test_enqueue_without_arguments_shows_an_example(queuectl: Program) -> None:
    assert "queuectl enqueue 'echo hello'" in refused(queuectl)


def test_an_id_that_is_taken_is_refused(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "true", check=0)
    failure = queuectl("enqueue", "--id", "a", "true", "--json", check=1)
    assert failure.out == ""
    assert json.loads(failure.err)["error"]["code"] == "duplicate-id"
    assert len(listed(queuectl)) == 1


def test_stored_settings_are_the_defaults_of_a_job(queuectl: Program) -> None:
    queuectl("config", "set", "priority", "-5", check=0)
    queuectl("config", "set", "max-retries", "9", check=0)
    assert enqueued(queuectl, "true")["priority"] == -5
    (job,) = queuectl(
        "enqueue", "--json", "--file", "-", input="true\n", env={"QUEUECTL_MAX_RETRIES": "4"}, check=0
    ).json
    assert (job["priority"], job["max_retries"]) == (-5, 4)


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "a"}\n\n{"command": "b"}\r\n   \n{"command": "c"}',
        '[{"command": "a"},\n {"command": "b"}, {"command": "c"}]',
        "a\r\n\n\t\nb\nc\n",
        '\ufeff{"command": "a"}\n{"command": "b"}\n{"command": "c"}\n',
        "\ufeffa\nb\nc",
    ],
)
def test_a_document_is_read_by_its_first_character(queuectl: Program, tmp_path: Path, text: str) -> None:
    document = tmp_path / "jobs"
    document.write_bytes(text.encode())
    ids = queuectl("enqueue", "--file", document, check=0).lines
    jobs = listed(queuectl)
    assert [job["command"] for job in jobs] == ["a", "b", "c"]
    assert [job["id"] for job in jobs] == ids
    assert len(queuectl("enqueue", "-", input=text, check=0).lines) == 3


def test_one_object_may_go_over_several_lines(queuectl: Program) -> None:
    text = '{\n  "command": "a",\n  "env": {"X": "1"}\n}\n'
    (job,) = queuectl("enqueue", "--file", "-", "--json", input=text, check=0).json
    assert (job["command"], job["duplicate"]) == ("a", False)


def test_a_format_that_is_named_decides(queuectl: Program) -> None:
    queuectl("enqueue", "--file", "-", "--format", "lines", input="{ echo a; }\n[ x ]\n# no comment\n", check=0)
    assert [job["command"] for job in listed(queuectl)] == ["{ echo a; }", "[ x ]", "# no comment"]
    assert queuectl("enqueue", "--file", "-", "--format", "json", input="true\n").code == 2


@pytest.mark.parametrize("text", ["", "\n \n", "[]", "\ufeff"])
def test_an_empty_document_adds_no_job_and_is_no_error(queuectl: Program, text: str) -> None:
    assert queuectl("enqueue", "--file", "-", input=text, check=0).out == ""
    assert queuectl("enqueue", "--file", "-", "--json", input=text, check=0).json == []
    assert not queuectl.home.exists()


@pytest.mark.parametrize(
    "bad, line",
    [
        (b'{"command": "a"}\n\n{"command": }\n', 3),
        (b'{"command": "a"}\n{"command": "b", "x": 1}\n{"command": 3}\n', 2),
        (b'{"command": "a"}\n[]\n', 2),
        (b"a\nb\xff\nc\n", 2),
        (b"a\nb\0c\n", 2),
        (b'{"command": "a"\n{"command": "b"}\n', 1),
    ],
)
def test_an_invalid_line_refuses_the_batch_and_is_named(queuectl: Program, bad: bytes, line: int) -> None:
    assert refused(queuectl, "--file", "-", input=bad).startswith(f"error: line {line}: ")


def test_a_bad_element_of_an_array_is_named(queuectl: Program) -> None:
    assert refused(queuectl, '[{"command": "a"}, {"comand": "b"}]').startswith("error: item 2: unknown field 'comand'")


def test_a_duplicate_in_a_batch_names_its_line_and_writes_nothing(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "taken", "true", check=0)
    text = '{"command": "a"}\n{"command": "b", "id": "taken"}\n'
    assert queuectl("enqueue", "--file", "-", input=text, check=1).err.startswith("error: line 2: ")
    text = '{"command": "a", "id": "x"}\n{"command": "b", "id": "x"}\n'
    assert queuectl("enqueue", "--file", "-", input=text, check=1).err.startswith("error: line 2: ")
    assert len(listed(queuectl)) == 1


def test_a_flag_counts_for_each_job_of_a_batch(queuectl: Program) -> None:
    text = '{"command": "a", "queue": "x"}\n{"command": "b"}\n'
    jobs = queuectl("enqueue", "--file", "-", "--queue", "mail", "--tag", "t", "--json", input=text, check=0).json
    assert [(job["queue"], job["tags"]) for job in jobs] == [("mail", ["t"])] * 2


def test_an_id_for_more_than_one_job_is_refused(queuectl: Program) -> None:
    refused(queuectl, "--id", "x", "--file", "-", input="a\nb\n")
    assert queuectl("enqueue", "--id", "x", "--file", "-", input="a\n", check=0).out == "x\n"


@pytest.mark.parametrize("name", ["missing", "."])
def test_an_unreadable_file_is_reported_in_one_line(queuectl: Program, tmp_path: Path, name: str) -> None:
    assert refused(queuectl, "--file", str(tmp_path / name), code=1).startswith("error: cannot read ")


@pytest.mark.parametrize(
    "arguments, input, noun",
    [
        (('[{"id": "x", "command": "a"}, {"id": "x", "command": "b"}]',), None, "item"),
        (("--file", "-"), '[{"id": "x", "command": "a"},\n\n {"id": "x", "command": "b"}]', "item"),
        (("--file", "-"), '{"id": "x", "command": "a"}\n{"id": "x", "command": "b"}', "line"),
    ],
)
def test_an_id_that_a_batch_has_twice_is_named_where_it_stands(
    queuectl: Program, arguments: tuple[str, ...], input: str | None, noun: str
) -> None:
    failure = queuectl("enqueue", *arguments, input=input, check=1).err
    assert failure.startswith(f"error: {noun} 2: the id 'x' is twice in this batch\n")
    assert "show" not in failure
    assert listed(queuectl) == []


def test_an_id_of_a_batch_that_is_taken_is_named_where_it_stands(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "x", "true", check=0)
    failure = queuectl("enqueue", '[{"command": "a"}, {"id": "x", "command": "b"}]', check=1).err
    assert failure.startswith("error: item 2: there is a job 'x' already\n")


@pytest.mark.parametrize(
    "arguments, failure",
    [
        (("--priority", "1000001", "x"), ["--priority: expected an integer", "for example, --priority 1"]),
        (
            ("--max-attempts", "0", "x"),
            ["--max-attempts: expected an integer from 1 to 1000000, got 0", "1 runs a job once"],
        ),
        (("--max-attempts", "-1", "x"), ["--max-attempts: expected an integer from 1 to 1000000, got -1"]),
        (("--max-retries", "-1", "x"), ["--max-retries: ", "for example, --max-retries 1"]),
        (("--backoff-base", "0", "x"), ["--backoff-base: ", "for example, --backoff-base 2"]),
        (("--command", " "), ["--command: blank", "for example, --command 'echo hi'"]),
        (("--delay", "soon", "x"), ["--delay: expected a duration, got 'soon'"]),
        (("--run-at", "soon", "x"), ["--run-at: expected a time, got 'soon'"]),
        (("--tag", "a b", "x"), ["--tag: not a tag: 'a b'"]),
        (("--cwd", "", "x"), ["--cwd: empty"]),
        (("--env", "", "x"), ["--env: names no variable: ''", "for example, --env LANG=C"]),
        (("--env", "=1", "x"), ["--env: names no variable: '=1'"]),
        (("--file", ""), ["--file: the name is empty", "- for stdin"]),
        (("--file", "", "x"), ["--file: the name is empty"]),
        (("",), ["the command is blank"]),
        (("", "x"), ["the command is blank"]),
        (("x", "--priority"), ["'--priority' requires an argument", "give it a value: --priority N"]),
        (("--priority",), ["'--priority' requires an argument", "give it a value: --priority N"]),
    ],
)
def test_errors_name_the_option_and_not_the_field(
    queuectl: Program, arguments: tuple[str, ...], failure: list[str]
) -> None:
    answer = refused(queuectl, *arguments)
    assert [text for text in failure if text not in answer] == []
    assert '": ' not in answer


@pytest.mark.parametrize("text", ["1_000", "٣", " 1", "0x1", "1e3", "--1", "9" * 5000])
def test_only_plain_digits_are_a_number(queuectl: Program, text: str) -> None:
    assert "expected an integer from -1000000 to 1000000, got" in refused(queuectl, f"--priority={text}", "x")


@pytest.mark.parametrize("text", ["1_0", "٣", "nan", "inf", "1e", "."])
def test_only_plain_digits_are_a_number_with_a_fraction(queuectl: Program, text: str) -> None:
    assert "expected a number of at least 1, got" in refused(queuectl, f"--backoff-base={text}", "x")


# ── streams ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_commits_and_prints_each_line_as_it_comes(queuectl: Program) -> None:
    process = queuectl.start("enqueue", "--stream", stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for command in ("echo 1", "echo 2"):
        process.stdin.write(f"{command}\n".encode())
        process.stdin.flush()
        job_id = process.stdout.readline().decode().strip()
        assert queuectl("show", job_id, "--json", check=0).json["command"] == command
    process.stdin.write(b"echo 3")  # the last line has no newline
    process.stdin.close()
    assert process.stdout.readline()
    assert process.wait(timeout=20) == 0
    process.stdout.close()


def test_a_stream_names_and_skips_bad_lines(queuectl: Program) -> None:
    text = b'{"command": "a", "id": "x"}\n{"command": }\n\n{"command": "b", "id": "x"}\n\xff\n{"command": "c"}\n'
    done = queuectl("enqueue", "--stream", "--file", "-", input=text, check=2)
    assert len(done.lines) == 2
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert [error.split(":")[1].strip() for error in errors] == ["line 2", "line 4", "line 5"]
    assert [job["command"] for job in listed(queuectl)] == ["a", "c"]


def test_a_stream_with_json_reports_all_invalid_lines_in_one_error(queuectl: Program) -> None:
    text = '{"command": "a"}\n{"command": }\n' + '{"command": 1}\n' * 9
    done = queuectl("enqueue", "--stream", "--json", input=text, check=2)
    assert [job["command"] for job in done.json] == ["a"]
    error = json.loads(done.err)["error"]
    assert error["code"] == "invalid-lines"
    assert error["message"].startswith("10 lines refused: line 2: ")
    assert error["message"].endswith("; and 5 more")
    done = queuectl("enqueue", "--stream", "--json", input='{"command": }\n', check=2)
    assert (done.json, json.loads(done.err)["error"]["code"]) == ([], "invalid-line")


def test_an_interrupted_stream_with_json_is_a_whole_array(queuectl: Program) -> None:
    with queuectl.start("enqueue", "--stream", "--json", stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"echo 1\n")
        process.stdin.flush()
        begun = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert [job["command"] for job in json.loads(begun + process.stdout.read())] == ["echo 1"]
        assert process.stderr.read() == b""


def test_an_array_cannot_be_streamed_nor_an_id_given(queuectl: Program) -> None:
    refused(queuectl, "--stream", input='[{"command": "a"}]\n')
    refused(queuectl, "--stream", "--id", "x", input="a\n")


def test_an_interrupted_stream_keeps_what_it_has_printed(queuectl: Program) -> None:
    process = queuectl.start("enqueue", "--stream", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"echo 1\n")
    process.stdin.flush()
    job_id = process.stdout.readline().decode().strip()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert [job["id"] for job in listed(queuectl)] == [job_id]


def test_a_killed_enqueue_loses_nothing_that_it_printed(queuectl: Program, tmp_path: Path) -> None:
    printed = tmp_path / "ids"
    with printed.open("wb") as out:
        process = queuectl.start("enqueue", "--stream", stdin=PIPE, stdout=out)
        assert process.stdin is not None
        process.stdin.write(b"true\n" * 5000)
        process.stdin.flush()
        wait_until(lambda: printed.stat().st_size > 0, what="the first ids")
        process.kill()
        process.wait()
        process.stdin.close()
    assert set(printed.read_text().split()) <= {job["id"] for job in listed(queuectl)}


# ── on a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_on_a_terminal_is_a_summary_and_quiet_the_ids(home: Path, queuectl: Program, tmp_path: Path) -> None:
    document = tmp_path / "jobs"
    document.write_text("a\nb\n")
    terminal = Terminal(home, "enqueue", "--file", str(document))
    assert terminal.end() == 0
    assert "queued 2 jobs: " in plain(terminal.shown)
    assert "queuectl worker start" in plain(terminal.shown)
    terminal = Terminal(home, "enqueue", "--quiet", "--file", str(document))
    assert terminal.end() == 0
    ids = [job["id"] for job in listed(queuectl)][2:]
    assert terminal.shown.split() == ids


def test_enqueue_on_a_terminal_prints_a_note(home: Path) -> None:
    terminal = Terminal(home, "enqueue", "true", "--id", "abc", "--delay", "1h")
    assert terminal.end() == 0
    assert plain(terminal.shown).splitlines() == [
        "abc",
        "queued in default, due in 59m 59s; no worker is running: queuectl worker start",
    ]


def test_stdin_of_a_terminal_is_read_until_its_end(home: Path, queuectl: Program) -> None:
    terminal = Terminal(home, "enqueue", "-")
    terminal.type("echo typed\n\x04")
    assert terminal.end() == 0
    assert [job["command"] for job in listed(queuectl)] == ["echo typed"]


# ── closed and full output ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_closed_pipe_prints_no_error(queuectl: Program) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = queuectl.start("enqueue", "true", stdout=write_end, stderr=PIPE)
    os.close(write_end)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (141, b"")
    assert len(listed(queuectl)) == 1


def test_a_full_disk_for_the_output_is_reported(queuectl: Program) -> None:
    with open("/dev/full", "wb") as full:
        process = queuectl.start("enqueue", "true", stdout=full, stderr=PIPE)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    (job,) = listed(queuectl)
    failure = err.decode().splitlines()[0]
    assert failure == f"error: cannot write the output: No space left on device; the job {job['id']} was added"


@pytest.mark.parametrize("arguments", [("--file", "-"), ("--stream",)])
def test_a_full_disk_for_the_output_of_a_batch_costs_no_id(queuectl: Program, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        process = queuectl.start("enqueue", "--json", *arguments, stdin=PIPE, stdout=full, stderr=PIPE)
        _, err = process.communicate(b"true\n", timeout=20)
    error = json.loads(err)["error"]
    assert (process.returncode, error["code"]) == (1, "output-failed")
    assert str(listed(queuectl)[0]["id"]) in error["message"]


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_neither_the_job_nor_the_database(queuectl: Program, closing: str) -> None:
    script = f'"$@" {closing}'
    process = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, "enqueue", "true"],
        env={**os.environ, "QUEUECTL_HOME": str(queuectl.home)},
        capture_output=True,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    assert len(listed(queuectl)) == 1
