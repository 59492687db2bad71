"""The words that describe jobs: the options of `enqueue` and `run`, and where options end and a command begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from queuectl.cli.app import App
from queuectl.cli.command import Command
from queuectl.cli.complete import complete_batches, complete_job_list, complete_queues, complete_secrets
from queuectl.cli.failure import from_click
from queuectl.cli.limitwords import LIMIT_OPTIONS, LIMITS
from queuectl.cli.numbers import integer, number
from queuectl.cli.variables import of_files, read_variables
from queuectl.config import load_settings, working_directory
from queuectl.errors import InvalidInput, UsageError
from queuectl.job.spec import Defaults, check_field
from queuectl.queue.enqueue import Place
from queuectl.queue.intake import looks_like_json

Function = TypeVar("Function", bound=Callable[..., Any])

# Option -> field of a job. The rest of the options say where jobs come from, not what they are.
FIELDS: Final = (
    "id",
    "command",
    "queue",
    "priority",
    "delay",
    "run_at",
    "max_retries",
    "max_attempts",
    "backoff_base",
    "timeout",
    *LIMITS,
    "cwd",
    "unique_for",
    "if_exists",
    "batch",
    "key",
    "on_success",
    "on_failure",
    "on_dead",
)
# Where the option is not called as the field.
SPELLED: Final = {"tags": "--tag", "secrets": "--secret", "unique_key": "--unique"}
# Option -> how the jobs that it names have to end.
AFTER: Final = {"after": "completed", "after_any": "ended", "after_fail": "failed"}


def _after(name: str, help: str) -> Callable[[Function], Function]:
    return click.option(name, multiple=True, metavar="ID[,ID]", shell_complete=complete_job_list, help=help)


_OPTIONS: Final = (
    click.option("--id", metavar="ID", help="Its id; made up if left away."),
    click.option("--command", metavar="CMD", help="What the shell shall run, instead of a word."),
    click.option(
        "-q",
        "--queue",
        metavar="NAME",
        shell_complete=complete_queues,
        help="The queue it goes to; the one named default if none is.",
    ),
    click.option("-p", "--priority", type=integer, metavar="N", help="Higher goes first; -1000000 to 1000000."),
    click.option("--delay", metavar="TIME", help="Not before this time has passed: 90, 90s, 1h30m, 2d."),
    click.option("--run-at", metavar="WHEN", help="Not before this moment: ISO 8601, local without a zone."),
    click.option("--max-retries", "--retries", type=integer, metavar="N", help="Failed runs after which it is dead."),
    click.option("--max-attempts", type=integer, metavar="N", help="The same, whatever first-attempt-is-free says."),
    click.option("--backoff-base", type=number, metavar="X", help="A retry waits X ** attempts seconds."),
    click.option("--timeout", metavar="TIME", help="End a run that takes longer; 0: never."),
    *LIMIT_OPTIONS,
    click.option("--cwd", metavar="DIR", help="Where it runs; default: here."),
    click.option("--env", multiple=True, metavar="K=V", help="Set a variable; K alone takes its value from here."),
    click.option(
        "--env-file", multiple=True, metavar="FILE", help="Set those of a file of NAME=value, - for stdin; --env wins."
    ),
    click.option(
        "--secret",
        multiple=True,
        metavar="NAME[=ENTRY]",
        shell_complete=complete_secrets,
        help="A variable whose value its worker finds out, and nobody else: see queuectl secret.",
    ),
    click.option("--tag", multiple=True, metavar="NAME", help="A label to find it by; may be repeated."),
    click.option(
        "--batch",
        metavar="NAME",
        shell_complete=complete_batches,
        help="The batch it belongs to, for batch show and wait --batch.",
    ),
    click.option("--key", metavar="KEY", help="Whom it is for; its queue may limit how many of a key run (--per-key)."),
    click.option("--on-success", metavar="URL", help="Whom to call when it has completed; none: nobody."),
    click.option("--on-failure", metavar="URL", help="Whom to call each time a run of it fails."),
    click.option("--on-dead", metavar="URL", help="Whom to call when it has failed for good."),
    _after("--after", "Not before these jobs have completed."),
    _after("--after-any", "Not before they have ended, however."),
    _after("--after-fail", "Only if they fail for good."),
    click.option("--unique", metavar="KEY", help="Not twice: one job with this key waits or runs at a time."),
    click.option(
        "--unique-for", metavar="TIME", help="Nor for so long after the enqueue of the one there, however it ended."
    ),
    click.option(
        "--if-exists", metavar="WHAT", help="With a key that is taken: skip (print the id there), error or replace."
    ),
)


def field_options(function: Function) -> Function:
    """The options of a job."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def job_options(function: Function) -> Function:
    """The options of a job, and its words."""
    function = field_options(function)
    return click.argument("words", nargs=-1, metavar="[COMMAND | JSON | WORD...]")(function)


def read_flags(options: Mapping[str, Any], app: App) -> dict[str, object]:
    """The fields that the options give. Jobs to wait for are looked up, after all else is known to be right."""
    flags = read_fields(options, app)
    if parents := list(_parents(options)):
        reads = app.open_reads()
        flags["depends_on"] = [{"id": reads.resolve(ref), "when": when} for ref, when in parents]
        check_field("depends_on", flags["depends_on"], spelled="--after")
    return flags


def _parents(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, when in AFTER.items():
        for ref in (ref for text in options[name] for ref in text.split(",")):
            if not ref:
                spelled = f"--{name.replace('_', '-')}"
                raise InvalidInput(spelled, "an id is missing", hint=f"like {spelled} build,test")
            yield ref, when


def refuse_parents(options: Mapping[str, Any], problem: str, *, hint: str) -> None:
    """For jobs that are made later, when what is named now may long be gone."""
    for name in AFTER:
        if options[name]:
            raise InvalidInput(f"--{name.replace('_', '-')}", problem, hint=hint)


def read_fields(options: Mapping[str, Any], app: App) -> dict[str, object]:
    """As `read_flags`, without the jobs to wait for."""
    flags = {name: options[name] for name in FIELDS if options[name] is not None}
    if options["env"] or options["env_file"]:
        flags["env"] = {**of_files(options, app), **read_variables(options["env"], app.environ)}
    if options["secret"]:
        flags["secrets"] = list(options["secret"])
    if options["tag"]:
        flags["tags"] = list(options["tag"])
    if options["unique"] is not None:
        flags["unique_key"] = options["unique"]
    for name, value in flags.items():
        # Here, and not only with the job: what is wrong with an option is said in terms of the option.
        check_field(name, value, spelled=SPELLED.get(name, f"--{name.replace('_', '-')}"))
    return flags


def place_of(app: App) -> Place:
    """Where the jobs of this invocation go."""
    cwd = working_directory()
    return Place(
        app.open_inbox,
        stored_defaults=lambda: Defaults.of(app.settings, cwd=cwd, by_queue=app.queue_defaults),
        bare_defaults=lambda: Defaults.of(load_settings({}, app.environ), cwd=cwd),
    )


class JobCommand(Command):
    """Options may follow one word. With two or more, every option stands before the first: what follows is the command's."""

    words_before = 0  # of other arguments; options may stand between them

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if ctx.resilient_parsing else self._words_last(ctx, args))

    def _words_last(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The same words with the command's behind a `--`, so that nothing in it is taken for an option."""
        if len(args) == 1 and not _is_option(args[0]):
            return ["--", *args]  # the usual case, without parsing it twice
        before, args = self._first_words(ctx, args)
        options, words = self._part(ctx, args, before)
        return [*options, "--", *before, *words] if before or words else options

    def _first_words(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str]]:
        """As many words as come before the command's, and the rest."""
        before: list[str] = []
        while len(before) < self.words_before and (words := self._split(ctx, args, interspersed=False)):
            options = args[: len(args) - len(words)]
            # Behind a `--` there are words only.
            count = self.words_before - len(before) if options[-1:] == ["--"] else 1
            before += words[:count]
            args = [*options, *words[count:]]
        return before, args

    def _part(self, ctx: click.Context, args: list[str], before: Sequence[str]) -> tuple[list[str], list[str]]:
        """The options, and the words of the command."""
        words = self._split(ctx, args, interspersed=False)
        options = args[: len(args) - len(words)]
        if options[-1:] == ["--"]:
            return options[:-1], words
        if not words:
            return options, []
        first, tail = words[0], words[1:]
        if looks_like_json(first) and not self._is_template(ctx, options):
            count = _json_words(words)
            first, tail = " ".join(words[:count]), words[count:]
        if not any(_is_option(word) for word in tail):
            return options, [first, *tail]
        try:
            more = self._split(ctx, tail, interspersed=True)
        except click.UsageError as error:
            raise _misplaced(ctx, args, options, before, error) from error
        if more or "--" in tail:
            raise _misplaced(ctx, args, options, before, None)
        return [*options, *tail], [first]

    def _is_template(self, ctx: click.Context, options: list[str]) -> bool:
        """Whether a word with braces is one that lines are put into, and never JSON."""
        values, _, _ = self.make_parser(ctx).parse_args(list(options))
        return values.get("for_each") is not None

    def _split(self, ctx: click.Context, args: list[str], *, interspersed: bool) -> list[str]:
        """The words that are neither options nor their values."""
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = interspersed
        try:
            values, rest, _ = parser.parse_args(list(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # as in Command
            raise
        # click hands them over as the value of the argument; without any it says so in a way of its own.
        found = [values.get(param.name or "") for param in self.get_params(ctx) if isinstance(param, click.Argument)]
        words = [word for value in found if isinstance(value, (str, list, tuple)) for word in _listed(value)]
        return [*words, *rest]


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _json_words(words: Sequence[str]) -> int:
    """How many of `words` are one JSON text that the shell has split; 1 if that cannot be told."""
    if len(words) == 1:
        return 1
    import json

    try:
        _, end = json.JSONDecoder().raw_decode(" ".join(words).lstrip())
    except (ValueError, RecursionError):
        return 1 if any(_is_option(word) for word in words) else len(words)
    end += len(words[0]) - len(words[0].lstrip())
    for count in range(1, len(words) + 1):
        if len(" ".join(words[:count]).rstrip()) >= end:
            return count
    return len(words)


def _misplaced(
    ctx: click.Context,
    args: Sequence[str],
    options: Sequence[str],
    before: Sequence[str],
    cause: click.UsageError | None,
) -> UsageError:
    from shlex import join

    words = args[len(options) :]
    hint = f"put -- before the command: {ctx.command_path} {join([*options, *before, '--', *words])}"
    if cause is None:
        return UsageError("with several words, every option stands before the first", hint=hint)
    if isinstance(cause, click.NoSuchOption):
        meant = f"did you mean {' or '.join(cause.possibilities)}? else " if cause.possibilities else ""
        return UsageError(f"no such option {cause.option_name!r}", hint=meant + hint)
    failure = from_click(cause)
    return UsageError(failure.message, hint=f"{failure.hint}; or {hint}")
