"""The verdict of the soak test: results of acknowledged jobs, compared with the traces of their runs."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

NOT_ITS_FAULT = {"lost", "released"}  # after these, the job runs again
FAULTS = ("lost", "doubled", "blamed", "stuck", "hung", "commands failed", "ended badly", "left behind", "tracebacks")


def tally(
    home: str, db: str | None, acknowledged: Mapping[str, str], *, effects: Path, said: Path
) -> tuple[Counter[str], Counter[str]]:
    """Count results and violations. `acknowledged` maps IDs to kinds of jobs; `effects` has a line per run.

    Lost: neither completed nor dead, or completed without a trace. Doubled: a run with two traces, or a run
    that neither a crash nor a stop explains. Blamed: dead, though the job cannot fail.
    """
    from queuectl.errors import JobNotFound
    from queuectl.store.open import open_reads

    lines = effects.read_text().splitlines() if effects.exists() else []
    traces = Counter(line.split()[0] for line in lines)
    again = {line.split()[0] for line, times in Counter(lines).items() if times > 1}  # two traces of one run
    counts = Counter({"acknowledged": len(acknowledged), "completed": 0, "dead": 0, "runs": len(lines)})
    faults = Counter(dict.fromkeys(FAULTS, 0))
    with contextlib.closing(open_reads(home, db)) as store:
        for job, kind in acknowledged.items():
            try:
                state = store.get(job).state.value
            except JobNotFound:
                faults["lost"] += 1
                print(f"{job} ({kind}) is gone", file=sys.stderr)
                continue
            counts[state] += 1
            endings = [run.to_dict()["outcome"] for run in store.history(job)]
            found = {
                "lost": state not in ("completed", "dead") or (state == "completed" and not traces[job]),
                "doubled": job in again or not NOT_ITS_FAULT.issuperset(endings[:-1]),
                "blamed": state == "dead" and kind != "failing",
            }
            for fault in (name for name, is_so in found.items() if is_so):
                faults[fault] += 1
                print(f"{job} ({kind}) is {fault}: {state} after {', '.join(endings)}", file=sys.stderr)
    words = said.read_text(errors="replace") if said.exists() else ""
    faults["tracebacks"] = words.count("Traceback (most recent call last)")
    if faults["tracebacks"]:
        print(words[words.index("Traceback") :][:4000], file=sys.stderr)
    return counts, faults
