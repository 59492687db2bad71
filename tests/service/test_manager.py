"""The units of systemd and the property lists of launchd."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.process.cgroups import WORKER_GROUP
from queuectl.service.manager import Service, Systemd, plist_text, quoted, unit_text
from tests.needs import require

ODD = "/tmp/with space/100%/$HOME/\"quotes\" 'and' \\back\\slash/żółw;#"


def service(**changes: object) -> Service:
    plain = Service(
        name="w1",
        unit="queuectl",
        program=("/bin/true",),
        arguments=("--count", "4"),
        environment={"QUEUECTL_HOME": "/var/lib/queuectl"},
        home="/var/lib/queuectl",
        is_system=False,
        run_as=None,
        stop_timeout=90.0,
        may_sudo=False,
    )
    return plain._replace(**changes)


def read_back(word: str, *, expands: bool) -> str:
    """As systemd.syntax(7) and systemd.service(5) say: quotes, escapes of C, %% and $$."""
    if word.startswith('"'):
        word = word[1:-1]
        raw = re.sub(
            rb"\\x([0-9a-f]{2})|\\(.)",
            lambda found: bytes([int(found[1], 16)]) if found[1] else found[2],
            word.encode(),
        )
        word = raw.decode()
    word = word.replace("%%", "%")
    return word.replace("$$", "$") if expands else word


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), st.booleans())
def test_any_text_is_quoted_and_parsed_back_unchanged(text: str, expands: bool) -> None:
    word = quoted(text, expands=expands)
    assert "\n" not in word
    assert read_back(word, expands=expands) == text
    if not word.startswith('"'):
        assert not re.search(r"[\s'\"\\;#]", word)


@pytest.mark.parametrize(
    "made",
    [
        service(),
        service(is_system=True, run_as="daemon"),
        service(is_system=True, run_as="daemon", may_sudo=True, stop_timeout=None),
        service(environment={"QUEUECTL_HOME": ODD, "TZ": "UTC"}, home=ODD),
    ],
    ids=["mine", "system", "sudo", "odd"],
)
def test_systemd_finds_nothing_wrong_with_a_unit(made: Service, tmp_path: Path) -> None:
    require("systemd-analyze", shutil.which("systemd-analyze"), "it reads units")
    unit = tmp_path / "queuectl.service"
    # As `service install` writes it for the one that is here.
    unit.write_text(Systemd(is_system=made.is_system, config="").text(made), "utf-8")
    scope = [] if made.is_system else ["--user"]
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["systemd-analyze", *scope, "verify", unit], capture_output=True, text=True, env=env, timeout=50
    )
    # What other units of this machine say is not ours.
    said = [line for line in done.stderr.splitlines() if "queuectl" in line]
    assert (done.returncode, said) == (0, [])


def test_runs_have_control_groups_beside_that_of_the_worker_where_systemd_knows_how() -> None:
    lines = unit_text(service()).splitlines()
    assert "Delegate=cpu memory pids" in lines
    assert f"DelegateSubgroup={WORKER_GROUP}" in lines
    assert "DelegateSubgroup" not in unit_text(service(), knows_subgroups=False)


def test_a_program_in_an_odd_place_is_the_one_that_systemd_finds(tmp_path: Path) -> None:
    require("systemd-analyze", shutil.which("systemd-analyze"), "it reads units")
    place = tmp_path / "with space 100% $HOME"
    place.mkdir()
    program = place / "queuectl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "queuectl.service"
    for path, found in ((program, True), (place / "another", False)):
        unit.write_text(unit_text(service(is_system=True, run_as="daemon", program=(str(path),))), "utf-8")
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=50)
        assert ("queuectl.service: " not in done.stderr) is found, done.stderr


def test_a_program_whose_path_systemd_would_refuse_is_run_by_a_shell() -> None:
    made = service(program=("/opt/it's/queuectl",), arguments=("--name", "$x"))
    (line,) = (line for line in unit_text(made).splitlines() if line.startswith("ExecStart="))
    shell = """/bin/sh -c "exec \\"$$0\\" \\"$$@\\"" "/opt/it's/queuectl" worker start"""
    assert line.startswith(f"ExecStart={shell}")


def test_only_a_service_of_the_system_is_hardened_and_only_sudo_undoes_it() -> None:
    def is_hard(made: Service) -> bool:
        return "NoNewPrivileges=yes" in unit_text(made)

    assert is_hard(service(is_system=True, run_as="daemon"))
    assert not is_hard(service(is_system=True, run_as="daemon", may_sudo=True))
    assert not is_hard(service())


@pytest.mark.parametrize(
    "home, line",
    [
        ("/var/lib/queuectl", "StateDirectory=queuectl"),
        ("/var/lib/a/b-c_d.e", "StateDirectory=a/b-c_d.e"),
        ("/var/lib/with space", None),
        ("/var/lib/../../etc", None),
        ("/srv/queue", None),
    ],
)
def test_systemd_creates_a_data_directory_below_var_lib(home: str, line: str | None) -> None:
    lines = unit_text(service(is_system=True, run_as="daemon", home=home)).splitlines()
    assert [found for found in lines if found.startswith("StateDirectory=")] == ([line] if line else [])


@pytest.mark.parametrize("patience, line", [(90.0, "120"), (0.1, "31"), (None, "infinity")])
def test_systemd_waits_longer_than_the_worker_does(patience: float | None, line: str) -> None:
    assert f"TimeoutStopSec={line}" in unit_text(service(stop_timeout=patience)).splitlines()


def test_a_property_list_keeps_odd_paths() -> None:
    made = service(environment={"QUEUECTL_HOME": ODD + "<&>"}, home=ODD, program=(ODD + "/queuectl",))
    read = plistlib.loads(plist_text(made).encode())
    assert read["ProgramArguments"] == [ODD + "/queuectl", "worker", "start", "--name", "w1", "--count", "4"]
    assert read["EnvironmentVariables"] == {"QUEUECTL_HOME": ODD + "<&>"}
    assert (read["KeepAlive"], read["AbandonProcessGroup"], read["ExitTimeOut"]) == (
        {"SuccessfulExit": False},
        True,
        90,
    )
