"""The virtual machine in which tests/controllers is played. It takes a processor for some seconds, so only CI boots it for this."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import require

IN_VM = Path(__file__).parent.parent / "scripts" / "in-vm"


@pytest.mark.timeout(240)  # it boots within seconds, but without help of the processor and beside other tests
def test_the_virtual_machine_gives_back_the_output_and_the_exit_code_of_a_command() -> None:
    # `true`, `false` and this one take the same way out, and each would be a boot of its own.
    script = 'cat /sys/fs/cgroup/cgroup.subtree_control; pwd; printf "%s\\n" "$@"; exit 7'
    done = subprocess.run(
        [IN_VM, "--limit", "200", "sh", "-c", script, "-", "two words", "it's", ""],
        capture_output=True,
        text=True,
    )
    require("a virtual machine", done.returncode != 2, done.stderr)
    expected = f"cpu memory pids\n{IN_VM.parent.parent}\ntwo words\nit's\n\n"
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 7)
