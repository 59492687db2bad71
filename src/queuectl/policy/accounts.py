"""The accounts that a policy names, looked up on this host, and their access to the logs of jobs."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from queuectl import paths as places
from queuectl.errors import PolicyUnusable
from queuectl.logs.acl import ENTER, grant
from queuectl.policy.rules import Account, Identity, Policy, is_number

Accounts = Mapping[Identity, Account]


def find_accounts(policy: Policy, path: str) -> Accounts:
    """Look up all accounts of a policy, with their groups at this time. Raises PolicyUnusable for an account that does not exist.

    `path`: the file, for the error. A change of groups takes effect when the policy is loaded again.
    """
    named = {rules.user for rules in policy.all_rules if rules.user is not None}
    found = {}
    for identity in sorted(named, key=str):
        try:
            found[identity] = find_account(identity)
        except (LookupError, OSError) as exc:
            why = exc.args[0] if isinstance(exc, LookupError) else f"{identity} cannot be looked up: {exc}"
            raise PolicyUnusable(path, str(why), hint="correct user = …, or create the user") from exc
    return found


def find_account(identity: Identity) -> Account:
    """Raises LookupError with a message that names the missing user or group."""
    group = None if identity.group is None else _group(identity.group)
    entry = _entry(identity.user)
    if entry is None:
        if not is_number(identity.user):
            raise LookupError(f"this host has no user {identity.user}")
        if group is None:
            raise LookupError(
                f'user {identity.user} has no entry on this host, and so no group: name a group, "{identity.user}:GROUP"'
            )
        return Account(identity.user, int(identity.user), group, (group,), "/", "/bin/sh")
    main = entry.pw_gid if group is None else group
    groups = tuple(os.getgrouplist(entry.pw_name, main))
    return Account(entry.pw_name, entry.pw_uid, main, groups, entry.pw_dir or "/", entry.pw_shell or "/bin/sh")


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        # The name first: a user name may consist of digits.
        return pwd.getpwnam(name)
    except KeyError:
        pass
    try:
        return pwd.getpwuid(int(name)) if is_number(name) else None
    except KeyError:
        return None


def _group(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        if is_number(name):
            return int(name)
        raise LookupError(f"this host has no group {name}") from None


def grant_log_access(home: str, accounts: Collection[Account]) -> str | None:
    """Let these users pass through the data directory and its logs directory, without listing them.

    Returns a problem, or None. A job that runs as another user can then read the logs it is given by name.
    """
    users = [account.uid for account in accounts]
    try:
        for path in (home, places.logs(home)) if users else ():
            grant(path, users, ENTER)
    except OSError as exc:
        return f"jobs cannot read their logs in {home}: {exc.strerror}"
    return None


def first_closed_directory(home: str, account: Account) -> str | None:
    """The first directory above the data directory that this user cannot enter; None if there is none."""
    parents = [str(path) for path in Path(os.path.realpath(home)).parents]
    return next((path for path in reversed(parents) if not _may_enter(os.stat(path), account)), None)


def _may_enter(found: os.stat_result, account: Account) -> bool:
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid or found.st_gid in account.groups:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)
