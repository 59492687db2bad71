"""Resource limits on the command line."""

from __future__ import annotations

import json

import pytest

from queuectl import Queue
from tests.program import Program

SAID = [
    "--memory", "2GiB", "--cpu-time", "30s", "--nice", "5", "--open-files", "256", "--processes", "64", "--file-size", "1GiB",
]  # fmt: skip
KEPT = {"memory": 2**31, "cpu_time": 30, "nice": 5, "open_files": 256, "processes": 64, "file_size": 2**30}


def limits_of(queuectl: Program, job_id: str) -> dict[str, int]:
    found: dict[str, int] = queuectl("show", job_id, "--json", check=0).json["limits"]
    return found


def test_limits_are_set_by_options_and_fields_and_shown(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", *SAID, "true", check=0)
    queuectl("enqueue", json.dumps({"id": "b", "command": "true", **KEPT}), check=0)
    queuectl("enqueue", "--id", "c", "true", check=0)
    assert [limits_of(queuectl, job_id) for job_id in "abc"] == [KEPT, KEPT, {}]
    arguments = "memory 2GiB, cpu time 30s, nice 5, open files 256, processes 64, file size 1GiB"
    assert f"Limits  {arguments}\n" in queuectl("show", "a", check=0).out
    assert "Limits" not in queuectl("show", "c", check=0).out
    (listed,) = queuectl("list", "--limit", "1", "--offset", "2", "--json", check=0).json
    assert listed["limits"] == KEPT


@pytest.mark.parametrize(
    "arguments, reported",
    [
        (["--memory", "12"], "--memory: no program runs with '12'"),
        (["--memory", "-1"], "--memory: expected a size"),
        (["--memory", "lots"], "--memory: expected a size"),
        (["--cpu-time", "-3s"], "--cpu-time: a duration cannot be negative"),
        (["--nice", "20"], "--nice: expected an integer from -20 to 19"),
        (["--open-files", "-1"], "--open-files: expected an integer from 0"),
        (["--processes", "9" * 30], "--processes"),
        (["--file-size", "1ZiB"], "--file-size: expected a size"),
    ],
)
def test_an_invalid_limit_is_refused_in_terms_of_the_option(
    queuectl: Program, arguments: list[str], reported: str
) -> None:
    refused = queuectl("enqueue", *arguments, "true", check=2)
    assert refused.err.startswith(f"error: {reported}")
    assert not queuectl.home.exists()
    assert queuectl("edit", "x", *arguments, check=2).err.startswith(f"error: {reported}")
    if "12" not in arguments:
        assert queuectl("queue", "set", "q", *arguments, check=2).err.startswith(f"error: {arguments[0]}: ")


def test_limits_of_a_waiting_job_are_changed_and_removed(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "--memory", "1GiB", "--nice", "3", "true", check=0)
    queuectl("edit", "a", "--memory", "2GiB", "--nice", "0", "--processes", "9", check=0)
    assert limits_of(queuectl, "a") == {"memory": 2**31, "processes": 9}
    (entry,) = [one for one in queuectl("audit", "--json", check=0).json if one["what"] == "edit"]
    assert entry["before"]["limits"] == {"memory": 2**30, "nice": 3, "processes": None}
    assert entry["after"]["limits"] == {"memory": 2**31, "nice": None, "processes": 9}


def test_a_clone_has_the_limits_of_the_other_job_unless_overridden(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "--memory", "1GiB", "--nice", "3", "true", check=0)
    queuectl("clone", "a", "--id", "b", check=0)
    queuectl("clone", "a", "--id", "c", "--memory", "0", "--cpu-time", "9", check=0)
    assert limits_of(queuectl, "b") == {"memory": 2**30, "nice": 3}
    assert limits_of(queuectl, "c") == {"nice": 3, "cpu_time": 9}


def test_a_queue_has_default_limits_for_its_jobs(queuectl: Program) -> None:
    printed = queuectl("queue", "set", "q", "--memory", "1GiB", "--nice", "3", "--open-files", "64", check=0)
    assert printed.out == "q: defaults memory 1GiB, nice 3, open-files 64\n"
    assert queuectl("queue", "set", "q", "--open-files", "none", "--json", check=0).json["limits"] == {
        "memory": 2**30,
        "nice": 3,
    }
    queuectl("enqueue", "--id", "a", "-q", "q", "true", check=0)
    queuectl("enqueue", "--id", "b", "-q", "q", "--memory", "0", "--cpu-time", "5", "true", check=0)
    queuectl("enqueue", "--id", "c", "true", check=0)
    assert [limits_of(queuectl, one) for one in "abc"] == [{"memory": 2**30, "nice": 3}, {"cpu_time": 5, "nice": 3}, {}]


def test_jobs_of_a_schedule_have_its_limits_and_those_of_their_queue(queuectl: Program) -> None:
    queuectl("queue", "set", "q", "--nice", "3", check=0)
    queuectl("cron", "add", "nightly", "0 2 * * *", "-q", "q", "--memory", "1GiB", "true", check=0)
    assert "Memory  1GiB" in queuectl("cron", "show", "nightly", check=0).out
    (job_id,) = queuectl("cron", "run", "nightly", check=0).lines
    assert limits_of(queuectl, job_id) == {"memory": 2**30, "nice": 3}


def test_limits_and_what_was_used_are_exported_and_imported(queuectl: Program) -> None:
    queuectl("queue", "set", "q", "--memory", "1GiB", check=0)
    queuectl("enqueue", "--id", "a", "-q", "q", "--nice", "3", "true", check=0)
    queuectl("worker", "start", "--drain", "--quiet", check=0)
    text = queuectl("export", "--history", "--rules", check=0).out
    other = Program(queuectl.home.with_name("other"))
    other("import", "--rules", "-", input=text, check=0)
    one, two = (each("show", "a", "--json", check=0).json for each in (queuectl, other))
    assert two["limits"] == one["limits"] == {"memory": 2**30, "nice": 3}
    assert two["history"] == one["history"]
    assert two["history"][0]["max_rss_bytes"] > 0
    (q,) = [one for one in other("queue", "list", "--json", check=0).json if one["name"] == "q"]
    assert q["limits"] == {"memory": 2**30}


def test_the_python_api_sets_and_shows_limits(queuectl: Program) -> None:
    with Queue(home=str(queuectl.home)) as queue:
        job = queue.enqueue("true", memory="2GiB", cpu_time=30, nice=5, open_files=256, processes=64, file_size="1GiB")
        assert job.limits == KEPT
        assert queue.edit(job.id, memory=0).limits == {name: KEPT[name] for name in KEPT if name != "memory"}
        assert queue.set_queue("q", memory="1GiB", nice=2)["limits"] == {"memory": 2**30, "nice": 2}
        assert queue.enqueue("true", queue="q").to_dict()["limits"] == {"memory": 2**30, "nice": 2}


def test_show_prints_the_usage_of_each_run(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "true", check=0)
    queuectl("worker", "start", "--drain", "--quiet", check=0)
    head, row = queuectl("show", "a", check=0).out.split("\n\n")[2].splitlines()[:2]
    assert {"CPU", "MEMORY"} <= set(head.split())
    assert "MiB" in row
