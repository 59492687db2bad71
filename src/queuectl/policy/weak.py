"""Rules that can be walked around."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from queuectl.job.loaders import is_loader, is_wildcard
from queuectl.job.policy import Policy, Program, Rules
from queuectl.job.user import Account
from queuectl.policy.accounts import Accounts
from queuectl.policy.paths import walk, weak_interpreter

# Programs that run others, or any code, by words that they are given.
_RUNNERS: Final = re.compile(
    r"(ba|da|a|k|mk|z|c|tc|ya|fi|rba)?sh|(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|guile|ghci|R|Rscript|julia|"
    r"erl|elixir|java|jshell|scala|groovy|dotnet|go|cargo|npm|npx|yarn|pip)[0-9.]*|[gmn]?awk|busybox|toybox|env|find|fd|xargs|parallel|"
    r"nice|nohup|timeout|setsid|stdbuf|ionice|chrt|taskset|flock|script|watch|time|strace|ltrace|gdb|make|ninja|cmake|sed|ed|ex|vi|vim|"
    r"nvim|emacs|nano|less|more|man|tar|zip|cpio|rsync|scp|ssh|sftp|git|hg|svn|sudo|su|doas|runuser|chroot|unshare|nsenter|systemd-run|"
    r"docker|podman|nerdctl|kubectl|at|batch|crontab|sqlite3|psql|mysql|curl|wget|openssl|expect|socat|nc|ncat|ld\.so|ld-linux.*"
)


class Weakness(NamedTuple):
    """`is_open`: whoever wants can use it; else it takes a program that runs here already."""

    code: str
    rule: str
    message: str
    hint: str
    is_open: bool = True


def weaknesses(policy: Policy, *, user: int, accounts: Accounts) -> Iterator[Weakness]:
    """Each once, though a queue takes over what holds for all. `user`: whom the worker runs as."""
    seen: set[Weakness] = set()
    for rules in policy.all_rules:
        account = None if rules.user is None else accounts[rules.user]
        for one in (*_of_user(rules, user, account), *_of_rules(rules, user, account)):
            if one not in seen:
                seen.add(one)
                yield one


def _of_rules(rules: Rules, user: int, account: Account | None) -> Iterator[Weakness]:
    if rules.shell and rules.programs is not None:
        message = "a shell runs any program, whatever the list of programs says"
        yield Weakness("policy-shell", rules.name("shell"), message, "shell = false, and jobs of several words")
    if not rules.shell and rules.programs is None:
        message = "any program may run, and many of them run others as a shell does"
        yield Weakness("policy-any-program", rules.name("shell"), message, "list the programs that may run")
    for program in rules.programs or ():
        yield from _of_program(program, user)
    for pattern in rules.secrets:
        if not pattern.strip("*?") and (rules.shell or rules.programs is None):
            message = f"with {pattern} a job may have every secret of this host, and it may run anything that tells it"
            yield Weakness(
                "policy-any-secret", rules.name("secrets"), message, "name those that it needs", is_open=False
            )
    for variable in rules.job_environment or ():
        if not is_wildcard(variable) and is_loader(variable):
            message = f"with {variable} a job makes programs load or find other code"
            yield Weakness("policy-loader", rules.name("job-environment"), message, f"leave {variable} away")
    yield from wildcards(rules)
    is_switched = not user and account is not None and account.uid != user
    if rules.environment is None and rules.programs is not None and not is_switched:
        message = "jobs see all that the worker was started with, passwords included"
        hint = 'list what they need: environment = ["PATH", "HOME", "LANG", "LC_*"]'
        yield Weakness("policy-environment", "environment", message, hint, is_open=False)


def wildcards(rules: Rules) -> Iterator[Weakness]:
    """Each wildcard for variables that a job brings along."""
    for pattern in filter(is_wildcard, rules.job_environment or ()):
        message = f"{pattern} covers every variable of that form, except those that are known to load code (LD_PRELOAD, MAKEFLAGS …)"
        hint = "name the variables that jobs need; queuectl help loader-variables lists those that no wildcard covers"
        yield Weakness("policy-variable-wildcard", rules.name("job-environment"), message, hint, is_open=False)


def _of_user(rules: Rules, user: int, account: Account | None) -> Iterator[Weakness]:
    """`user`: whom the worker runs as, `account`: as whom the policy wants jobs to run."""
    name = rules.name("user")
    if account is None:
        if not user:
            message = "workers of this home are root, and refuse jobs for which no user is named"
            yield Weakness("policy-no-user", name, message, 'user = "NAME": as whom jobs run', is_open=False)
    elif user and account.uid != user:
        message = f"only a worker that is root runs jobs as {account.name}; workers of this home refuse them"
        yield Weakness("policy-user-unreachable", name, message, "run the worker as root", is_open=False)
    elif not account.uid:
        message = "jobs run as root: they may change every program, and this policy"
        yield Weakness("policy-root", name, message, 'user = "NAME": one who owns none of it', is_open=False)


def _of_program(program: Program, user: int) -> Iterator[Weakness]:
    if "*" in program.pattern or "?" in program.pattern:
        way = _walked(program.directory, user)
        if way is not None and way[1]:
            yield _changeable(program, way[1])
        elif way is not None and (own := _writable(way[0], user)):
            yield _own(program, own)
        message = f"{program.path}: whatever comes to lie there may run"
        yield Weakness("policy-wildcard", program.rule, message, "name the programs", is_open=False)
        return
    found = _walked(program.path, user)
    if found is None:
        yield Weakness(
            "policy-missing", program.rule, f"{program.path} is not there", "correct the path", is_open=False
        )
        return
    real, weak = found
    if weak:
        yield _changeable(program, weak)
    elif own := _writable(real, user):
        yield _own(program, own)
    names = {os.path.basename(program.path), os.path.basename(real)}
    if _is_free(program.args) and any(_RUNNERS.fullmatch(name) for name in names):
        message = f"{program.path} runs other programs, or any code, if it is told to"
        yield Weakness("policy-interpreter", program.rule, message, "say which words it may be given: args = […]")
    for word in program.args or ():
        # A script that an interpreter is given is a program, too.
        if word.startswith("/") and (script := _walked(word, user)) is not None and os.path.isfile(script[0]):
            if script[1]:
                yield _changeable(program, script[1])
            elif own := _writable(script[0], user):
                yield _own(program, own)


def _is_free(args: tuple[str, ...] | None) -> bool:
    """Whether a job chooses the options, or the first word."""
    if args is None:
        return True
    return bool(args) and (args[-1] == "..." or args[0].startswith(("*", "?", "-*")))


def _walked(path: str, user: int) -> tuple[str, str | None] | None:
    try:
        way = walk(path, user=user)
        weak = way.weak or (weak_interpreter(way.real, user=user) if os.path.isfile(way.real) else None)
    except (OSError, ValueError):
        return None
    return way.real, weak


def _writable(real: str, user: int) -> str | None:
    """What the user of the worker, and so every job, can change. Root can change everything."""
    if user == 0:
        return None
    place = real
    while True:
        if os.stat(place).st_uid == user:
            return place
        if place == "/":
            return None
        place = os.path.dirname(place)


def _changeable(program: Program, weak: str) -> Weakness:
    message = f"{weak} can be changed by others, so {program.path} is refused"
    return Weakness("policy-writable", program.rule, message, f"chown root {weak}; chmod go-w {weak}")


def _own(program: Program, own: str) -> Weakness:
    message = f"{own} belongs to the user of the worker: a job that runs could replace {program.path}"
    return Weakness("policy-own-program", program.rule, message, f"chown root {own}", is_open=False)
