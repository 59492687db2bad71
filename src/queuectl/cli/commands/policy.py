"""queuectl policy: the rules for commands on this host."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import click

from queuectl.cli.app import App
from queuectl.cli.command import group, policy_option
from queuectl.cli.completion import complete_queues
from queuectl.cli.errors import DONE, REFUSED
from queuectl.cli.job_options import JobCommand, limit_options, read_fields
from queuectl.cli.render import Details, Lines, Result
from queuectl.config import job_environment_base, working_directory
from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs.resources import CEILINGS, LIMITS
from queuectl.jobs.spec import Defaults, NewJob, merge_fields, validate
from queuectl.operations.enqueue import parse_arguments
from queuectl.policy.evaluator import Decision, Evaluator, Request
from queuectl.policy.lint import lint_policy, lint_wildcards
from queuectl.policy.parser import LoadedPolicy, default_path, has_policy, read_policy
from queuectl.policy.rules import Refusal, Rules
from queuectl.text import WEBHOOK_QUEUE, escape_control
from queuectl.units import format_duration

policy = group(
    "policy",
    "Show and check the policy of this host, which restricts the commands that may run.",
    examples="""
        queuectl policy check rsync -a /srv/in/ /srv/out/
        queuectl policy show
    """,
)


@policy.subcommand("check", "Check whether a command may run, and by which rule.", cls=JobCommand)
@click.argument("arguments", nargs=-1, metavar="[COMMAND | JSON | ARG...]")
@click.option("-q", "--queue", metavar="NAME", shell_complete=complete_queues, help="Apply the rules of this queue.")
@click.option("--cwd", metavar="DIR", help="Working directory (default: the current one).")
@click.option("--env", multiple=True, metavar="K=V", help="Variable of the job.")
@click.option("--secret", "secrets", multiple=True, metavar="NAME[=ENTRY]", help="Secret of the job.")
@click.option("--timeout", metavar="TIME", help="Time limit of the job.")
@limit_options
@policy_option
def policy_check(app: App, arguments: tuple[str, ...], policy: str | None, **options: Any) -> Result:
    """Check whether the policy of this host allows a command, and show the rule. The command is not run.

    The result is that of a worker that you start now on this host. If the command is refused, the exit status is 1.

    Examples:
        # several arguments: a program without a shell
        queuectl policy check rsync -a /srv/in/ /srv/out/
        # one argument: a command for the shell
        queuectl policy check 'cat /etc/passwd | mail me'
        # the command of an alert
        queuectl policy check --queue queuectl.webhooks './page.sh'
        queuectl policy check --queue reports '{"argv": ["psql", "-f", "/srv/sql/day.sql"], "cwd": "/srv"}'
    """
    # The queue is checked later: that of webhooks is valid here.
    flags = read_fields({**options, "queue": None, "env_file": ()}, app)
    job = _job(app, arguments, flags if options["queue"] is None else {**flags, "queue": options["queue"]})
    path, found = _load(app, policy)
    if found is None:
        verdict: Decision | Refusal = Decision("no policy", "", (job.argv or ("",))[0], job.cwd, None, job.timeout_ms)
    else:
        environment = job_environment_base(app.environ)
        evaluator = Evaluator(found.policy, user=os.geteuid(), accounts=found.accounts, environment=environment)
        asked = (job.timeout_ms, job.limits, job.secrets)
        verdict = evaluator.evaluate(Request(job.queue, job.command, job.argv, job.cwd, job.env or {}, *asked))
    is_allowed = isinstance(verdict, Decision)
    weak = [] if found is None else lint_wildcards(found.policy.of(job.queue))
    warnings = [f"{one.rule}: {one.message}" for one in weak]
    for warning in warnings:
        app.warn(f"warning: {escape_control(warning)}")
    value = {**_decision_fields(verdict, path if found is not None else None), "warnings": warnings}
    return Lines([_line(verdict)], value, exit_code=DONE if is_allowed else REFUSED)


@policy.subcommand(
    "show",
    "Show the rules, and their weaknesses.",
    examples="queuectl policy show\nqueuectl policy show --policy /etc/queuectl/policy.toml",
)
@policy_option
def policy_show(app: App, policy: str | None) -> Result:
    """Show the rules of this host and of its queues, and warn about rules that can be bypassed."""
    path, found = _load(app, policy)
    if found is None:
        none: dict[str, Any] = {"policy": None, "general": None, "queues": {}, "secret_provider": None}
        none["weaknesses"] = []
        return Lines([f"there is no policy: {escape_control(path)} does not exist, so any command may run"], none)
    rules = found.policy
    weak = list(lint_policy(rules, user=os.geteuid(), accounts=found.accounts))
    value = {
        "policy": path,
        "general": _rules_fields(rules.general),
        "queues": {queue: _rules_fields(of_queue) for queue, of_queue in rules.queues.items()},
        "secret_provider": None if rules.provider is None else _rules_fields(rules.provider),
        "weaknesses": [{"code": one.code, "rule": one.rule, "message": one.message, "hint": one.hint} for one in weak],
    }

    def text() -> Iterator[str]:
        yield app.paint(escape_control(path), "bold")
        yield from _lines(rules.general)
        for queue, of_queue in rules.queues.items():
            yield app.paint(f"queue {escape_control(queue)}", "bold")
            yield from _lines(of_queue)
        if rules.provider is not None:
            yield app.paint("secret provider", "bold")
            yield from _lines(rules.provider)
        for one in weak:
            yield app.paint(f"! {escape_control(one.rule)}: {escape_control(one.message)}", "yellow")
            yield f"  → {escape_control(one.hint)}"

    return Details(value, text=text)


def _job(app: App, arguments: tuple[str, ...], flags: Mapping[str, object]) -> NewJob:
    if not arguments or not arguments[0]:
        raise UsageError("nothing to check", hint="for example: queuectl policy check rsync -a in/ out/")
    given = [fields for _, fields in parse_arguments(arguments)]
    if len(given) != 1:
        raise InvalidInput("JSON", "one job at a time", hint='for example, {"argv": ["rsync", "-a", "in/", "out/"]}')
    defaults = Defaults.of(app.settings, cwd=working_directory(), by_queue=app.queue_defaults)
    fields = merge_fields(given[0], flags)
    if fields.get("queue") != WEBHOOK_QUEUE:
        return validate(fields, defaults)
    # No job can be added to this queue, but its rules apply to alert commands.
    return validate({**fields, "queue": None}, defaults)._replace(queue=WEBHOOK_QUEUE)


def _load(app: App, given: str | None) -> tuple[str, LoadedPolicy | None]:
    """The path and the policy; None if there is none and none was given."""
    path = given or default_path(app.home)
    if given is None and not has_policy(app.home):
        return path, None
    return path, read_policy(path, user=os.geteuid())


def _decision_fields(verdict: Decision | Refusal, path: str | None) -> dict[str, Any]:
    if isinstance(verdict, Refusal):
        fields = {"allowed": False, "rule": verdict.rule, "problem": verdict.problem}
        return {**fields, "program": None, "user": None, "policy": path}
    user = None if verdict.account is None else verdict.account.name
    fields = {"allowed": True, "rule": verdict.rule, "problem": None}
    return {**fields, "program": verdict.program or None, "user": user, "policy": path}


def _line(verdict: Decision | Refusal) -> str:
    if isinstance(verdict, Refusal):
        return f"no: {escape_control(verdict.rule)}: {escape_control(verdict.problem)}"
    runs = f", runs {escape_control(verdict.program)}" if verdict.program else ""
    user = f", as {escape_control(verdict.account.name)}" if verdict.account is not None else ""
    return f"yes: {escape_control(verdict.rule)}{runs}{user}"


def _rules_fields(rules: Rules) -> dict[str, Any]:
    programs = [{"rule": one.rule, "program": one.path, "args": one.args} for one in rules.programs or ()]
    return {
        "shell": rules.shell,
        "programs": None if rules.programs is None else programs,
        "directories": rules.directories,
        "environment": rules.environment,
        "job_environment": rules.job_environment,
        "secrets": rules.secrets,
        "max_timeout": None if rules.max_timeout_ms is None else format_duration(rules.max_timeout_ms),
        "user": None if rules.user is None else str(rules.user),
        "umask": None if rules.umask is None else f"{rules.umask:03o}",
        "limits": rules.most,
    }


def _lines(rules: Rules) -> Iterator[str]:
    """The rules as a user would write them, and what omitted ones mean."""
    fields = _rules_fields(rules)
    yield f"  shell            {'yes' if rules.shell else 'no'}"
    for one in rules.programs or ():
        args = "any arguments" if one.args is None else " ".join(map(escape_control, one.args)) or "no arguments"
        yield f"  programs         {escape_control(one.path)}  {args}  ({escape_control(one.rule)})"
    if not rules.programs:
        yield f"  programs         {'any' if rules.programs is None else 'none'}"
    omitted = {
        "directories": "any",
        "environment": "all" if rules.user is None else "all; as another user LANG, LC_*, TZ",
        "job-environment": "any" if rules.programs is None else "none",
        "secrets": "none",
    }
    for name, otherwise in omitted.items():
        listed = fields[name.replace("-", "_")]
        yield f"  {name:<16} {otherwise if listed is None else ', '.join(map(escape_control, listed)) or 'none'}"
    for name in ("max-timeout", "user", "umask"):
        if (text := fields[name.replace("-", "_")]) is not None:
            yield f"  {name:<16} {escape_control(text)}"
    for key, name in CEILINGS.items():
        if name in rules.most:
            yield f"  {key:<16} {LIMITS[name].text(rules.most[name])}"
