"""Evaluate the policy of this host for one program, after resolving the file that would be executed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.jobs.spec import PackedLimits
from queuectl.paths import user_name
from queuectl.policy.accounts import Accounts
from queuectl.policy.paths import find_weak_interpreter, is_program, real_directory, resolve_path
from queuectl.policy.rules import Account, Policy, Refusal, Rules, chosen_by_job
from queuectl.secrets.rules import parse_stored

SHELL: Final = "/bin/sh"
NO_VARIABLES: Final[Mapping[str, str]] = {}


class Request(NamedTuple):
    """A program to start. `env`: added to the environment of this process.

    `sets_timeout`, `sets_cwd`: whether a user chose them. A time limit or directory that queuectl chose is never refused.
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


class Decision(NamedTuple):
    """The program may run, by `rule`. `program`: the resolved file. `called`: its argv[0].

    `place`: device and inode of the working directory, to detect a directory that is replaced later. `account`: the user to run
    as; None: the user of the worker.
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


_Program = tuple[str, str, str]  # the first three of a Decision


class Evaluator:
    def __init__(
        self,
        policy: Policy,
        *,
        user: int,
        accounts: Accounts,
        environment: Mapping[str, str] = NO_VARIABLES,
        find_silent: Callable[[Iterable[str]], str | None] = lambda _: None,
    ) -> None:
        """`user`: UID of this process. `accounts`: the users that the policy names. `environment`: of this process. `find_silent`: the first
        mount that one of some paths is on and whose server does not answer."""
        self.policy = policy
        self._user = user
        self._accounts = accounts
        self._environment = environment
        self._find_silent = find_silent
        self._paths: dict[tuple[tuple[str, ...] | None, Account | None], str] = {}

    def of(self, queue: str) -> Rules:
        return self.policy.of(queue)

    def accounts(self) -> Collection[Account]:
        """Accounts other than the worker's that jobs may run as."""
        return [] if self._user else [account for account in self._accounts.values() if account.uid]

    def account_of(self, queue: str) -> Account | Refusal | None:
        """The account that jobs of this queue run as; None: that of the worker."""
        rules = self.policy.of(queue)
        if rules.user is None:
            if self._user:
                return None
            return Refusal(
                rules.name("user"), f"the worker runs as root, and the policy names no user for the queue {queue}"
            )
        account = self._accounts[rules.user]
        if account.uid == self._user and rules.user.group is None:
            return None
        if self._user:
            problem = f"jobs run as {rules.user}: their worker has to run as root, not as {user_name(self._user)}"
            return Refusal(rules.name("user"), problem)
        return account

    def evaluate(self, request: Request) -> Decision | Refusal:
        account, rules = self.account_of(request.queue), self.policy.of(request.queue)
        if isinstance(account, Refusal):
            return account
        refusal = (
            rules.against_variables(chosen_by_job(request.queue, request.env))
            or rules.against_secrets(parse_stored(request.secrets))
            or (rules.against_timeout(request.timeout_ms) if request.sets_timeout else None)
            or rules.against_limits(request.limits)
            or (rules.against_shell() if request.argv is None else None)
        )
        if refusal is not None:
            return refusal
        if (mount := self.silent_mount(request)) is not None:
            return Refusal(rules.name("directories"), f"{mount[:200]} does not answer")
        cwd, place = request.cwd, None
        if rules.directories is not None and request.sets_cwd:
            try:
                cwd, place = _open_directory(request.cwd)
            except (OSError, ValueError) as exc:
                return Refusal(rules.name("directories"), f"{request.cwd[:200]}: {_reason(exc)}")
            refusal = rules.against_directory(cwd, real_directory=self._real_directory_of_rule)
            if refusal is not None:
                return refusal
        if request.argv is None:
            # The policy does not apply to programs that the shell starts: see docs/guides/policy.md.
            program: _Program | Refusal = (rules.name("shell"), SHELL, SHELL)
        elif rules.programs is None and rules.shell:
            program = ("no rule", "", request.argv[0])
        else:
            path = self._search_path(request, account)
            program = self._evaluate_program(rules, request.argv, path=path, cwd=cwd)
        if isinstance(program, Refusal):
            return program
        timeout_ms, limits = rules.capped(request.timeout_ms), rules.capped_limits(request.limits)
        return Decision(*program, cwd, place, timeout_ms, account, rules.umask, limits)

    def silent_mount(self, request: Request) -> str | None:
        """A mount that has to be examined for this request and does not answer."""
        rules, account = self.policy.of(request.queue), self.account_of(request.queue)
        paths = [request.cwd] if rules.directories is not None and request.sets_cwd else []
        if request.argv and not (rules.programs is None and rules.shell) and not isinstance(account, Refusal):
            program, path = request.argv[0], self._search_path(request, account)
            folders = [""] if "/" in program else path.split(":")
            paths += [os.path.join(request.cwd, folder, program) for folder in folders]
        return self._find_silent(paths)

    def _search_path(self, request: Request, account: Account | None) -> str:
        return request.env["PATH"] if "PATH" in request.env else self._path(self.policy.of(request.queue), account)

    def _path(self, rules: Rules, account: Account | None) -> str:
        """The PATH of a job that does not set its own."""
        key = rules.environment, account
        if key not in self._paths:
            self._paths[key] = rules.seen(self._environment, account).get("PATH", os.defpath)
        return self._paths[key]

    def _evaluate_program(self, rules: Rules, argv: Sequence[str], *, path: str, cwd: str) -> _Program | Refusal:
        found = find_program(argv[0], cwd=cwd, path=path)
        if found is None:
            return Refusal(rules.name("programs"), f"no such program: {argv[0][:200]}")
        try:
            way = resolve_path(found, user=self._user)
        except (OSError, ValueError) as exc:
            return Refusal(rules.name("programs"), f"{found[:200]}: {_reason(exc)}")
        allowed = rules.allow(way.names, tuple(argv[1:]), real_directory=self._real_directory)
        if isinstance(allowed, Refusal):
            return allowed
        rule, name = allowed
        # No other user can replace the program between this check and its start.
        if rules.programs is not None:
            try:
                weak = way.weak or find_weak_interpreter(way.real, user=self._user)
            except OSError as exc:
                return Refusal(rule, f"{way.real[:200]}: its interpreter: {_reason(exc)}")
            if weak is not None:
                return Refusal(rule, f"{weak} can be changed by others")
        called = argv[0] if name == way.names[0] else name
        return rule, way.real, called

    def _real_directory(self, path: str) -> str | None:
        """Resolve a directory of a rule; None if it is missing, or if other users can redirect it."""
        if self._find_silent([path]) is not None:
            return None
        try:
            way = resolve_path(path, user=self._user)
        except (OSError, ValueError):
            return None
        return way.real if way.weak is None else None

    def _real_directory_of_rule(self, path: str) -> str | None:
        return None if self._find_silent([path]) is not None else real_directory(path)


def find_program(name: str, *, cwd: str, path: str) -> str | None:
    """Find a program as execvp does: a name with a slash is a path relative to `cwd`; any other is searched for on the PATH, where
    an empty entry is `cwd`. None if there is none."""
    if not name or "\0" in name:
        return None
    if "/" in name:
        return os.path.join(cwd, name)
    for folder in path.split(":"):
        found = os.path.join(cwd, folder, name)
        if is_program(found):
            return found
    return None


def _open_directory(path: str) -> tuple[str, tuple[int, int]]:
    """Resolve a directory to its path, device and inode, so that the process enters this directory or none."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        return os.readlink(f"/proc/self/fd/{fd}"), (found.st_dev, found.st_ino)
    finally:
        os.close(fd)


def _reason(exc: Exception) -> str:
    return (getattr(exc, "strerror", None) or str(exc)).lower()
