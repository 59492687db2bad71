"""The hot statements stay on their indexes, also with a plan that was made while the tables were empty."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from queuectl.job.limits import Rate
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.floors import NO_FLOORS
from queuectl.store.postgres.store import PostgresStore
from tests.factories import new_job
from tests.store.hands import BAD, Hands

NOW: Final = 1_900_000_000_000
ONE: Final = {"seq": 1, "now": NOW, "id": "a", "worker": "w1", "token": "x", "effective_priority": 0, "rank": 0}
SOME: Final = {"seqs": [1, 2], "points": [0, 0], "ranks": [0, 0], "now": NOW, "error": "x"}
RULES: Final = dict.fromkeys(
    ("command", "argv", "queue", "max_retries", "first_is_free", "timeout_ms", "hooks", "limits", "secrets")
)
NUMBERS: Final = {name: [1] for name in ("seqs", "priorities", "ranks", "eligible_ats", "run_ats")}
PLACES: Final = {**RULES, **NUMBERS, "readies": [True], "helds": [False], "now": NOW}
LINE: Final = {"host": "h", "logs": "/l", "limit": 5, "calls": 2, "tokens": ["x"] * 7, "seen": "1:1:", "chosen": []}
END: Final = json.dumps([{"seq": 1, "token": "x", "called_off": False}])

TOLD: Final = {"seqs": [1], "tokens": ["x"], "worker": "w1"}

SCAN: Final = r"Seq Scan on (jobs|runs|output|job_tags|edges)\b"
ONE_JOB: Final = r"jobs_(pkey|state) on jobs .*\n.*Index Cond: .*\(seq = "  # the second one with its state: as exact

# Statement: its values, and how it has to find its jobs.
HOT: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "promote": ({**ONE, "limit": 10}, "jobs_due"),
    "next_due": ({}, "jobs_due"),
    "start": ({"starts": END, "worker": "w1"}, "jobs_pkey"),
    "settle": ({**ONE, "ends": END}, "jobs_pkey"),
    "unrun": ({"seqs": [1], "tokens": ["x"], "runs": [1]}, "jobs_pkey"),
    "archive": (SOME, ONE_JOB),
    "cancel_running": (ONE, ONE_JOB),
    "cancel_waiting": (SOME, ONE_JOB),
    "revive": (SOME, ONE_JOB),
    "amend": (PLACES, ONE_JOB),
    "ended": ({"state": "dead", "before": NOW, "host": "h", "limit": 5}, r"jobs_ended on jobs.*\n.*finished_at <="),
    "ended_of": ({"ids": ["a"], "state": "dead", "before": NOW, "host": "h"}, "jobs_id_key"),
    "ended_completed": ({"before": NOW, "host": "h", "limit": 5}, r"jobs_completed on jobs.*\n.*finished_at <="),
    "count_ended": ({"state": "dead", "before": NOW}, r"jobs_ended on jobs.*\n.*finished_at <="),
    "prune": ({"ids": ["a"], "before": NOW}, "jobs_id_key"),
    "trim_runs": ({"id": "a", "before": NOW, "rows": 5}, "runs_pkey"),
    "trim_output": ({"id": "a", "before": NOW, "rows": 5}, "output_pkey"),
    "latest_run": (ONE, ONE_JOB),
    "latest_runs": ({"ids": ["a"]}, "jobs_id_key"),
    "history": (ONE, "runs_pkey"),
    "histories": ({"seqs": [1]}, "runs_pkey"),
    "add_output": ({**TOLD, "ats": [0], "data": [b"x"]}, "jobs_pkey"),
    "drop_output": ({**TOLD, "keep_from": [5]}, "output_pkey"),
    "output": ({"id": "a", "run": 1, "start": 0, "limit": 5}, "output_pkey"),
    "was_settled": ({"seq": 1, "token": "x"}, "runs_pkey"),
    "running": (ONE, "jobs_running"),
    "adopt": ({"worker": "w1", "by": "w2", "tokens": ["x"]}, "jobs_running"),
    "hold_runs": (ONE, "jobs_running"),
    "cancel_orders": (ONE, "jobs_called_off"),
    "workers": ({"busy": True}, "jobs_running"),
    "retire": (ONE, "jobs_running"),
    "standing": ({"ids": ["a"]}, "jobs_id_key"),
    "ids_from": ({"ref": "a", "limit": 5}, "jobs_id_key"),
    "completed_since": ({"since": NOW}, "jobs_completed"),
    "oldest_waiting": (ONE, "jobs_oldest"),
    "is_drained": ({**ONE, "queues": ["q"], "patience": 5}, "jobs_due"),
    "place": (ONE, "jobs_id_key"),
    "ahead": ({**ONE, "queue": "q", "limit": 5}, r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) <"),
    "ahead_of_all": ({**ONE, "limit": 5}, r"jobs_line on jobs.*\n.*Index Cond: .*ROW\(rank, seq\) <"),
    "late": ({**ONE, "limit": 5}, "jobs_due"),
    "holders": ({"keys": ["k"]}, r"jobs_unique on jobs(.|\n)*jobs_key on jobs"),
    "batch_due": ({}, "jobs_batch"),
    "batch_states": ({"name": "b"}, "jobs_batch"),
    "batch_lately": ({"name": "b", "since": NOW}, "jobs_completed|jobs_batch"),
    "take_keys_of": ({"ids": ["a"]}, "jobs_id_key"),
    "unended": ({"name": "s", "waiting": "a", "limit": 5}, r"jobs_cron on jobs.*\n.*Index Cond: .*cron = "),
    "ticks": ({"schedule": "s", "fired": False, "limit": 5}, "jobs_id_key"),
    "mark_fired": ({**ONE, "name": "s", "held": False}, "jobs_id_key"),
    "free_waiting": (ONE, "jobs_id_key"),
    "hold_limits": ({"queues": ["q"]}, r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) >"),
    "ready_queues": ({}, "jobs_ready on jobs"),
    "heads": ({"queues": ["q"], "places": [2]}, r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) >"),
    "limits": (ONE, "jobs_pkey"),
    "earlier_starts": ({**ONE, "queue": "q", "first": 1, "last": 5}, "starts_pkey"),
    "move": ({"queue": "q", "to": "r", "ids": None, "now": NOW}, "jobs_state"),
    "heads_behind": (
        {**ONE, "queue": "q", "limit": 5},
        r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) >",
    ),
    "running_of_keys": ({"queue": "q", "keys": ["k"]}, r"jobs_running_key on jobs.*\n.*Index Cond: .*key = "),
    "running_keys": ({}, "jobs_running_key on jobs"),
    "set_aside": ({"seqs": [1]}, ONE_JOB),
    "admit": (
        {"queues": ["q"], "keys": ["k"]},
        r"jobs_of_key on jobs.*\n.*Index Cond: .*ROW\(queue, key, rank, seq\) >",
    ),
    "hold_jobs": ({"seqs": [1]}, "jobs_pkey"),
    "present_jobs": ({"seqs": [1]}, "jobs_pkey"),
    "decidable": ({"parents": [1], "limit": 5}, r"edges_parent on edges.*\n.*state = 'broke'"),
    "open_edges": ({"children": [1]}, "edges_pkey"),
    "mark_edge": ({"told": END}, "edges_pkey"),
    "called_off_by": ({"seqs": [1]}, "edges_(pkey|parent)"),
    "wait_again": ({"children": [1]}, "edges_pkey"),
    "unblock": ({**ONE, "told": END}, ONE_JOB),
    "orphan": ({**ONE, "told": END}, ONE_JOB),
    "reblock": ({**ONE, "told": END}, ONE_JOB),
    "block": ({"seqs": [1], "blocked": [True], "said": ["[]"]}, "jobs_pkey"),
    "new_parents": ({"ids": ["a"]}, "jobs_id_key"),
    "is_awaited": ({"seqs": [1]}, "edges_parent"),
    "hold_ended": ({"ids": ["a"]}, "jobs_id_key"),
    "parents": ({"ids": ["a"], "limit": 5}, "edges_pkey"),
    "children": ({"ids": ["a"], "limit": 5}, "edges_parent"),
    "placed_queues": ({}, "jobs_places on jobs"),
    "measured": ({"since": NOW, "until": NOW}, "jobs_completed on jobs"),
    "count_out": ({"ids": ["a"], "before": NOW}, "jobs_completed on jobs"),
    "died_since": ({"since": NOW}, r"jobs_ended on jobs.*\n.*finished_at >"),
    "first_created": ({}, "jobs_pkey"),
    "hold_places": ({"queues": ["q"]}, "jobs_places on jobs"),
}


@pytest.fixture
def used(store: PostgresStore, home: Path) -> PostgresStore:
    """Few jobs: a planner that may do as it likes goes through all of them."""
    hands = Hands(store, home)
    store.enqueue([new_job("a"), new_job("b", queue="q"), new_job("c", delay_ms=1000), new_job("d")])
    hands.run()
    hands.run(BAD)
    hands.claim(1)
    hands.bell.close()
    return store


def plan(store: PostgresStore, name: str, values: dict[str, Any]) -> str:
    try:
        with store._db.transaction():
            found = store._db.all(f"explain {SQL[name]}", values)
            raise _Back("\n".join(row[0] for row in found))
    except _Back as back:
        return str(back)


class _Back(Exception):
    """Out of the transaction without a commit."""


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_uses_its_index(used: PostgresStore, name: str) -> None:
    values, index = HOT[name]
    steps = plan(used, name, values)
    assert re.search(index, steps), steps
    assert not re.search(SCAN, steps), steps


def test_a_claim_of_any_queue_goes_along_the_line(used: PostgresStore) -> None:
    steps = plan(
        used, "claim", {**ONE, **LINE, "queues": [None], "floor_ranks": [0], "floor_seqs": [5], "looks": [True]}
    )
    assert "jobs_line" in steps, steps
    assert not re.search(SCAN, steps), steps
    assert "Sort Key: jobs" not in steps, steps


def test_a_claim_of_chosen_jobs_finds_each_by_its_number(used: PostgresStore) -> None:
    steps = plan(used, "claim", {**ONE, **LINE, **NO_FLOORS, "chosen": [1, 2]})
    _, _, chosen = steps.partition("CTE chosen")
    assert re.search(r"jobs_pkey on jobs.*\n.*Index Cond: \(seq = told.seq\)", chosen.partition("CTE line")[0]), steps
    assert not re.search(SCAN, steps), steps


def test_a_claim_of_named_queues_locks_no_more_than_it_takes(used: PostgresStore) -> None:
    """A limit above a nested loop above a limit above a lock: nothing sorts in between, so nothing is read ahead."""
    floors = {"queues": ["default", "q"], "floor_ranks": [None, 0], "floor_seqs": [None, 1], "looks": [True, False]}
    steps = plan(used, "claim", {**ONE, **LINE, **floors})
    assert "jobs_ready" in steps, steps
    _, _, named = steps.partition("CTE named_queues")
    order = [
        word for line in named.splitlines() for word in ("Limit", "Nested Loop", "LockRows", "Sort") if word in line
    ]
    assert order[:4] == ["Limit", "Nested Loop", "Limit", "LockRows"], steps


LIMITED: Final[dict[str, dict[str, Any]]] = {
    "full": {"concurrency": 1},
    "keyed": {"per_key": 1},
    "paused": {"paused": True},
    "rated": {"rate": Rate(1, 60_000)},
}
# What a claim asks where queues are limited, in its order.
CHOOSING: Final[dict[str, dict[str, Any]]] = {
    "hold_worker": ONE,
    "hold_limits": {"queues": None},
    "hold_places": {"queues": None},
    "placed_queues": {},
    "limits": ONE,
    "ready_queues": {},
    "heads": {"queues": ["full", "open"], "places": [0, 5]},
    "heads_behind": {"queue": "open", "rank": -(2**63), "seq": 0, "limit": 5},
    "running_of_keys": {"queue": "full", "keys": ["k"]},
    "promote": {**ONE, "limit": 10},
    "next_due": {},
}


def test_a_claim_by_limits_reads_few_of_many(store: PostgresStore) -> None:
    """By what they do, not by their plans: with many rows the planner may like another join better."""
    for queue, rule in LIMITED.items():
        store.set_rules(queue, rule)
    for queue in (*LIMITED, "open"):
        store.enqueue([new_job(queue=queue, key="k" if queue == "keyed" else None)] * 300)
    store.enqueue([new_job(queue="array", key="array:1", places=1)] * 300)
    store._db.execute("analyze queuectl.jobs, queuectl.queues")
    read = {name: _rows_read(store, name, values) for name, values in CHOOSING.items()}
    assert {name: rows for name, rows in read.items() if rows > 50} == {}


def _rows_read(store: PostgresStore, name: str, values: dict[str, Any]) -> int:
    def of(step: dict[str, Any]) -> int:
        passed_over = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Join Filter", 0)
        here = round((step["Actual Rows"] + passed_over) * step["Actual Loops"])
        return max([here, *map(of, step.get("Plans", []))])

    try:
        with store._db.transaction():
            ((found,),) = store._db.all(f"explain (analyze, format json) {SQL[name]}", values)
            raise _Back(json.dumps(found))
    except _Back as back:
        return of(json.loads(str(back))[0]["Plan"])
