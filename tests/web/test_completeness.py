"""Every command has an operation of the API, or the reference explains why not."""

from __future__ import annotations

from docs import generate
from docs.words import NOT_OVER_HTTP
from queuectl.cli.command import LazyGroup
from queuectl.web.app import OPERATIONS

# By which operations a command can be done without.
DONE_BY = {
    "enqueue": ["enqueue", "enqueue_many"],
    "clone": ["clone_job"],
    "status": ["status", "watch_events", "list_issues"],
    "list": ["list_jobs", "list_query_terms"],
    "show": ["show_job"],
    "explain": ["explain_job"],
    "graph": ["show_graph"],
    "logs": ["show_logs", "show_log_lines", "search_log"],
    "metrics": ["metrics", "history"],
    "audit": ["list_audit"],
    "batch list": ["list_batches"],
    "batch show": ["show_batch"],
    "worker stop": ["stop_worker", "stop_workers"],
    "worker restart": ["restart_worker"],
    "worker list": ["list_workers", "show_worker"],
    "queue list": ["list_queues", "show_queue", "explain_queue"],
    "queue pause": ["pause_queue"],
    "queue resume": ["resume_queue"],
    "queue set": ["change_queue"],
    "queue move": ["move_jobs"],
    "wait": ["wait_for_job", "wait_for_jobs", "wait_for_batch"],
    "cancel": ["cancel_job", "act_on_jobs"],
    "retry": ["retry_job", "act_on_jobs"],
    "edit": ["edit_job", "act_on_jobs"],
    "priority": ["edit_job", "act_on_jobs"],
    "hold": ["hold_job", "act_on_jobs"],
    "release": ["release_job", "act_on_jobs"],
    "run-now": ["run_job_now", "act_on_jobs"],
    "cron add": ["add_schedule"],
    "cron edit": ["edit_schedule"],
    "cron list": ["list_schedules"],
    "cron show": ["show_schedule"],
    "cron next": ["next_of_schedule"],
    "cron run": ["run_schedule"],
    "cron pause": ["pause_schedule"],
    "cron resume": ["resume_schedule"],
    "cron remove": ["remove_schedule"],
    "alert add": ["add_alert"],
    "alert edit": ["edit_alert"],
    "alert pause": ["pause_alert"],
    "alert resume": ["resume_alert"],
    "alert list": ["list_alerts"],
    "alert show": ["show_alert"],
    "alert test": ["test_alert"],
    "alert remove": ["remove_alert"],
    "dlq list": ["list_dead", "dead_by_error"],
    "dlq show": ["show_dead"],
    "dlq retry": ["retry_dead"],
    "dlq purge": ["purge_dead"],
    "doctor": ["doctor", "doctor_fix"],
    "config list": ["list_settings"],
    "config get": ["get_setting"],
    "config set": ["set_setting"],
    "config unset": ["unset_setting"],
    "config reset": ["reset_settings"],
    "db prune": ["prune", "act_on_jobs"],
    "db export": ["export_jobs"],
}


def test_every_command_is_in_the_api_or_excluded_in_the_reference() -> None:
    commands = {" ".join(path) for path, found in generate.all_commands() if not isinstance(found, LazyGroup)}
    assert commands == DONE_BY.keys() | NOT_OVER_HTTP.keys()
    assert not DONE_BY.keys() & NOT_OVER_HTTP.keys()


def test_every_operation_is_that_of_a_command() -> None:
    assert {name for names in DONE_BY.values() for name in names} == {one.name for one in OPERATIONS}
