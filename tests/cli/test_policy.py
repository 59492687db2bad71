"""queuectl policy: the decisions of a worker on this host."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.program import Program
from tests.users import IS_ROOT, OTHER, me


@pytest.fixture
def policy(home: Path, tmp_path: Path) -> Path:
    home.mkdir(mode=0o700)
    path = home / "policy.toml"
    path.write_text(
        f"""
        user = "{me()}"
        programs = ["/bin/true", {{ program = "/bin/echo", args = ["a*"], name = "greeting" }}]
        directories = ["/"]
        max-timeout = "1h"
        max-memory = "1GiB"
        min-nice = 2
        [queues.free]
        shell = true
        [queues."queuectl.webhooks"]
        shell = true
        """
    )
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "arguments, code, printed",
    [
        (["/bin/true", "x"], 0, "yes: programs[1], runs "),
        (["/bin/echo", "abc"], 0, "yes: greeting, runs "),
        (["/bin/echo", "xyz"], 1, "no: greeting: "),
        (["/bin/cat", "x"], 1, "no: programs: "),
        (["true"], 1, "no: shell: "),
        (["true x; rm y"], 1, "no: shell: "),
        (["--queue", "free", "true; false"], 0, "yes: queues.free.shell, runs /bin/sh"),
        (["--queue", "queuectl.webhooks", "./page.sh"], 0, "yes: queues.queuectl.webhooks.shell, runs /bin/sh"),
        (["--timeout", "2h", "/bin/true", "x"], 1, "no: max-timeout: "),
        (["--memory", "2GiB", "/bin/true", "x"], 1, "no: max-memory: memory 2GiB, at most 1GiB"),
        (["--memory", "1GiB", "--nice", "5", "/bin/true", "x"], 0, "yes: programs[1], runs "),
        (["--nice", "1", "/bin/true", "x"], 1, "no: min-nice: nice 1, at least 2"),
        (["--env", "LD_PRELOAD=x", "/bin/true", "x"], 1, "no: job-environment: "),
        (["--cwd", "/nowhere", "/bin/true", "x"], 1, "no: directories: "),
        (['{"argv": ["/bin/true"], "timeout": "3h"}'], 1, "no: max-timeout: "),
        (['{"argv": ["/bin/true"]}'], 0, "yes: programs[1], runs "),
    ],
    ids=str,
)
def test_a_check_prints_the_decision_and_its_rule(
    queuectl: Program, policy: Path, arguments: list[str], code: int, printed: str
) -> None:
    answer = queuectl("policy", "check", *arguments, check=code)
    assert answer.out.startswith(printed)
    assert answer.err == ""


def test_a_check_prints_the_same_as_json(queuectl: Program, policy: Path) -> None:
    reported = queuectl("policy", "check", "--json", "/bin/true", "x", check=0).json
    program = os.path.realpath("/bin/true")
    assert reported == {
        "allowed": True,
        "rule": "programs[1]",
        "problem": None,
        "program": program,
        "user": None,
        "policy": str(policy),
        "warnings": [],
    }
    reported = queuectl("policy", "check", "--json", "/bin/cat", "x", check=1).json
    assert (reported["allowed"], reported["rule"], reported["program"]) == (False, "programs", None)
    assert reported["problem"]


def test_without_a_policy_anything_may_run_and_nothing_is_created(queuectl: Program, home: Path) -> None:
    assert queuectl("policy", "check", "rm", "x", check=0).out == "yes: no policy\n"
    assert "there is no policy" in queuectl("policy", "show", check=0).out
    assert queuectl("policy", "show", "--json", check=0).json["policy"] is None
    assert not home.exists()


@pytest.mark.parametrize(
    "arguments, code", [((), 2), (("",), 2), (('[{"command": "a"}, {"command": "b"}]',), 2), (("--policy", "", "x"), 2)]
)
def test_invalid_input_of_a_check_is_refused(
    queuectl: Program, policy: Path, arguments: tuple[str, ...], code: int
) -> None:
    answer = queuectl("policy", "check", *arguments, check=code)
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 2


def test_show_prints_every_rule_and_weakness(queuectl: Program, policy: Path) -> None:
    reported = queuectl("policy", "show", "--json", check=0).json
    assert reported["general"]["shell"] is False
    assert [one["rule"] for one in reported["general"]["programs"]] == ["programs[1]", "greeting"]
    assert reported["queues"]["free"]["shell"] is True
    assert reported["general"]["limits"] == {"memory": 2**30, "nice": 2}
    assert {one["code"] for one in reported["weaknesses"]} - {"policy-root"} == {"policy-shell", "policy-environment"}
    text = queuectl("policy", "show", check=0).out
    for word in (
        "/bin/echo  a*  (greeting)",
        "queue free",
        "max-timeout      1h",
        "max-memory       1GiB",
        "! queues.free.shell: ",
    ):
        assert word in text


def test_show_and_check_warn_about_every_wildcard_for_variables(queuectl: Program, policy: Path) -> None:
    policy.write_text(
        policy.read_text().replace("directories", 'job-environment = ["REPORT_*", "LANG", "?X"]\ndirectories')
    )
    shown = queuectl("policy", "show", check=0).out
    for pattern in ("REPORT_*", "?X"):
        warning = (
            f"job-environment: {pattern} covers every variable of that form, except those that are known to load code"
        )
        assert f"! {warning}" in shown
        assert f"warning: {warning}" in queuectl("policy", "check", "/bin/true", "x", check=0).err
    assert len(queuectl("policy", "check", "--json", "/bin/true", "x", check=0).json["warnings"]) == 2


def test_a_check_names_the_reason_why_a_wildcard_does_not_cover_a_variable(queuectl: Program, policy: Path) -> None:
    policy.write_text(policy.read_text().replace("directories", 'job-environment = ["*"]\ndirectories'))
    answer = queuectl("policy", "check", "--env", "MAKEFLAGS=-n", "/bin/true", "x", check=1)
    assert (
        answer.out == "no: job-environment: a job may not set MAKEFLAGS: it can load code, so no wildcard covers it\n"
    )


WEAK = {
    'programs = ["/bin/sh"]': "policy-interpreter",
    'programs = ["/usr/bin/env"]': "policy-interpreter",
    'programs = ["/usr/bin/find"]': "policy-interpreter",
    'programs = [{ program = "/usr/bin/xargs", args = ["..."] }]': "policy-interpreter",
    'programs = [{ program = "/bin/sh", args = ["*"] }]': "policy-interpreter",
    'programs = ["/bin/true"]\nshell = true': "policy-shell",
    "shell = false": "policy-any-program",
    'programs = ["/bin/true"]\njob-environment = ["LD_PRELOAD"]': "policy-loader",
    'secrets = ["*"]': "policy-any-secret",
    'programs = ["/bin/true"]\njob-environment = ["PYTHONPATH"]': "policy-loader",
    'programs = ["/bin/true"]': "policy-environment",
    'programs = ["/bin/true"]\njob-environment = ["REPORT_*"]': "policy-variable-wildcard",
    'programs = ["/bin/true"]\njob-environment = ["MAKEFLAGS"]': "policy-loader",
    'programs = ["/usr/bin/*"]': "policy-wildcard",
    'programs = ["/nowhere/tool"]': "policy-missing",
    'programs = ["{place}/open/tool"]': "policy-writable",
    'programs = ["{place}/open/*"]': "policy-writable",
    'programs = [{ program = "/bin/sh", args = ["{place}/open/tool"] }]': "policy-writable",
}


@pytest.mark.parametrize("text, code", WEAK.items())
def test_doctor_reports_rules_that_can_be_circumvented(
    queuectl: Program, home: Path, tmp_path: Path, text: str, code: str
) -> None:
    place = Path(os.path.realpath(tmp_path))
    (place / "open").mkdir()
    (place / "open/tool").write_text("#!/bin/sh\n")
    (place / "open/tool").chmod(0o755)
    (place / "open").chmod(0o777)
    home.mkdir(mode=0o700)
    (home / "policy.toml").write_text(f'user = "{me()}"\n' + text.replace("{place}", str(place)))
    (home / "policy.toml").chmod(0o600)
    (check,) = [one for one in queuectl("doctor", "--json").json["checks"] if one["check"] == "policy"]
    assert code in {finding["code"] for finding in check["findings"]}
    assert all(finding["hint"] for finding in check["findings"])


def test_doctor_accepts_a_policy_that_restricts_arguments(queuectl: Program, home: Path) -> None:
    home.mkdir(mode=0o700)
    text = 'programs = [{ program = "/bin/sh", args = ["/bin/true"] }]\nenvironment = ["PATH"]\n'
    (home / "policy.toml").write_text(f'user = "{OTHER}"\n{text}' if IS_ROOT else text)
    (home / "policy.toml").chmod(0o600)
    (check,) = [one for one in queuectl("doctor", "--json").json["checks"] if one["check"] == "policy"]
    # Data directories of tests are below a directory that only the owner can enter.
    assert {one["code"] for one in check["findings"]} <= {"policy-logs-unreachable"}, json.dumps(check)


def test_doctor_reports_an_untrusted_policy(queuectl: Program, policy: Path) -> None:
    policy.chmod(0o666)
    (check,) = [one for one in queuectl("doctor", "--json", check=1).json["checks"] if one["check"] == "policy"]
    assert [finding["code"] for finding in check["findings"]] == ["policy-unusable"]
