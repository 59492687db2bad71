"""The accounts of a policy, and the account that jobs of a queue run as."""

from __future__ import annotations

import os
import pwd

import pytest

from queuectl.errors import PolicyUnusable
from queuectl.paths import user_name
from queuectl.policy.accounts import find_account, find_accounts
from queuectl.policy.evaluator import Evaluator
from queuectl.policy.parser import parse_policy
from queuectl.policy.rules import Account, Identity, Refusal

UNKNOWN = 4_000_000_000  # no user has this UID
FILE = "/etc/policy.toml"


def evaluator(text: dict[str, object], *, user: int) -> Evaluator:
    policy = parse_policy(text, subject=FILE)
    return Evaluator(policy, user=user, accounts=find_accounts(policy, FILE))


def test_an_account_has_the_groups_of_a_login() -> None:
    for entry in pwd.getpwall()[:20]:
        found = find_account(Identity(entry.pw_name))
        assert (found.name, found.uid, found.gid) == (entry.pw_name, entry.pw_uid, entry.pw_gid)
        assert (found.home, found.shell) == (entry.pw_dir or "/", entry.pw_shell or "/bin/sh")
        assert sorted(found.groups) == sorted(os.getgrouplist(entry.pw_name, entry.pw_gid))


def test_a_number_names_the_user_with_this_uid() -> None:
    assert find_account(Identity("0")) == find_account(Identity(pwd.getpwuid(0).pw_name))


def test_another_main_group_can_be_named() -> None:
    found = find_account(Identity("0", "12345"))
    assert found.gid == 12345
    assert 12345 in found.groups
    assert find_account(Identity("0", "0")).gid == 0


def test_a_number_without_an_entry_needs_a_group_and_has_no_other() -> None:
    assert find_account(Identity(str(UNKNOWN), "7")) == Account(str(UNKNOWN), UNKNOWN, 7, (7,), "/", "/bin/sh")
    with pytest.raises(LookupError, match="name a group"):
        find_account(Identity(str(UNKNOWN)))


@pytest.mark.parametrize("user", ["nosuchuser", "0:nosuchgroup", str(UNKNOWN)])
def test_an_unknown_user_makes_a_policy_unusable(user: str) -> None:
    with pytest.raises(PolicyUnusable) as caught:
        evaluator({"user": user}, user=0)
    assert FILE in caught.value.message
    assert caught.value.hint


def test_root_runs_jobs_as_the_named_user_or_refuses() -> None:
    these = evaluator({"queues": {"a": {"user": f"{UNKNOWN}:7"}, "r": {"user": 0}, "g": {"user": "0:7"}}}, user=0)
    account = these.account_of("a")
    assert isinstance(account, Account)
    assert account.uid == UNKNOWN
    assert these.account_of("r") is None
    group = these.account_of("g")
    assert isinstance(group, Account)
    assert (group.uid, group.gid) == (0, 7)
    refusal = these.account_of("other")
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "user"
    assert [one.uid for one in these.accounts()] == [UNKNOWN]


def test_a_worker_without_root_runs_jobs_as_itself_and_refuses_other_users() -> None:
    these = evaluator({"queues": {"a": {"user": f"{UNKNOWN}:7"}, "r": {"user": 0}}}, user=UNKNOWN)
    assert these.account_of("other") is None
    assert list(these.accounts()) == []
    for queue in ("a", "r"):  # not even itself, with another group
        refusal = these.account_of(queue)
        assert isinstance(refusal, Refusal)
        assert refusal.rule == f"queues.{queue}.user"
        assert "has to run as root" in refusal.problem
    mine = os.geteuid() or 1
    assert evaluator({"user": mine}, user=mine).account_of("x") is None


def test_a_user_without_a_name_has_a_number() -> None:
    assert user_name(0) == pwd.getpwuid(0).pw_name
    assert user_name(UNKNOWN) == f"user {UNKNOWN}"
