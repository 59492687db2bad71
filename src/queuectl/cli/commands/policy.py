"""queuectl policy: what may run on this host."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_queues
from queuectl.cli.exits import DONE, REFUSED
from queuectl.cli.jobwords import JobCommand
from queuectl.cli.limitwords import limit_options
from queuectl.cli.printable import printable
from queuectl.cli.result import Lines, Result, Sheet
from queuectl.cli.variables import read_variables
from queuectl.config import file_path, job_environment_base, working_directory
from queuectl.errors import InvalidInput, UsageError
from queuectl.job.duration import format_duration
from queuectl.job.names import WEBHOOKS
from queuectl.job.newjob import NewJob
from queuectl.job.policy import Refusal, Rules
from queuectl.job.resources import CEILINGS, LIMITS
from queuectl.job.spec import Defaults, merge, validate
from queuectl.policy.file import Loaded, place_of, read_policy
from queuectl.policy.guard import Guard, Permit, Wish
from queuectl.policy.weak import weaknesses, wildcards
from queuectl.queue.intake import read_words

_HERE: Final = "queuectl.cli.commands.policy"

policy = group(
    "policy",
    "What may run on this host, and by which rule.",
    {
        "check": Entry(_HERE, "policy_check", "Whether a command may run here, and by which rule."),
        "show": Entry(_HERE, "policy_show", "The rules, and where they can be walked around."),
    },
    examples="""
        queuectl policy check rsync -a /srv/in/ /srv/out/
        queuectl policy show
    """,
)

_FILE: Final = click.option("--policy", "file", metavar="FILE", help="This policy, not that of the home.")


@command(
    "check",
    cls=JobCommand,
    examples="""
        # several words: a program with its arguments
        queuectl policy check rsync -a /srv/in/ /srv/out/
        # one word: a command for the shell
        queuectl policy check 'cat /etc/passwd | mail me'
        # the command of an alert
        queuectl policy check --queue queuectl.webhooks './page.sh'
        queuectl policy check --queue reports '{"argv": ["psql", "-f", "/srv/sql/day.sql"], "cwd": "/srv"}'
    """,
)
@click.argument("words", nargs=-1, metavar="[COMMAND | JSON | WORD...]")
@click.option("-q", "--queue", metavar="NAME", shell_complete=complete_queues, help="By the rules of this queue.")
@click.option("--cwd", metavar="DIR", help="Where it would run; default: here.")
@click.option("--env", multiple=True, metavar="K=V", help="A variable that the job brings along.")
@click.option("--secret", multiple=True, metavar="NAME[=ENTRY]", help="A secret that the job asks for.")
@click.option("--timeout", metavar="TIME", help="Its time limit.")
@limit_options
@_FILE
def policy_check(
    app: App,
    words: tuple[str, ...],
    file: str | None,
    env: tuple[str, ...],
    secret: tuple[str, ...],
    **options: Any,
) -> Result:
    """Whether a command may run on this host, and by which rule. Exit 1 if not. Nothing runs.

    Decided as a worker decides that was started here and now, by this user: on the program that would really be executed.
    """
    flags = {name: value for name, value in options.items() if value is not None}
    if env:
        flags["env"] = read_variables(env, app.environ)
    if secret:
        flags["secrets"] = list(secret)
    job = _job(app, words, flags)
    path, found = _load(app, file)
    if found is None:
        verdict: Permit | Refusal = Permit("no policy", "", (job.argv or ("",))[0], job.cwd, None, job.timeout_ms)
    else:
        environment = job_environment_base(app.environ)
        guard = Guard(found.policy, user=os.geteuid(), accounts=found.accounts, environment=environment)
        asked = (job.timeout_ms, job.limits, job.secrets)
        verdict = guard.judge(Wish(job.queue, job.command, job.argv, job.cwd, job.env or {}, *asked))
    is_allowed = isinstance(verdict, Permit)
    warnings = [] if found is None else [f"{one.rule}: {one.message}" for one in wildcards(found.policy.of(job.queue))]
    for warning in warnings:
        app.warn(f"warning: {printable(warning)}")
    value = {**_told(verdict, path if found is not None else None), "warnings": warnings}
    return Lines([_line(verdict)], value, exit_code=DONE if is_allowed else REFUSED)


@command("show", examples="queuectl policy show\nqueuectl policy show --policy /etc/queuectl/policy.toml")
@_FILE
def policy_show(app: App, file: str | None) -> Result:
    """The rules of this host, of each queue that has its own, and which of them can be walked around."""
    path, found = _load(app, file)
    if found is None:
        none: dict[str, Any] = {
            "policy": None,
            "general": None,
            "queues": {},
            "secret_provider": None,
            "weaknesses": [],
        }
        return Lines([f"there is no policy: {printable(path)} is not there, and whatever is enqueued may run"], none)
    policy = found.policy
    weak = list(weaknesses(policy, user=os.geteuid(), accounts=found.accounts))
    value = {
        "policy": path,
        "general": _shown(policy.general),
        "queues": {queue: _shown(rules) for queue, rules in policy.queues.items()},
        "secret_provider": None if policy.provider is None else _shown(policy.provider),
        "weaknesses": [{"code": one.code, "rule": one.rule, "message": one.message, "hint": one.hint} for one in weak],
    }

    def people() -> Iterator[str]:
        yield app.paint(printable(path), "bold")
        yield from _lines(policy.general)
        for queue, rules in policy.queues.items():
            yield app.paint(f"queue {printable(queue)}", "bold")
            yield from _lines(rules)
        if policy.provider is not None:
            yield app.paint("secret provider", "bold")
            yield from _lines(policy.provider)
        for one in weak:
            yield app.paint(f"! {printable(one.rule)}: {printable(one.message)}", "yellow")
            yield f"  → {printable(one.hint)}"

    return Sheet(value, people=people)


def _job(app: App, words: tuple[str, ...], flags: Mapping[str, object]) -> NewJob:
    if not words or not words[0]:
        raise UsageError("nothing to check", hint="say what would run: queuectl policy check rsync -a in/ out/")
    given = read_words(words).items
    if len(given) != 1:
        raise InvalidInput("JSON", "one job at a time", hint='like {"argv": ["rsync", "-a", "in/", "out/"]}')
    defaults = Defaults.of(app.settings, cwd=working_directory(), by_queue=app.queue_defaults)
    fields = merge(given[0], flags)
    if fields.get("queue") != WEBHOOKS:
        return validate(fields, defaults)
    # No job can be added to this queue, but its rules hold for alert commands.
    return validate({**fields, "queue": None}, defaults)._replace(queue=WEBHOOKS)


def _load(app: App, file: str | None) -> tuple[str, Loaded | None]:
    """None: there is none, and none was named."""
    path = place_of(app.home) if file is None else file_path(file, spelled="--policy")
    if file is None and not os.path.lexists(path):
        return path, None
    return path, read_policy(path, user=os.geteuid())


def _told(verdict: Permit | Refusal, path: str | None) -> dict[str, Any]:
    if isinstance(verdict, Refusal):
        said = {"allowed": False, "rule": verdict.rule, "problem": verdict.problem}
        return {**said, "program": None, "user": None, "policy": path}
    user = None if verdict.account is None else verdict.account.name
    said = {"allowed": True, "rule": verdict.rule, "problem": None}
    return {**said, "program": verdict.program or None, "user": user, "policy": path}


def _line(verdict: Permit | Refusal) -> str:
    if isinstance(verdict, Refusal):
        return f"no: {printable(verdict.rule)}: {printable(verdict.problem)}"
    runs = f", runs {printable(verdict.program)}" if verdict.program else ""
    user = f", as {printable(verdict.account.name)}" if verdict.account is not None else ""
    return f"yes: {printable(verdict.rule)}{runs}{user}"


def _shown(rules: Rules) -> dict[str, Any]:
    programs = None
    if rules.programs is not None:
        programs = [
            {"rule": one.rule, "program": one.path, "args": None if one.args is None else list(one.args)}
            for one in rules.programs
        ]
    return {
        "shell": rules.shell,
        "programs": programs,
        "directories": None if rules.directories is None else list(rules.directories),
        "environment": None if rules.environment is None else list(rules.environment),
        "job_environment": None if rules.job_environment is None else list(rules.job_environment),
        "secrets": list(rules.secrets),
        "max_timeout": None if rules.max_timeout_ms is None else format_duration(rules.max_timeout_ms),
        "user": None if rules.user is None else str(rules.user),
        "umask": None if rules.umask is None else f"{rules.umask:03o}",
        "limits": dict(rules.most),
    }


def _lines(rules: Rules) -> Iterator[str]:
    yield f"  shell            {'yes' if rules.shell else 'no'}"
    if rules.programs is None:
        yield "  programs         any"
    for one in rules.programs or ():
        args = "any words" if one.args is None else " ".join(map(printable, one.args)) or "no words"
        yield f"  programs         {printable(one.path)}  {args}  ({printable(one.rule)})"
    if rules.programs == ():
        yield "  programs         none"
    bare = "none" if rules.programs is not None else "any"
    for name, listed, otherwise in (
        ("directories", rules.directories, "any"),
        ("environment", rules.environment, "all" if rules.user is None else "all; as another user LANG, LC_*, TZ"),
        ("job-environment", rules.job_environment, bare),
        ("secrets", rules.secrets, "none"),
    ):
        yield f"  {name:<16} {otherwise if listed is None else ', '.join(map(printable, listed)) or 'none'}"
    if rules.max_timeout_ms is not None:
        yield f"  max-timeout      {format_duration(rules.max_timeout_ms)}"
    if rules.user is not None:
        yield f"  user             {printable(str(rules.user))}"
    if rules.umask is not None:
        yield f"  umask            {rules.umask:03o}"
    for key, name in CEILINGS.items():
        if name in rules.most:
            yield f"  {key:<16} {LIMITS[name].text(rules.most[name])}"
