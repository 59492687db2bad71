"""The soak script itself: what it finds when it is left running is another matter."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.processes import children, is_running
from tests.wait import wait_until

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


def test_a_soak_that_is_interrupted_ends_with_the_counts_and_leaves_no_process() -> None:
    soak = subprocess.Popen([sys.executable, SOAK, "--minutes", "5"], stdout=subprocess.PIPE, text=True)
    seen = wait_until(lambda: len(found := children(soak.pid)) >= 4 and found, what="workers and enqueuers")
    soak.send_signal(signal.SIGINT)
    told, _ = soak.communicate(timeout=50)
    counts = {line[:36].strip(): int(line[36:].replace(",", "")) for line in told.splitlines()}
    assert soak.returncode == 0, told
    assert (counts["lost"], counts["doubled"]) == (0, 0)
    assert counts["acknowledged"] == counts["completed"] + counts["dead"]
    assert not [child for child in seen if is_running(child.pid)]
