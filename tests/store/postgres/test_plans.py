"""The hot statements find their rows by an index in a large database, whatever the statistics of the server say.

Statistics are fresh, missing (nothing was analyzed since the database was created), or of another time: a queue is empty in one minute and has a million
jobs in the next, and autovacuum analyzes it some minutes later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from queuectl.jobs.queue_limits import Rate
from queuectl.store.open import open_store
from queuectl.store.postgres.claims import claim_text, heads_text
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.store import PostgresStore
from tests import postgres
from tests.factories import new_job

NOW: Final = 1_900_000_000_000
JOBS: Final = 20_000  # of each kind
ONE: Final = {"seq": 1, "now": NOW, "id": "a", "worker": "w1", "token": "x", "effective_priority": 0, "rank": 0}
SOME: Final = {"seq": [1, 2], "effective_priority": [0, 0], "rank": [0, 0], "now": NOW, "error": "x"}
RULES: Final = dict.fromkeys(
    ("command", "argv", "queue", "max_retries", "first_is_free", "timeout_ms", "hooks", "limits", "secrets")
)
NUMBERS: Final = {name: [1] for name in ("seq", "priority", "rank", "eligible_at", "run_at")}
PLACES: Final = {**RULES, **NUMBERS, "ready": [True], "held": [False], "now": NOW}
END: Final = json.dumps([{"seq": 1, "token": "x", "is_cancel": False}])

TOLD: Final = {"seqs": [1], "tokens": ["x"], "worker": "w1"}

SCAN: Final = r"Seq Scan on (jobs|runs|output|job_tags|edges)\b"
ONE_JOB: Final = r"jobs_(pkey|state) on jobs .*\n.*Index Cond: .*\(seq = "  # the second one with its state: as exact

# Statement: its values, and how it has to find its jobs.
HOT: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "promote": ({**ONE, "limit": 10}, "jobs_due"),
    "outlook": ({}, r"jobs_due(.|\n)*jobs_(ready|oldest)"),
    "start": ({"starts": END, "worker": "w1"}, "jobs_pkey"),
    "settle": ({**ONE, "ends": END}, "jobs_pkey"),
    "unrun": ({"seqs": [1], "tokens": ["x"], "runs": [1]}, "jobs_pkey"),
    "unclaim": ({"seqs": [1], "tokens": ["x"], "runs": [1]}, "jobs_pkey"),
    "hold_worker": ({"worker": "w1"}, "locks_pkey"),
    "take_worker": ({"worker": "w1"}, "locks_pkey"),
    "take_keys": ({"keys": ["k"]}, "locks_pkey"),
    "try_each_key": ({"keys": ["k"]}, "locks_pkey"),
    "archive": (SOME, ONE_JOB),
    "cancel_running": (ONE, ONE_JOB),
    "cancel_waiting": (SOME, ONE_JOB),
    "retry": (SOME, ONE_JOB),
    "edit": (PLACES, ONE_JOB),
    "ended": ({"state": "dead", "before": NOW, "host": "h", "limit": 5}, r"jobs_ended on jobs.*\n.*finished_at\) <="),
    "ended_of": ({"ids": ["a"], "state": "dead", "before": NOW, "host": "h"}, "jobs_id_key"),
    "ended_completed": ({"before": NOW, "host": "h", "limit": 5}, r"jobs_completed on jobs.*\n.*finished_at <="),
    "count_ended": ({"state": "dead", "before": NOW}, "jobs_(ended|state) on jobs"),
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
    "cancel_orders": (ONE, "jobs_cancel_requested"),
    "workers": ({"busy": True}, "jobs_running"),
    "retire": (ONE, "jobs_running"),
    "standing": ({"ids": ["a"]}, "jobs_id_key"),
    "ids_from": ({"ref": "a", "limit": 5}, "jobs_id_key"),
    "completed_since": ({"since": NOW + JOBS - 5}, "jobs_completed"),
    "oldest_waiting": (ONE, "jobs_oldest"),
    "is_drained": ({**ONE, "queues": ["q"], "patience": 5}, "jobs_due"),
    "place": (ONE, "jobs_id_key"),
    "ahead": ({**ONE, "queue": "q", "limit": 5}, r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) <"),
    "ahead_of_all": ({**ONE, "limit": 5}, r"jobs_by_rank on jobs.*\n.*Index Cond: .*ROW\(rank, seq\) <"),
    "late": ({**ONE, "limit": 5}, "jobs_due"),
    "holders": ({"keys": ["k"]}, r"jobs_unique on jobs(.|\n)*jobs_key on jobs"),
    "batch_due": ({}, "jobs_batch"),
    "batch_states": ({"name": "b"}, "jobs_batch"),
    "batch_lately": ({"name": "b", "since": NOW}, "jobs_completed|jobs_batch"),
    "count_due": ({"queue": "q", "most": 100_000}, r"jobs_(oldest|ready|of_key)"),
    "batches_lately": ({"since": NOW}, "jobs_completed|jobs_batch|jobs_state"),
    "take_keys_of": ({"ids": ["a"]}, "jobs_id_key"),
    "unfinished_jobs": ({"name": "s", "waiting": "a", "limit": 5}, r"jobs_cron on jobs.*\n.*Index Cond: .*cron = "),
    "schedule_runs": ({"schedule": "s", "fired": False, "limit": 5}, "jobs_id_key"),
    "mark_scheduled": ({**ONE, "name": "s", "held": False}, "jobs_id_key"),
    "release_job": (ONE, "jobs_id_key"),
    "hold_limits": ({"queues": ["q"]}, r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) >"),
    "ready_queues": ({}, "jobs_ready on jobs"),
    "heads": ({"queues": ["q"], "places": [2]}, r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) >"),
    "limits": (ONE, "jobs_pkey"),
    "earlier_starts": ({**ONE, "queue": "q", "first": 1, "last": 5}, "starts_pkey"),
    "move": ({"queue": "q", "to": "r", "ids": None, "now": NOW}, "jobs_state"),
    "ready_behind": (
        {**ONE, "queue": "q", "limit": 5},
        r"jobs_ready on jobs.*\n.*Index Cond: .*ROW\(queue, rank, seq\) >",
    ),
    "running_of_keys": ({"queue": "q", "keys": ["k"]}, r"jobs_running_key on jobs.*\n.*Index Cond: .*key = "),
    "running_keys": ({}, "jobs_running(_key)? on jobs"),
    "block_on_key": ({"seq": [1]}, ONE_JOB),
    "admit": (
        {"queues": ["q"], "keys": ["k"]},
        r"jobs_of_key on jobs.*\n.*Index Cond: .*ROW\(queue, key, rank, seq\) >",
    ),
    "hold_jobs": ({"seqs": [1]}, "jobs_pkey"),
    "present_jobs": ({"seqs": [1]}, "jobs_pkey"),
    "decidable": ({"parents": [1], "limit": 5}, r"edges_parent on edges.*\n.*state = 'broke'"),
    "open_edges": ({"children": [1]}, "edges_pkey"),
    "mark_edge": ({"changes": END}, "edges_pkey"),
    "followers": ({"seqs": [1], "fates": ["cancelled"], "limit": 1}, "edges_parent"),
    "cancelled_children": ({"seqs": [1]}, "edges_(pkey|parent)"),
    "wait_again": ({"children": [1]}, "edges_pkey"),
    "unblock": ({**ONE, "changes": END}, ONE_JOB),
    "orphan": ({**ONE, "changes": END}, ONE_JOB),
    "reblock": ({**ONE, "changes": END}, ONE_JOB),
    "block": ({"seqs": [1], "blocked": [True], "depends_on": ["[]"]}, "jobs_pkey"),
    "new_parents": ({"ids": ["a"]}, "jobs_id_key"),
    "is_awaited": ({"seqs": [1]}, "edges_parent"),
    "hold_ended": ({"ids": ["a"]}, "jobs_id_key"),
    "parents": ({"ids": ["a"], "limit": 5}, "edges_pkey"),
    "children": ({"ids": ["a"], "limit": 5}, "edges_parent"),
    "queues_with_key_limits": ({}, "jobs_key_limits on jobs"),
    "measured": ({"since": NOW, "until": NOW}, "jobs_completed on jobs"),
    "count_out": ({"ids": ["a"], "before": NOW}, "jobs_completed on jobs"),
    "died_since": ({"since": NOW}, r"jobs_ended on jobs.*\n.*finished_at >"),
    "failures": ({"limit": 9}, r"jobs_failures on jobs jobs_1.*\n.*fingerprint ="),
    "first_created": ({}, "jobs_pkey"),
    "hold_key_limits": ({"queues": ["q"]}, "jobs_key_limits on jobs"),
}


# Jobs that are ready in two queues, due later, running and completed, each with a run, its output, tags and a parent.
CROWD: Final = f"""
    insert into queuectl.jobs (
        id, command, queue, state, ready, priority, rank, eligible_at, run_at, max_retries, first_is_free, backoff_base, cwd, created_at,
        updated_at, token, worker, host, started_at, finished_at, duration_ms, wait_ms, ending, key, batch, cron, unique_key, runs
    )
    select kind || number, 'true', case number %% 2 when 0 then 'default' else 'q' end, state, state = 'pending' and kind = 'ready', 0, 0,
           {NOW}, {NOW} + case kind when 'later' then 1000000 else -1000000 end, 3, false, 2, '/', {NOW}, {NOW},
           case state when 'processing' then 'x' end, 'w' || number %% 100, 'h', {NOW}, case state when 'completed' then {NOW} + number end, 1, 1,
           case state when 'completed' then 'completed' end, 'k' || number %% 1000, 'b' || number %% 1000, 's' || number %% 1000, kind || number, 1
      from generate_series(1, {JOBS}) as number,
           (values ('ready', 'pending'), ('later', 'pending'), ('done', 'completed')) as kinds (kind, state);
    insert into queuectl.runs (job, number, worker, host, started_at, finished_at, ending, token)
    select seq, 1, 'w1', 'h', {NOW}, {NOW}, 'failed', 'y' || seq from queuectl.jobs;
    insert into queuectl.output (job, run, at, data) select seq, 1, 0, 'x' from queuectl.jobs;
    insert into queuectl.job_tags (tag, job) select 'eu', seq from queuectl.jobs;
    insert into queuectl.edges (child, parent, need, otherwise, state)
    select seq, seq - 1, 'completed', 'cancel', 'waiting' from queuectl.jobs where seq > 10;
    update queuectl.jobs set state = 'processing', ready = false, token = 'x' || seq where id in ('ready1', 'ready2');
"""
EVERYTHING_DONE: Final = "update queuectl.jobs set state = 'completed', ready = false, token = null, finished_at = 1 where state <> 'completed'"
WAITING_AGAIN: Final = """
    update queuectl.jobs set state = 'pending', ready = id like 'ready%%', finished_at = null where id not like 'done%%' and finished_at = 1
"""
# Statements before and after which the tables are analyzed.
STATISTICS: Final = {
    "never": [CROWD],
    "fresh": [CROWD, "analyze"],
    "while-empty": ["vacuum analyze", CROWD],
    "while-done": [CROWD, EVERYTHING_DONE, "vacuum analyze", WAITING_AGAIN],
}


@pytest.fixture(scope="module", params=STATISTICS)
def crowded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresStore]:
    server = postgres.server()
    with server.store() as url:
        with psycopg.connect(url, autocommit=True) as db:
            # Else autovacuum would analyze them in the middle of the test.
            tables = db.execute(
                "select oid::regclass::text from pg_class where relnamespace = 'queuectl'::regnamespace and relkind = 'r'"
            )
            for (table,) in tables.fetchall():
                db.execute(f"alter table {table} set (autovacuum_enabled = false)")
            for statement in STATISTICS[request.param]:
                db.execute(statement.replace("%%", "%"))
        store = open_store(str(tmp_path_factory.mktemp("home")), url)
        assert isinstance(store, PostgresStore)
        yield store
        store.close()


def plan(store: PostgresStore, text: str, values: dict[str, Any]) -> str:
    try:
        with store.db.transaction():
            found = store.db.all(f"explain {text}", values)
            raise _Back("\n".join(row[0] for row in found))
    except _Back as back:
        return str(back)


class _Back(Exception):
    """Out of the transaction without a commit."""


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_uses_its_index(crowded: PostgresStore, name: str) -> None:
    values, index = HOT[name]
    steps = plan(crowded, SQL[name], values)
    assert re.search(index, steps), steps
    assert not re.search(SCAN, steps), steps


CURSORS: Final = {"cursor_ranks": [None, 0], "cursor_seqs": [None, 1], "seen": "1:1:", "queues": ["default", "q"]}
CLAIM: Final = {**ONE, "host": "h", "logs": "/l", "tokens": ["x"] * 7, "limit": 5}


def test_a_claim_of_any_queue_reads_along_its_index(crowded: PostgresStore) -> None:
    steps = plan(crowded, claim_text(SQL["candidates_any_queue"]), CLAIM)
    assert re.findall(r"Limit|LockRows|Sort|jobs_by_rank", _expression(steps, "candidates")) == [
        "Limit",
        "LockRows",
        "jobs_by_rank",
    ], steps
    assert not re.search(SCAN, steps), steps


def test_a_claim_of_chosen_jobs_finds_each_by_its_number(crowded: PostgresStore) -> None:
    steps = plan(crowded, claim_text(SQL["candidates_chosen"]), {**CLAIM, "chosen": [1, 2]})
    assert re.search(r"jobs_pkey on jobs.*\n.*Index Cond: \(seq = chosen.seq\)", steps.partition("CTE selected")[0]), (
        steps
    )
    assert not re.search(SCAN, steps), steps


@pytest.mark.parametrize("candidates", ["candidates_named_queues", "candidates_from_cursor"])
def test_a_claim_of_named_queues_locks_no_more_than_it_takes(crowded: PostgresStore, candidates: str) -> None:
    """A limit above a nested loop above a limit above a lock: nothing sorts in between, so nothing is read ahead."""
    steps = plan(crowded, claim_text(SQL[candidates]), {**CLAIM, **CURSORS})
    part = _expression(steps, "candidates" if candidates == "candidates_named_queues" else "named_queues")
    words = re.findall(r"Limit|Nested Loop|LockRows|Sort|jobs_ready", part)
    assert words == ["Limit", "Nested Loop", "Limit", "LockRows", "jobs_ready"], steps
    assert not re.search(SCAN, steps), steps


def test_a_claim_of_webhooks_reads_along_its_index(crowded: PostgresStore) -> None:
    steps = plan(crowded, claim_text(SQL["candidates_webhooks"]), CLAIM)
    assert re.findall(r"Limit|LockRows|Sort|jobs_ready", _expression(steps, "candidates")) == [
        "Limit",
        "LockRows",
        "jobs_ready",
    ], steps


def test_the_head_of_a_queue_is_read_from_its_index(crowded: PostgresStore) -> None:
    steps = plan(crowded, heads_text(), CURSORS)
    assert re.search(r"jobs_by_rank(.|\n)*jobs_ready", steps), steps
    assert not re.search(SCAN, steps), steps


def _expression(steps: str, name: str) -> str:
    """The plan of one common table expression."""
    return steps.partition(f"CTE {name}\n")[2].partition("\n  CTE ")[0]


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
    "hold_key_limits": {"queues": None},
    "queues_with_key_limits": {},
    "limits": ONE,
    "ready_queues": {},
    "heads": {"queues": ["full", "open"], "places": [0, 5]},
    "ready_behind": {"queue": "open", "rank": -(2**63), "seq": 0, "limit": 5},
    "running_of_keys": {"queue": "full", "keys": ["k"]},
    "promote": {**ONE, "limit": 10},
    "outlook": {},
}


def test_a_claim_by_limits_reads_few_of_many(store: PostgresStore) -> None:
    """By what they do, not by their plans: with many rows the planner may like another join better."""
    for queue, rule in LIMITED.items():
        store.queues.set_rules(queue, rule)
    for queue in (*LIMITED, "open"):
        store.enqueue([new_job(queue=queue, key="k" if queue == "keyed" else None)] * 300)
    store.enqueue([new_job(queue="array", key="array:1", places=1)] * 300)
    store.db.execute("analyze queuectl.jobs, queuectl.queues")
    read = {name: _rows_read(store, name, values) for name, values in CHOOSING.items()}
    assert {name: rows for name, rows in read.items() if rows > 50} == {}


def _rows_read(store: PostgresStore, name: str, values: dict[str, Any]) -> int:
    def of(step: dict[str, Any]) -> int:
        passed_over = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Join Filter", 0)
        here = round((step["Actual Rows"] + passed_over) * step["Actual Loops"])
        return max([here, *map(of, step.get("Plans", []))])

    try:
        with store.db.transaction():
            ((found,),) = store.db.all(f"explain (analyze, format json) {SQL[name]}", values)
            raise _Back(json.dumps(found))
    except _Back as back:
        return of(json.loads(str(back))[0]["Plan"])
