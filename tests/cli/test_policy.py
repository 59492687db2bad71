"""queuectl policy: what would a worker of this host say?"""

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
    "words, code, said",
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
def test_a_check_says_yes_or_no_and_by_which_rule(
    queuectl: Program, policy: Path, words: list[str], code: int, said: str
) -> None:
    answer = queuectl("policy", "check", *words, check=code)
    assert answer.out.startswith(said)
    assert answer.err == ""


def test_a_check_tells_programs_the_same(queuectl: Program, policy: Path) -> None:
    told = queuectl("policy", "check", "--json", "/bin/true", "x", check=0).json
    program = os.path.realpath("/bin/true")
    assert told == {
        "allowed": True,
        "rule": "programs[1]",
        "problem": None,
        "program": program,
        "user": None,
        "policy": str(policy),
        "warnings": [],
    }
    told = queuectl("policy", "check", "--json", "/bin/cat", "x", check=1).json
    assert (told["allowed"], told["rule"], told["program"]) == (False, "programs", None)
    assert told["problem"]


def test_without_a_policy_anything_may_run_and_nothing_is_made(queuectl: Program, home: Path) -> None:
    assert queuectl("policy", "check", "rm", "x", check=0).out == "yes: no policy\n"
    assert "there is no policy" in queuectl("policy", "show", check=0).out
    assert queuectl("policy", "show", "--json", check=0).json["policy"] is None
    assert not home.exists()


@pytest.mark.parametrize(
    "words, code", [((), 2), (("",), 2), (('[{"command": "a"}, {"command": "b"}]',), 2), (("--policy", "", "x"), 2)]
)
def test_what_cannot_be_checked_is_refused_in_words(
    queuectl: Program, policy: Path, words: tuple[str, ...], code: int
) -> None:
    answer = queuectl("policy", "check", *words, check=code)
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 2


def test_show_has_every_rule_and_names_what_can_be_walked_around(queuectl: Program, policy: Path) -> None:
    told = queuectl("policy", "show", "--json", check=0).json
    assert told["general"]["shell"] is False
    assert [one["rule"] for one in told["general"]["programs"]] == ["programs[1]", "greeting"]
    assert told["queues"]["free"]["shell"] is True
    assert told["general"]["limits"] == {"memory": 2**30, "nice": 2}
    assert {one["code"] for one in told["weaknesses"]} - {"policy-root"} == {"policy-shell", "policy-environment"}
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
def test_doctor_warns_of_rules_that_can_be_walked_around(
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


def test_doctor_has_nothing_against_a_policy_that_says_which_words(queuectl: Program, home: Path) -> None:
    home.mkdir(mode=0o700)
    text = 'programs = [{ program = "/bin/sh", args = ["/bin/true"] }]\nenvironment = ["PATH"]\n'
    (home / "policy.toml").write_text(f'user = "{OTHER}"\n{text}' if IS_ROOT else text)
    (home / "policy.toml").chmod(0o600)
    (check,) = [one for one in queuectl("doctor", "--json").json["checks"] if one["check"] == "policy"]
    # Homes of tests lie where nobody else can come.
    assert {one["code"] for one in check["findings"]} <= {"policy-logs-unreachable"}, json.dumps(check)


def test_doctor_says_that_a_policy_cannot_be_relied_on(queuectl: Program, policy: Path) -> None:
    policy.chmod(0o666)
    (check,) = [one for one in queuectl("doctor", "--json", check=1).json["checks"] if one["check"] == "policy"]
    assert [finding["code"] for finding in check["findings"]] == ["policy-unusable"]
