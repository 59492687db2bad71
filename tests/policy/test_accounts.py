"""Who the users of a policy are, and as whom the jobs of a queue run."""

from __future__ import annotations

import os
import pwd

import pytest

from queuectl.errors import PolicyUnusable
from queuectl.job.policy import Refusal
from queuectl.job.policytables import parse_policy
from queuectl.job.user import Account, Identity
from queuectl.policy.accounts import find_account, find_accounts, user_name
from queuectl.policy.guard import Guard

UNKNOWN = 4_000_000_000  # nobody has so high a number
FILE = "/etc/policy.toml"


def guard(text: dict[str, object], *, user: int) -> Guard:
    policy = parse_policy(text, subject=FILE)
    return Guard(policy, user=user, accounts=find_accounts(policy, FILE))


def test_a_user_of_this_host_is_who_its_entry_says_with_the_groups_of_a_login() -> None:
    for entry in pwd.getpwall()[:20]:
        found = find_account(Identity(entry.pw_name))
        assert (found.name, found.uid, found.gid) == (entry.pw_name, entry.pw_uid, entry.pw_gid)
        assert (found.home, found.shell) == (entry.pw_dir or "/", entry.pw_shell or "/bin/sh")
        assert sorted(found.groups) == sorted(os.getgrouplist(entry.pw_name, entry.pw_gid))


def test_a_number_is_the_user_who_has_it() -> None:
    assert find_account(Identity("0")) == find_account(Identity(pwd.getpwuid(0).pw_name))


def test_another_main_group_can_be_named() -> None:
    found = find_account(Identity("0", "12345"))
    assert found.gid == 12345
    assert 12345 in found.groups
    assert find_account(Identity("0", "0")).gid == 0


def test_a_number_without_an_entry_needs_a_group_and_has_no_other() -> None:
    assert find_account(Identity(str(UNKNOWN), "7")) == Account(str(UNKNOWN), UNKNOWN, 7, (7,), "/", "/bin/sh")
    with pytest.raises(LookupError, match="say which"):
        find_account(Identity(str(UNKNOWN)))


@pytest.mark.parametrize("user", ["nosuchuser", "0:nosuchgroup", str(UNKNOWN)])
def test_who_is_not_known_here_makes_a_policy_unusable(user: str) -> None:
    with pytest.raises(PolicyUnusable) as caught:
        guard({"user": user}, user=0)
    assert FILE in caught.value.message
    assert caught.value.hint


def test_root_runs_jobs_as_whom_it_is_told_or_refuses() -> None:
    these = guard({"queues": {"a": {"user": f"{UNKNOWN}:7"}, "r": {"user": 0}, "g": {"user": "0:7"}}}, user=0)
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


def test_who_is_not_root_runs_jobs_as_itself_and_refuses_others() -> None:
    these = guard({"queues": {"a": {"user": f"{UNKNOWN}:7"}, "r": {"user": 0}}}, user=UNKNOWN)
    assert these.account_of("other") is None
    assert list(these.accounts()) == []
    for queue in ("a", "r"):  # not even itself, with another group
        refusal = these.account_of(queue)
        assert isinstance(refusal, Refusal)
        assert refusal.rule == f"queues.{queue}.user"
        assert "has to be root" in refusal.problem
    mine = os.geteuid() or 1
    assert guard({"user": mine}, user=mine).account_of("x") is None


def test_a_user_without_a_name_has_a_number() -> None:
    assert user_name(0) == pwd.getpwuid(0).pw_name
    assert user_name(UNKNOWN) == f"user {UNKNOWN}"
