"""Whatever the settings of a server, a database or a role are, the queue works: a setting is overridden, harmless, or named in one clear line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

from queuectl import errors
from queuectl.jobs.states import State
from queuectl.store.open import open_store
from queuectl.store.postgres.claims import claim_text
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.notify import NotifyWakeup
from queuectl.store.postgres.session import Session
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.store import Store
from tests import postgres
from tests.factories import new_job
from tests.store.hands import BAD, Hands
from tests.store.postgres.conftest import Open
from tests.store.postgres.test_plans import CLAIM
from tests.wait import wait_until

# Each as an administrator may set it for a database.
SETTINGS: Final = {
    "jit": {"jit": "on", "jit_above_cost": "0", "jit_inline_above_cost": "0", "jit_optimize_above_cost": "0"},
    "generic plans": {"plan_cache_mode": "force_generic_plan"},
    "custom plans": {"plan_cache_mode": "force_custom_plan"},
    "no index scans": {"enable_indexscan": "off", "enable_indexonlyscan": "off"},
    "time limits": {"statement_timeout": "100", "lock_timeout": "1", "idle_in_transaction_session_timeout": "1"},
    "serializable": {"default_transaction_isolation": "serializable"},
    "repeatable read": {"default_transaction_isolation": "'repeatable read'"},
    "search path": {"search_path": "hostile, pg_catalog"},
    "row security": {"row_security": "off"},
    "asynchronous commit": {"synchronous_commit": "off"},
    "time zone": {"timezone": "'Asia/Kathmandu'", "datestyle": "'German'", "intervalstyle": "sql_standard"},
    "strings": {"standard_conforming_strings": "off", "escape_string_warning": "off", "bytea_output": "escape"},
    "memory": {"work_mem": "64", "maintenance_work_mem": "1024"},
    "parallel": {"parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0"},
    "encoding": {"client_encoding": "LATIN1"},
}
# Functions that would be taken for those of the system if the search path were trusted.
HOSTILE: Final = """
    create schema hostile;
    create function hostile.hashtext(text) returns integer language sql as 'select 1 / 0';
    create function hostile.clock_timestamp() returns timestamptz language sql as 'select null::timestamptz';
    create function hostile.pg_current_xact_id() returns xid8 language sql as 'select null::xid8';
"""


@pytest.fixture(params=SETTINGS)
def odd(request: pytest.FixtureRequest, server: postgres.Server, url: str, home: Path) -> Iterator[Store]:
    """A store in a database with odd settings."""
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute(HOSTILE, url)
    for setting, value in SETTINGS[request.param].items():
        server.execute(f"alter database {name} set {setting} = {value}")
    home.mkdir(exist_ok=True)
    store = open_store(str(home), url)
    yield store
    store.close()


def test_a_job_lives_its_whole_life(odd: Store, home: Path) -> None:
    hands = Hands(odd, home)
    odd.enqueue([new_job("a", command="echo żółć 日本"), new_job("b", queue="q")])
    odd.enqueue([new_job("c", delay_ms=60_000), new_job("d", priority=5)])
    assert [claim.id for claim in hands.claim(4)] == ["d", "a", "b"]
    assert hands.claim(4) == []
    odd.cancel(["c"])
    states = {job.id: job.state for job in odd.jobs()}
    assert states == {"a": State.PROCESSING, "b": State.PROCESSING, "c": State.CANCELLED, "d": State.PROCESSING}
    hands.wakeup.close()


def test_a_failure_is_settled_and_retried(odd: Store, home: Path) -> None:
    hands = Hands(odd, home)
    odd.enqueue([new_job("a", max_retries=0)])
    hands.run(BAD)
    odd.retry(["a"], states=frozenset(State))
    hands.run()
    (job,) = odd.jobs()
    assert (job.state, job.runs) == (State.COMPLETED, 2)
    hands.wakeup.close()


def test_a_worker_is_woken(odd: Store, home: Path) -> None:
    hands = Hands(odd, home)
    odd.enqueue([new_job("a")])
    wait_until(hands.wakeup.drain, what="the notification")
    hands.wakeup.close()


# Sends the plan of every statement to the client, with what was compiled.
EXPLAIN = {"log_min_duration": "0", "log_analyze": "on", "log_verbose": "on", "log_level": "notice"}


def test_no_statement_is_compiled(store: PostgresStore, server: postgres.Server, url: str) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    for setting, value in SETTINGS["jit"].items():
        server.execute(f"alter database {name} set {setting} = {value}")
    store.db.close()
    with store.db.transaction():
        steps = store.db.all(f"explain (analyze) {claim_text(SQL['candidates_any_queue'])}", CLAIM)
    assert "JIT" not in str(steps)


def test_the_statement_that_begins_a_transaction_is_not_compiled(
    store: PostgresStore, server: postgres.Server, url: str
) -> None:
    if server.execute("select pg_jit_available()") == [(False,)]:
        return  # the wheel is built without JIT, and without auto_explain
    name = url.partition("?")[0].rpartition("/")[2]
    explain = {f"auto_explain.{key}": value for key, value in EXPLAIN.items()}
    for setting, value in {"session_preload_libraries": "auto_explain", **explain, **SETTINGS["jit"]}.items():
        server.execute(f"alter database {name} set {setting} = {value}")
    store.db.close()
    plans: list[str] = []
    store.db.open().add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
    with store.db.transaction():
        pass
    assert any("set_config" in plan for plan in plans)
    assert not [plan for plan in plans if "JIT" in plan]


def test_no_statement_of_the_queue_starts_parallel_workers(
    store: PostgresStore, server: postgres.Server, url: str
) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    force = "debug_parallel_query" if server.version >= 16 else "force_parallel_mode"
    server.execute(f"alter database {name} set {force} = on")
    store.db.close()
    with store.db.transaction():
        steps = store.db.all("explain select id from queuectl.jobs order by seq limit 5")
    assert "Gather" not in str(steps)


def end_an_idle_session(server: postgres.Server, url: str) -> None:
    """Return when the server has ended a session that was opened now, for being idle."""
    with psycopg.connect(url) as other:
        sessions = f"select 1 from pg_stat_activity where pid = {other.info.backend_pid}"
        wait_until(lambda: not server.execute(sessions), what="an idle session to be ended")
        other.close()


@pytest.fixture
def short_idle(server: postgres.Server, url: str) -> None:
    """The server ends sessions that are idle for half a second: time for a busy host to send the next statement."""
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute(f"alter database {name} set idle_session_timeout = 500")


@pytest.mark.usefixtures("short_idle")
def test_a_session_that_listens_is_not_ended_for_being_idle(
    open_pg: Open, server: postgres.Server, url: str, home: Path
) -> None:
    hands = Hands(open_pg(), home)
    end_an_idle_session(server, url)
    end_an_idle_session(
        server, url
    )  # half a second later: the session of the store has ended for certain, and not at this moment
    hands.store.enqueue([new_job("a")])
    wait_until(hands.wakeup.drain, what="the notification")
    assert not hands.wakeup.polling_because
    hands.wakeup.close()


@pytest.mark.usefixtures("short_idle")
def test_a_session_that_listens_survives_a_slow_start(
    open_pg: Open, server: postgres.Server, url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for its first notification, the main connection may have to connect first."""
    receives = NotifyWakeup._receives

    def late(wakeup: NotifyWakeup, session: Session) -> bool:
        end_an_idle_session(server, url)
        return receives(wakeup, session)

    monkeypatch.setattr(NotifyWakeup, "_receives", late)
    hands = Hands(open_pg(), home)
    assert not hands.wakeup.polling_because
    hands.wakeup.close()


def test_a_server_without_a_free_connection_is_named(server: postgres.Server, url: str, home: Path) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute("create role crowded login")
    server.execute(f"alter role crowded connection limit 1; grant all on database {name} to crowded")
    mine = url.replace("//postgres@", "//crowded@")
    try:
        with psycopg.connect(mine), pytest.raises(errors.StoreUnreachable, match="too many connections") as raised:
            open_store(str(home), mine)
        assert "no more connections" in raised.value.hint
    finally:
        server.execute(f"revoke all on database {name} from crowded; drop role crowded")


@pytest.mark.parametrize("setting, risk", [("synchronous_commit", "can lose jobs")])
def test_a_commit_that_does_not_wait_for_the_disk_is_a_caution(
    store: PostgresStore, server: postgres.Server, url: str, setting: str, risk: str
) -> None:
    assert store.examine().cautions == ()
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute(f"alter database {name} set {setting} = off")
    store.db.close()
    (caution,) = store.examine().cautions
    assert setting in caution.message
    assert risk in caution.message
