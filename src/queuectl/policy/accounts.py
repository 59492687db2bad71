"""Who the users of a policy are on this host."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Mapping

from queuectl.errors import PolicyUnusable
from queuectl.job.policy import Policy
from queuectl.job.user import Account, Identity, is_number

Accounts = Mapping[Identity, Account]


def find_accounts(policy: Policy, path: str) -> Accounts:
    """All that it names, as they are now: whoever is made a member of a group later is one after the next reading, as after
    the next login. Raises PolicyUnusable, which names the file at `path`, for one that this host does not know."""
    named = {rules.user for rules in policy.all_rules if rules.user is not None}
    found = {}
    for identity in sorted(named, key=str):
        try:
            found[identity] = find_account(identity)
        except (LookupError, OSError) as exc:
            why = exc.args[0] if isinstance(exc, LookupError) else f"{identity} cannot be looked up: {exc}"
            raise PolicyUnusable(path, str(why), hint="correct user = …, or make the user") from exc
    return found


def find_account(identity: Identity) -> Account:
    """Raises LookupError, which says what is missing."""
    group = None if identity.group is None else _group(identity.group)
    entry = _entry(identity.user)
    if entry is None:
        if not is_number(identity.user):
            raise LookupError(f"this host has no user {identity.user}")
        if group is None:
            raise LookupError(
                f'user {identity.user} has no entry here, and so no group: say which, "{identity.user}:GROUP"'
            )
        return Account(identity.user, int(identity.user), group, (group,), "/", "/bin/sh")
    main = entry.pw_gid if group is None else group
    groups = tuple(os.getgrouplist(entry.pw_name, main))
    return Account(entry.pw_name, entry.pw_uid, main, groups, entry.pw_dir or "/", entry.pw_shell or "/bin/sh")


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        # A name first: some systems have users who are called like numbers of others.
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
