"""The virtual machine for tests/controllers. It uses a processor for some seconds, so only CI boots it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import require

IN_VM = Path(__file__).parent.parent / "scripts" / "in-vm"


@pytest.mark.timeout(240)  # it boots within seconds, but is emulated and shares the host with other tests
def test_the_virtual_machine_gives_back_the_output_and_the_exit_code_of_a_command() -> None:
    # One command covers all exit codes, because each command needs a boot.
    script = 'cat /sys/fs/cgroup/cgroup.subtree_control; pwd; printf "%s\\n" "$@"; exit 7'
    done = subprocess.run(
        [IN_VM, "--limit", "200", "sh", "-c", script, "-", "two words", "it's", ""],
        capture_output=True,
        text=True,
    )
    require("a virtual machine", done.returncode != 2, done.stderr)
    expected = f"cpu memory pids\n{IN_VM.parent.parent}\ntwo words\nit's\n\n"
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 7)
