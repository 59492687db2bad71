"""What queuectl itself writes into jobs, and what a user could write that looks like it."""

from __future__ import annotations

import pytest

from queuectl.policy.rules import chosen_by_job, is_delivery
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import ORIGIN_VARIABLE, URL_VARIABLE


@pytest.mark.parametrize(
    "words, env",
    [
        (["success", "job1", "1"], {URL_VARIABLE: "https://example.org", ORIGIN_VARIABLE: "job"}),
        (["alert", "deaths", "firing"], {URL_VARIABLE: "https://example.org", "QUEUECTL_ALERT": "deaths"}),
    ],
)
def test_a_call_of_ours_is_a_delivery(words: list[str], env: dict[str, str]) -> None:
    assert is_delivery(words, env)


@pytest.mark.parametrize(
    "words, env",
    [
        (["success", "job1"], {}),
        (["success", "job1", "1", "--db"], {}),
        (["success", "job1", "one"], {}),
        (["success", "-x", "1"], {}),
        (["other", "job1", "1"], {}),
        (["success", "job1", "1"], {"QUEUECTL_DB": "elsewhere"}),
        (["alert", "deaths", "exploding"], {}),
        (["alert", "-x", "firing"], {}),
        (["alert", "deaths", "firing"], {"PATH": "/tmp"}),
    ],
)
def test_what_only_looks_like_a_call_is_a_job_like_any_other(words: list[str], env: dict[str, str]) -> None:
    assert not is_delivery(words, env)


def test_variables_that_queuectl_sets_are_not_the_choice_of_the_job() -> None:
    env = {"QUEUECTL_JOB_ID": "a", "QUEUECTL_ARRAY_INDEX": "7", "QUEUECTL_BATCH": "nightly", "QUEUECTL_BATCH_DEAD": "0"}
    assert chosen_by_job("default", env) == []


def test_a_value_that_queuectl_could_not_have_set_is_the_choice_of_the_job() -> None:
    env = {"QUEUECTL_ARRAY_INDEX": "$(id)", "LANG": "C"}
    assert chosen_by_job("default", env) == ["QUEUECTL_ARRAY_INDEX", "LANG"]


def test_variables_of_alerts_are_ours_only_in_the_queue_of_webhooks() -> None:
    assert chosen_by_job(WEBHOOK_QUEUE, {"QUEUECTL_ALERT": "deaths"}) == []
    assert chosen_by_job("default", {"QUEUECTL_ALERT": "deaths"}) == ["QUEUECTL_ALERT"]
