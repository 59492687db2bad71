"""What a job that runs as another user is told of the store."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from queuectl.policy.accounts import find_accounts
from queuectl.policy.evaluator import Evaluator
from queuectl.policy.gate import Gate, PolicyLoader
from queuectl.policy.parser import parse_policy
from queuectl.process.journal import Journal
from queuectl.worker.launcher import Launcher
from tests.factories import unknown_claim

SECRET = "postgresql://ada:s3cret@db.example/q?sslmode=require&sslpassword=t0p"


def told(said: Mapping[str, object], journal: Journal, *, db: str, env: dict[str, str] | None = None) -> dict[str, str]:
    policy = parse_policy(said, subject="policy.toml")
    loader = PolicyLoader(None)
    loader.evaluator = Evaluator(policy, user=0, accounts=find_accounts(policy, "policy.toml"))
    launcher = Launcher(
        worker="w",
        home="/h",
        db=db,
        journal=journal,
        gate=Gate(loader, {"QUEUECTL_DB": db, "PGPASSWORD": "s3cret", "LANG": "C"}),
    )
    (prepared,), refused = launcher.prepare_all([(unknown_claim("a")._replace(env=env), None, 0)])
    assert not refused
    request = prepared.request
    return {os.fsdecode(name): os.fsdecode(value) for name, value in {**request.base, **request.env}.items()}


@pytest.fixture
def journal(tmp_path: object) -> Journal:
    return Journal(f"{tmp_path}/w.runs")


@pytest.mark.parametrize("said", [{}, {"environment": ["LANG", "QUEUECTL_*"]}])
@pytest.mark.parametrize("env", [None, {"OWN": "1"}])
def test_what_opens_the_store_is_not_told_to_other_users(
    journal: Journal, said: dict[str, object], env: dict[str, str] | None
) -> None:
    seen = told({"user": "4000000000:7", **said}, journal, db=SECRET, env=env)
    assert seen["QUEUECTL_DB"] == "postgresql://ada@db.example/q?sslmode=require"
    assert seen["QUEUECTL_HOME"] == "/h"
    everything = "".join(seen.values())
    assert "s3cret" not in everything
    assert "t0p" not in everything


def test_the_user_of_the_worker_reaches_its_store(journal: Journal) -> None:
    seen = told({"user": "root"}, journal, db=SECRET)
    assert (seen["QUEUECTL_DB"], seen["PGPASSWORD"]) == (SECRET, "s3cret")


def test_the_path_of_a_store_is_no_secret(journal: Journal) -> None:
    assert told({"user": "4000000000:7"}, journal, db="/srv/q.db")["QUEUECTL_DB"] == "/srv/q.db"
