"""Whether a job may run on this host, decided on what will really be executed."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.job.internal import chosen_by_job
from queuectl.job.newjob import PackedLimits
from queuectl.job.policy import Policy, Refusal, Rules
from queuectl.job.secrets import wanted
from queuectl.job.user import Account
from queuectl.policy.accounts import Accounts, user_name
from queuectl.policy.paths import is_program, real_directory, walk, weak_interpreter

SHELL: Final = "/bin/sh"
NOTHING: Final[Mapping[str, str]] = {}


class Wish(NamedTuple):
    """A program that is to be started, as far as a policy asks. `env`: what is added to the environment of this process.

    `sets_timeout`, `sets_cwd`: whether a user chose them. A time limit or directory that queuectl chose is no reason to refuse.
    """

    queue: str
    command: str | None
    argv: Sequence[str] | None
    cwd: str
    env: Mapping[str, str]
    timeout_ms: int | None
    limits: PackedLimits | None = None
    secrets: Sequence[str] = ()
    sets_timeout: bool = True
    sets_cwd: bool = True


class Permit(NamedTuple):
    """It may run, by this rule, as this: the file itself, and the name that it is told to have been called by.

    `place` tells the working directory apart from any other that may stand under its name later. `account`: as whom, None:
    as the worker.
    """

    rule: str
    program: str
    called: str
    cwd: str
    place: tuple[int, int] | None
    timeout_ms: int | None
    account: Account | None = None
    umask: int | None = None
    limits: PackedLimits | None = None


class Guard:
    def __init__(
        self, policy: Policy, *, user: int, accounts: Accounts, environment: Mapping[str, str] = NOTHING
    ) -> None:
        """`user`: the user of this process. `accounts`: the users of the policy. `environment`: that of this process."""
        self.policy = policy
        self._user = user
        self._accounts = accounts
        self._environment = environment
        self._paths: dict[tuple[tuple[str, ...] | None, Account | None], str] = {}

    def of(self, queue: str) -> Rules:
        return self.policy.of(queue)

    def accounts(self) -> Collection[Account]:
        """Other users than the worker's, as whom jobs may run."""
        return [] if self._user else [account for account in self._accounts.values() if account.uid]

    def account_of(self, queue: str) -> Account | Refusal | None:
        """As whom the jobs of this queue run; None: as the worker."""
        rules = self.policy.of(queue)
        if rules.user is None:
            if self._user:
                return None
            return Refusal(rules.name("user"), f"the worker is root, and no user is named for the queue {queue}")
        account = self._accounts[rules.user]
        if account.uid == self._user and rules.user.group is None:
            return None
        if self._user:
            problem = (
                f"jobs run as {rules.user}, for which their worker has to be root, and not {user_name(self._user)}"
            )
            return Refusal(rules.name("user"), problem)
        return account

    def judge(self, wish: Wish) -> Permit | Refusal:
        account = self.account_of(wish.queue)
        if isinstance(account, Refusal):
            return account
        permit = self._judge(wish, account)
        if isinstance(permit, Refusal):
            return permit
        rules = self.policy.of(wish.queue)
        return permit._replace(account=account, umask=rules.umask, limits=rules.capped_limits(wish.limits))

    def _judge(self, wish: Wish, account: Account | None) -> Permit | Refusal:
        rules = self.policy.of(wish.queue)
        against = (
            rules.against_variables(chosen_by_job(wish.queue, wish.env))
            or rules.against_secrets(wanted(wish.secrets))
            or (rules.against_timeout(wish.timeout_ms) if wish.sets_timeout else None)
            or rules.against_limits(wish.limits)
        )
        if against is None and wish.argv is None:
            against = rules.against_shell()
        if against is not None:
            return against
        cwd, place = wish.cwd, None
        if rules.directories is not None and wish.sets_cwd:
            try:
                cwd, place = _entered(wish.cwd)
            except (OSError, ValueError) as exc:
                return Refusal(rules.name("directories"), f"{wish.cwd[:200]}: {_words(exc)}")
            against = rules.against_directory(cwd, real_directory=real_directory)
            if against is not None:
                return against
        timeout_ms = rules.capped(wish.timeout_ms)
        if wish.argv is None:
            # Whatever it does then is not for us to say: see docs/how-to/policy.md.
            return Permit(rules.name("shell"), SHELL, SHELL, cwd, place, timeout_ms)
        if rules.programs is None and rules.shell:
            return Permit("no rule", "", wish.argv[0], cwd, place, timeout_ms)
        path = wish.env["PATH"] if "PATH" in wish.env else self._path(rules, account)
        return self._judge_program(rules, wish.argv, path, cwd, place, timeout_ms)

    def _path(self, rules: Rules, account: Account | None) -> str:
        """The PATH that the program gets if the job brings none along."""
        key = rules.environment, account
        if key not in self._paths:
            self._paths[key] = rules.seen(self._environment, account).get("PATH", os.defpath)
        return self._paths[key]

    def _judge_program(
        self,
        rules: Rules,
        argv: Sequence[str],
        path: str,
        cwd: str,
        place: tuple[int, int] | None,
        timeout_ms: int | None,
    ) -> Permit | Refusal:
        found = find_program(argv[0], cwd=cwd, path=path)
        if found is None:
            return Refusal(rules.name("programs"), f"no such program: {argv[0][:200]}")
        try:
            way = walk(found, user=self._user)
        except (OSError, ValueError) as exc:
            return Refusal(rules.name("programs"), f"{found[:200]}: {_words(exc)}")
        allowed = rules.allow(way.names, tuple(argv[1:]), real_directory=self._real_directory)
        if isinstance(allowed, Refusal):
            return allowed
        rule, name = allowed
        # Between now and the start nobody else can put another program there, or this one would not be what runs.
        if rules.programs is not None:
            try:
                weak = way.weak or weak_interpreter(way.real, user=self._user)
            except OSError as exc:
                return Refusal(rule, f"{way.real[:200]}: its interpreter: {_words(exc)}")
            if weak is not None:
                return Refusal(rule, f"{weak} can be changed by others")
        called = argv[0] if name == way.names[0] else name
        return Permit(rule, way.real, called, cwd, place, timeout_ms)

    def _real_directory(self, path: str) -> str | None:
        """Of a rule: one that others can make lead elsewhere stands for nothing."""
        try:
            way = walk(path, user=self._user)
        except (OSError, ValueError):
            return None
        return way.real if way.weak is None else None


def find_program(word: str, *, cwd: str, path: str) -> str | None:
    """As the start of a process finds it: what has a slash is a path, from the working directory on; else the first program
    of that name on the PATH, where an empty entry is the working directory."""
    if not word or "\0" in word:
        return None
    if "/" in word:
        return os.path.join(cwd, word)
    for folder in path.split(":"):
        found = os.path.join(cwd, folder, word)
        if is_program(found):
            return found
    return None


def _entered(path: str) -> tuple[str, tuple[int, int]]:
    """The directory itself, whatever its name leads to a moment later: the process enters this one, or none."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        return os.readlink(f"/proc/self/fd/{fd}"), (found.st_dev, found.st_ino)
    finally:
        os.close(fd)


def _words(exc: Exception) -> str:
    return (getattr(exc, "strerror", None) or str(exc)).lower()
