"""What the soak is about: what became of the jobs that were acknowledged, against the traces they left."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

NOT_ITS_FAULT = {"lost", "released"}  # after these a run is followed by another
FAULTS = ("lost", "doubled", "blamed", "stuck", "hung", "commands failed", "ended badly", "left behind", "tracebacks")


def tally(
    home: str, db: str | None, acknowledged: Mapping[str, str], *, effects: Path, said: Path
) -> tuple[Counter[str], Counter[str]]:
    """How many came to which end, and what must not be. `acknowledged`: by id, of which kind; `effects`: a line of each run.

    Lost: neither completed nor dead, or completed without a trace of its effect. Doubled: a run whose effect came twice, or one
    that no crash and no order to end explains. Blamed: dead, though it cannot fail.
    """
    from queuectl.errors import JobNotFound
    from queuectl.store.open import open_reads

    lines = effects.read_text().splitlines() if effects.exists() else []
    traces = Counter(line.split()[0] for line in lines)
    again = {line.split()[0] for line, times in Counter(lines).items() if times > 1}  # one run, twice
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
