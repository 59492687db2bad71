"""The options that describe jobs, and the arguments that are a command to run.

Three commands add jobs by these options: enqueue, run and clone; `cron add` stores them in a schedule, `edit` and
`policy check` have some of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Command, Decorator, attempts, combine_options, integer, number
from queuectl.cli.completion import complete_batches, complete_job_list, complete_queues, complete_secrets
from queuectl.cli.errors import from_click, meant_option
from queuectl.errors import FileUnreadable, InvalidInput, UsageError
from queuectl.jobs.spec import HOOK_NAMES, LIMIT_NAMES, check_field, readers
from queuectl.operations.enqueue import JobInput, looks_like_json, parse_arguments, single_job
from queuectl.text import escape_control

STDIN: Final = "-"
ONE_OF_THEM: Final = "use only one of them"
# Parameters that are fields of a job, by the same name.
FIELDS: Final = frozenset(readers()) - {"env", "after"}
# Field -> option, where the names differ.
OPTION_OF_FIELD: Final = {"tags": "--tag", "secrets": "--secret", "unique_key": "--unique"}
# Option -> state that the parents must reach.
PARENT_OPTIONS: Final = {"after": "completed", "after_any": "ended", "after_fail": "failed"}

# ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_LIMIT_OPTIONS: Final = (
    click.option("--memory", metavar="SIZE", help="Memory limit: 512MiB, 2GiB (default: none)."),
    click.option("--cpu-time", metavar="TIME", help="CPU time limit: 30s, 1h (default: none)."),
    click.option("--nice", type=integer, metavar="N", help="Nice value, -20 to 19 (default: that of the worker)."),
    click.option("--open-files", type=integer, metavar="N", help="Maximum number of open files (0: unlimited)."),
    click.option("--processes", type=integer, metavar="N", help="Maximum number of processes (0: unlimited)."),
    click.option("--file-size", metavar="SIZE", help="Maximum size of files the job writes (0: unlimited)."),
)
# A queue can have defaults for these.
_DEFAULT_OPTIONS: Final = (
    click.option("-p", "--priority", type=integer, metavar="N", help="Priority, higher runs first (default: 0)."),
    click.option("--max-attempts", type=attempts, metavar="N", help="Maximum number of attempts (default: 3)."),
    click.option(
        "--max-retries",
        "--retries",
        type=integer,
        metavar="N",
        help="Older name of --max-attempts: queuectl help retries.",
    ),
    click.option("--timeout", metavar="TIME", help="Time limit of a run (default: none; 0: unlimited)."),
    *_LIMIT_OPTIONS,
    click.option("--on-success", metavar="URL", help="POST to URL when the job completes (none: disabled)."),
    click.option("--on-failure", metavar="URL", help="POST to URL when a run fails (none: disabled)."),
    click.option("--on-dead", metavar="URL", help="POST to URL when the job is dead (none: disabled)."),
)
_EDITABLE_OPTIONS: Final = (
    click.option("--command", metavar="CMD", help="Command to run in the shell."),
    click.option("--delay", metavar="TIME", help="Delay before the first run: 90, 90s, 1h30m, 2d."),
    click.option("--run-at", metavar="WHEN", help="Time of the first run: 2026-11-15 20:30, local time."),
    *_DEFAULT_OPTIONS,
)


def _parent_option(name: str, help: str) -> Decorator:
    return click.option(name, multiple=True, metavar="ID[,ID]", shell_complete=complete_job_list, help=help)


_FIELD_OPTIONS: Final = (
    click.option("--id", metavar="ID", help="Job ID (default: generated)."),
    click.option("-q", "--queue", metavar="NAME", shell_complete=complete_queues, help="Queue (default: default)."),
    *_EDITABLE_OPTIONS,
    click.option("--backoff-base", type=number, metavar="X", help="Retry after X ** attempts seconds (default: 2)."),
    click.option("--cwd", metavar="DIR", help="Working directory (default: the current one)."),
    click.option("--env", multiple=True, metavar="K=V", help="Set a variable; K alone copies its current value."),
    click.option("--env-file", multiple=True, metavar="FILE", help="Set variables from a file (-: stdin)."),
    click.option(
        "--secret",
        "secrets",
        multiple=True,
        metavar="NAME[=ENTRY]",
        shell_complete=complete_secrets,
        help="Set a variable to a secret of the worker's host.",
    ),
    click.option("--tag", "tags", multiple=True, metavar="NAME", help="Tag, to filter by; repeatable."),
    click.option(
        "--batch",
        metavar="NAME",
        shell_complete=complete_batches,
        help="Name of the batch, for batch show and wait --batch.",
    ),
    click.option("--key", metavar="KEY", help="Concurrency key; set its limit with queue set --per-key."),
    _parent_option("--after", "Start after these jobs have completed."),
    _parent_option("--after-any", "Start after these jobs have finished in any state."),
    _parent_option("--after-fail", "Start only if these jobs are dead."),
    click.option("--unique", "unique_key", metavar="KEY", help="Unique key: only one unfinished job can have it."),
    click.option("--unique-for", metavar="TIME", help="Count jobs enqueued in the last TIME, even if finished."),
    click.option("--if-exists", metavar="[skip|error|replace]", help="Action if the key is in use (default: skip)."),
)
many_options: Final = combine_options(
    click.option("--for-each", metavar="FILE", help="Add one job per line, with placeholders {} {/} {.} {n}."),
    click.option("-0", "--null", "nul", is_flag=True, help="Split the items of --for-each at NUL, not at newlines."),
    click.option("--colsep", metavar="TEXT", help="Column separator of --for-each, for {1} {2}."),
    click.option("--on-complete", metavar="CMD", help="Command to run when all jobs of --batch have ended."),
    click.option("--array", metavar="RANGE", help="Add one job per index: 1-100, 1,3,7, 0-90:10, 1-9%4."),
)
# Heading of the help -> parameters. Of the commands that add jobs.
OPTION_GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Job": ("id", "command", "queue", "priority", "tags"),
    "Schedule": ("delay", "run_at", "tz", "overlap", "catch_up", "jitter", "until", "replace"),
    "Retries and timeout": ("max_attempts", "max_retries", "backoff_base", "timeout"),
    "Limits": (*LIMIT_NAMES, "key"),
    "Environment": ("cwd", "env", "env_file", "secrets"),
    "Dependencies": tuple(PARENT_OPTIONS),
    "Uniqueness": ("unique_key", "unique_for", "if_exists"),
    "Batch input": ("file", "form", "stream", "for_each", "nul", "colsep", "array", "batch", "on_complete"),
    "Webhooks": HOOK_NAMES,
}


limit_options: Final = combine_options(*_LIMIT_OPTIONS)
DEFAULT_FIELDS: Final = ("priority", "max_attempts", "max_retries", "timeout", *LIMIT_NAMES, *HOOK_NAMES)
default_options: Final = combine_options(*_DEFAULT_OPTIONS)
editable_options: Final = combine_options(*_EDITABLE_OPTIONS)  # for fields that a waiting job can change
field_options: Final = combine_options(*_FIELD_OPTIONS)
job_options: Final = combine_options(
    click.argument("arguments", nargs=-1, metavar="[COMMAND | JSON | ARG...]"), *_FIELD_OPTIONS
)


def option_name(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_flags(options: Mapping[str, Any], app: App) -> dict[str, object]:
    """The fields that the options set. Ids of parents are resolved last: everything else is checked before."""
    flags = read_fields(options, app)
    if parents := list(_parents(options)):
        reads = app.open_reads()
        flags["depends_on"] = [{"id": reads.resolve(ref), "when": when} for ref, when in parents]
        check_field("depends_on", flags["depends_on"], spelled="--after")
    return flags


def _parents(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, when in PARENT_OPTIONS.items():
        for ref in (ref for text in options[name] for ref in text.split(",")):
            if not ref:
                raise InvalidInput(
                    option_name(name), "an id is missing", hint=f"for example, {option_name(name)} build,test"
                )
            yield ref, when


def refuse_parents(options: Mapping[str, Any], problem: str, *, hint: str) -> None:
    """For jobs that are created later, when a parent may have been removed."""
    for name in PARENT_OPTIONS:
        if options[name]:
            raise InvalidInput(option_name(name), problem, hint=hint)


def read_fields(options: Mapping[str, Any], app: App) -> dict[str, object]:
    """As `read_flags`, without the parents."""
    flags = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if name in FIELDS and value not in (None, ())
    }
    if options["cwd"] and not os.path.isdir(options["cwd"]):
        app.say(f"warning: {escape_control(options['cwd'])} is not a directory on this host")
    if options["env"] or options["env_file"]:
        files = _read_env_files(options["env_file"], app, options)
        flags["env"] = {**files, **read_variables(options["env"], app.environ)}
    for name, value in flags.items():
        # Checked here as well as with the job, so that errors name the option.
        check_field(name, value, spelled=OPTION_OF_FIELD.get(name, option_name(name)))
    return flags


def read_variables(texts: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that --env sets."""
    return dict(_variable(text, environ) for text in texts)


def _variable(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name:
        raise InvalidInput(
            "--env",
            f"names no variable: {text!r}",
            hint="for example, --env LANG=C, or --env LANG for its current value",
        )
    if equals:
        return name, value
    if name not in environ:
        raise InvalidInput("--env", f"{name} is not set here", hint=f"give it a value: --env {name}=VALUE")
    return name, environ[name]


def _read_env_files(paths: Sequence[str], app: App, options: Mapping[str, Any]) -> dict[str, str]:
    """The variables of all files; later files override earlier ones. `options`: the others that may read stdin."""
    if "" in paths:
        raise InvalidInput("--env-file", "the name is empty", hint="give the name of a file, or - for stdin")
    readers = ["--env-file"] * paths.count(STDIN)
    readers += [option_name(name) for name in ("file", "for_each") if options.get(name) == STDIN]
    if STDIN in paths and len(readers) > 1:
        raise UsageError(f"{readers[0]} and {readers[-1]} both read stdin", hint="give one of them a file")
    from queuectl.operations import job_input  # here, as below: a plain `enqueue` does without this module

    variables: dict[str, str] = {}
    for path in paths:
        if path != STDIN:
            variables |= job_input.read_env_file(path)
            continue
        with reading(STDIN):
            data = app.stdin_bytes.read(job_input.MAX_ENV_FILE_BYTES + 1)
        variables |= job_input.parse_env_file(data, subject="stdin")
    return variables


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise errors of the system about this file as FileUnreadable."""
    try:
        yield
    except OSError as error:
        if error.filename not in (None, path):
            raise
        raise FileUnreadable("stdin" if path == STDIN else path, error.strerror or str(error), or_stdin=True) from error


def read_on_complete(options: Mapping[str, Any], *, stream: bool) -> str | None:
    """The command that runs after all jobs of the batch have ended."""
    command: str | None = options["on_complete"]
    if command is None:
        return None
    if options["batch"] is None:
        raise UsageError("--on-complete requires --batch", hint="give the batch a name: --batch NAME")
    if stream:
        hint = f"the batch could have ended before the next line; {ONE_OF_THEM}"
        raise UsageError("--on-complete and --stream at once", hint=hint)
    check_field("command", command, spelled="--on-complete")
    return command


def command_input(arguments: tuple[str, ...], flags: Mapping[str, object]) -> JobInput:
    """The job, or the jobs of a JSON array, that the arguments describe."""
    if not arguments:
        return single_job({})
    if "command" in flags and not looks_like_json(arguments[0]):
        raise UsageError("two commands: as arguments and by --command", hint=ONE_OF_THEM)
    if not arguments[0] or not "".join(arguments).strip():
        raise UsageError("the command is blank", hint="for example: 'echo hello'")
    return parse_arguments(arguments)


def read_many(
    options: Mapping[str, Any],
    arguments: tuple[str, ...],
    flags: dict[str, object],
    *,
    beside: Mapping[str, object],
    read: Callable[[str], bytes],
) -> JobInput | None:
    """The jobs of --for-each or --array; None without both. `beside`: options that exclude them, with their values.

    With --for-each, --command is removed from `flags`: it is a template.
    """
    path, array = options["for_each"], options["array"]
    for name, spelled in (("nul", "-0"), ("colsep", "--colsep")):
        if options[name] not in (None, False) and path is None:
            raise UsageError(f"{spelled} requires --for-each", hint="add --for-each FILE, or - for stdin")
    if path is None and array is None:
        return None
    if path is not None and array is not None:
        raise UsageError("--for-each and --array at once", hint=ONE_OF_THEM)
    if path == "":
        raise InvalidInput("--for-each", "the name is empty", hint="give the name of a file, or - for stdin")
    if other := next((name for name, value in beside.items() if value), None):
        raise UsageError(f"{other} and {'--array' if path is None else '--for-each'} at once", hint=ONE_OF_THEM)
    from queuectl.operations.job_input import make_array, parse_for_each

    if path is None:
        given = command_input(arguments, flags)
        if given.is_batch:
            raise UsageError("--array takes one job, got several", hint="give one object, or a command")
        ((_, fields),) = given
        return make_array(fields, str(array), flags=flags)
    if "command" in flags:
        if arguments:
            raise UsageError("two commands: as arguments and by --command", hint=ONE_OF_THEM)
        arguments = (str(flags.pop("command")),)
    if not "".join(arguments).strip():
        raise UsageError("nothing to run for each line", hint="for example: --for-each FILE 'gzip {}'")
    return parse_for_each(read(path), arguments, nul=options["nul"], colsep=options["colsep"])


class ChangeCommand(Command):
    """A command whose options have no defaults: fields that are not given keep their values."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        for param in self.own_params:
            if isinstance(param, click.Option) and param.help:
                param.help = re.sub(r"default: [^;)]*(; )?", "", param.help).replace(" ()", "")


# ── options before and after the command ────────────────────────────────────────────────────────────────────────────


class JobCommand(Command):
    """A command whose last arguments are a command to run.

    A single argument may be followed by options. If there are several, every option stands before the first: an option
    after it belongs to the command.
    """

    leading_arguments = 0  # before the command; options may stand between them

    def arrange(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The same arguments with the command behind a `--`, so that nothing in it is parsed as an option."""
        rest = super().arrange(ctx, args)
        parse = self._option_parser(ctx)
        options: list[str] = []
        leading: list[str] = []
        values: dict[str, Any] = {}
        while True:
            found, others, _ = parse(rest, interspersed=False)
            values |= found
            given, rest = rest[: len(rest) - len(others)], others
            if given[-1:] == ["--"]:
                return [*options, *given, *leading, *rest]
            options += given
            if len(leading) == self.leading_arguments or not rest:
                break
            leading, rest = [*leading, rest[0]], rest[1:]
        if not rest:
            return [*options, "--", *leading]
        first, tail = rest[0], rest[1:]
        # With --for-each, braces are placeholders and never JSON.
        if looks_like_json(first) and "for_each" not in values:
            count = _json_arguments(rest)
            first, tail = " ".join(rest[:count]), rest[count:]
        if not any(map(_is_option, tail)):
            return [*options, "--", *leading, first, *tail]
        cause = None
        try:
            _, others, _ = parse(tail, interspersed=True)
        except click.UsageError as error:
            cause = error
            cause.ctx = cause.ctx or ctx  # click's parser sets none
        else:
            if not others and "--" not in tail:
                return [*options, *tail, "--", *leading, first]
        raise _misplaced(ctx, [*options, *leading, "--", *rest], cause)

    def _option_parser(self, ctx: click.Context) -> Callable[..., Any]:
        """A function that separates the options of this command from other arguments: their values, and the others."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        parser = click.Command(None, params=[*options], add_help_option=False).make_parser(ctx)

        def parse(args: list[str], *, interspersed: bool) -> Any:
            parser.allow_interspersed_args = interspersed
            return parser.parse_args([*args])

        return parse


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def _json_arguments(arguments: Sequence[str]) -> int:
    """How many of the first arguments are one JSON text that the shell has split; 1 if that cannot be decided."""
    if len(arguments) == 1:
        return 1
    import json

    try:
        _, end = json.JSONDecoder().raw_decode(" ".join(arguments).lstrip())
    except (ValueError, RecursionError):
        return 1 if any(map(_is_option, arguments)) else len(arguments)
    end += len(arguments[0]) - len(arguments[0].lstrip())
    for count in range(1, len(arguments) + 1):
        if len(" ".join(arguments[:count]).rstrip()) >= end:
            return count
    return len(arguments)


def _misplaced(ctx: click.Context, ordered: Sequence[str], cause: click.UsageError | None) -> UsageError:
    """`ordered`: the arguments as they should be written."""
    from shlex import join

    hint = f"put -- before the command: {ctx.command_path} {join(ordered)}"
    if cause is None:
        return UsageError("options must stand before a command of several arguments", hint=hint)
    if isinstance(cause, click.NoSuchOption):
        meant = meant_option(cause)
        return UsageError(f"no such option {cause.option_name!r}", hint=f"{meant} Otherwise {hint}" if meant else hint)
    failure = from_click(cause)
    return UsageError(failure.message, hint=f"{failure.hint}; or {hint}")
