"""Lint a policy: find rules that jobs can bypass."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from queuectl.policy.accounts import Accounts
from queuectl.policy.env_denylist import is_wildcard, loads_code
from queuectl.policy.paths import find_weak_interpreter, resolve_path
from queuectl.policy.rules import Account, Policy, Program, Rules

# Programs that run other programs, or any code, given as arguments.
_RUNNERS: Final = re.compile(
    r"(ba|da|a|k|mk|z|c|tc|ya|fi|rba)?sh|(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|guile|ghci|R|Rscript|julia|"
    r"erl|elixir|java|jshell|scala|groovy|dotnet|go|cargo|npm|npx|yarn|pip)[0-9.]*|[gmn]?awk|busybox|toybox|env|find|fd|xargs|parallel|"
    r"nice|nohup|timeout|setsid|stdbuf|ionice|chrt|taskset|flock|script|watch|time|strace|ltrace|gdb|make|ninja|cmake|sed|ed|ex|vi|vim|"
    r"nvim|emacs|nano|less|more|man|tar|zip|cpio|rsync|scp|ssh|sftp|git|hg|svn|sudo|su|doas|runuser|chroot|unshare|nsenter|systemd-run|"
    r"docker|podman|nerdctl|kubectl|at|batch|crontab|sqlite3|psql|mysql|curl|wget|openssl|expect|socat|nc|ncat|ld\.so|ld-linux.*"
)


class Weakness(NamedTuple):
    """`is_open`: every user who can enqueue jobs can exploit it; otherwise only a program that already runs here."""

    code: str
    rule: str
    message: str
    hint: str
    is_open: bool = True


def lint_policy(policy: Policy, *, user: int, accounts: Accounts) -> Iterator[Weakness]:
    """Find the weaknesses of a policy, each once. `user`: UID of the worker."""
    seen: set[Weakness] = set()
    for rules in policy.all_rules:
        account = None if rules.user is None else accounts[rules.user]
        for one in (*_lint_user(rules, user, account), *_lint_rules(rules, user, account)):
            if one not in seen:
                seen.add(one)
                yield one


def _lint_rules(rules: Rules, user: int, account: Account | None) -> Iterator[Weakness]:
    if rules.shell and rules.programs is not None:
        message = "a shell runs any program, whether it is listed or not"
        yield Weakness(
            "policy-shell", rules.name("shell"), message, "set shell = false, and enqueue programs with arguments"
        )
    if not rules.shell and rules.programs is None:
        message = "any program may run, and many of them run others as a shell does"
        yield Weakness("policy-any-program", rules.name("shell"), message, "list the programs that may run")
    for program in rules.programs or ():
        yield from _lint_program(program, user)
    for pattern in rules.secrets:
        if not pattern.strip("*?") and (rules.shell or rules.programs is None):
            message = f"with {pattern} a job may read every secret of this host and run any program that prints it"
            yield Weakness(
                "policy-any-secret", rules.name("secrets"), message, "list the secrets that jobs need", is_open=False
            )
    for variable in rules.job_environment or ():
        if not is_wildcard(variable) and loads_code(variable):
            message = f"with {variable} a job makes programs load or find other code"
            yield Weakness("policy-loader", rules.name("job-environment"), message, f"remove {variable}")
    yield from lint_wildcards(rules)
    is_switched = not user and account is not None and account.uid != user
    if rules.environment is None and rules.programs is not None and not is_switched:
        message = "jobs inherit the whole environment of the worker, including passwords"
        hint = 'list the variables that they need: environment = ["PATH", "HOME", "LANG", "LC_*"]'
        yield Weakness("policy-environment", "environment", message, hint, is_open=False)


def lint_wildcards(rules: Rules) -> Iterator[Weakness]:
    """Report each wildcard for variables that jobs set."""
    for pattern in filter(is_wildcard, rules.job_environment or ()):
        message = f"{pattern} covers every variable of that form, except those that are known to load code (LD_PRELOAD, MAKEFLAGS …)"
        hint = "name the variables that jobs need; queuectl help loader-variables lists those that no wildcard covers"
        yield Weakness("policy-variable-wildcard", rules.name("job-environment"), message, hint, is_open=False)


def _lint_user(rules: Rules, user: int, account: Account | None) -> Iterator[Weakness]:
    """`user`: UID of the worker. `account`: the account that jobs run as."""
    name = rules.name("user")
    if account is None:
        if not user:
            message = "workers run as root, and refuse jobs for which no user is named"
            yield Weakness(
                "policy-no-user", name, message, 'set user = "NAME", the user that jobs run as', is_open=False
            )
    elif user and account.uid != user:
        message = f"only a worker that runs as root can run jobs as {account.name}; workers refuse these jobs"
        yield Weakness("policy-user-unreachable", name, message, "run the worker as root", is_open=False)
    elif not account.uid:
        message = "jobs run as root: they can change every program, and this policy"
        yield Weakness("policy-root", name, message, 'set user = "NAME", an unprivileged user', is_open=False)


def _lint_program(program: Program, user: int) -> Iterator[Weakness]:
    if "*" in program.pattern or "?" in program.pattern:
        way = _resolved(program.directory, user)
        if way is not None:
            yield from _lint_owner(program, *way, user)
        message = f"{program.path}: every file that is put there may run"
        yield Weakness("policy-wildcard", program.rule, message, "name the programs", is_open=False)
        return
    found = _resolved(program.path, user)
    if found is None:
        yield Weakness(
            "policy-missing", program.rule, f"{program.path} does not exist", "correct the path", is_open=False
        )
        return
    yield from _lint_owner(program, *found, user)
    names = {os.path.basename(program.path), os.path.basename(found[0])}
    if _lets_job_choose(program.args) and any(_RUNNERS.fullmatch(name) for name in names):
        message = f"{program.path} can run other programs or any code"
        yield Weakness("policy-interpreter", program.rule, message, "restrict its arguments: args = […]")
    for argument in program.args or ():
        # A script that is an argument of an interpreter is a program, too.
        if argument.startswith("/") and (script := _resolved(argument, user)) is not None and os.path.isfile(script[0]):
            yield from _lint_owner(program, *script, user)


def _lets_job_choose(args: tuple[str, ...] | None) -> bool:
    """Whether a job can choose the options or the first argument."""
    if args is None:
        return True
    return bool(args) and (args[-1] == "..." or args[0].startswith(("*", "?", "-*")))


def _resolved(path: str, user: int) -> tuple[str, str | None] | None:
    try:
        way = resolve_path(path, user=user)
        weak = way.weak or (find_weak_interpreter(way.real, user=user) if os.path.isfile(way.real) else None)
    except (OSError, ValueError):
        return None
    return way.real, weak


def _worker_owned_path(real: str, user: int) -> str | None:
    """The first path that belongs to the user of the worker, so that every job can change it. None for root."""
    if user == 0:
        return None
    return next((path for path in (real, *map(str, Path(real).parents)) if os.stat(path).st_uid == user), None)


def _lint_owner(program: Program, real: str, weak: str | None, user: int) -> Iterator[Weakness]:
    if weak:
        message = f"{weak} can be changed by others, so {program.path} is refused"
        yield Weakness("policy-writable", program.rule, message, f"chown root {weak}; chmod go-w {weak}")
    elif own := _worker_owned_path(real, user):
        message = f"{own} belongs to the user of the worker: a job could replace {program.path}"
        yield Weakness("policy-own-program", program.rule, message, f"chown root {own}", is_open=False)
