"""What is shown of a run is what it printed: no line of ours, nothing of another run, whichever process ended its log, and how often."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from queuectl import paths as places
from queuectl.logs.last_line import last_line
from queuectl.logs.reader import Span, open_log
from tests.sim.host import Host
from tests.sim.supervisor import PRINTED

if TYPE_CHECKING:
    from tests.sim.witness import Witness

RECORDED = """
select id, runs, host, pid, log_from, log_to, last_output from jobs where log_to is not null
 union all
select id, number, runs.host, runs.pid, runs.log_from, runs.log_to, runs.last_output
  from runs join jobs on seq = job where runs.log_to is not null
"""


def check_logs(witness: Witness, host: Host) -> None:
    """At quiet, of all runs whose place in their log is recorded; but for jobs whose former run, taken away by another machine, may
    have gone on printing into the log of the next."""
    for job, number, where, pid, start, stop, last_output in witness.db.execute(RECORDED):
        is_here = where == host.name and job not in witness.strays
        log = open_log(os.path.join(places.logs(host.home), f"{job}.log")) if is_here else None
        if log is None:
            continue
        with closing(log):
            found = log.at(Span(start, stop))
        expected = (PRINTED,) if pid is not None else (PRINTED, b"")  # there may have been no process
        witness.must(found in expected, f"run {number} of {job} is said to have printed {found!r} ({start}, {stop})")
        line = last_line(found, is_cut=False, has_secrets=False)
        witness.must(last_output == line, f"the last line of run {number} of {job} is {line!r}, not {last_output!r}")
