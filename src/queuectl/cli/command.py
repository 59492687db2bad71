"""Commands and groups of commands: lazy loading, the options that every command has, option types, help pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import click

from queuectl.cli.app import App
from queuectl.cli.errors import UnknownCommand
from queuectl.cli.render import Nothing, Result
from queuectl.config import check_environment, file_path
from queuectl.errors import InvalidInput, UnknownName, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMMANDS_PACKAGE: Final = "queuectl.cli.commands"
NO_GROUPS: Final[Mapping[str, Sequence[str]]] = {}
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class Entry(NamedTuple):
    """A line of a table of commands: where the command is, and its line in the list of commands.

    A command without a `section` is not in the help of its group, a `hidden` one is not in the documentation either.
    """

    module: str  # in cli/commands
    attribute: str
    help: str
    section: str = "Commands"
    hidden: bool = False
    alias: str = ""


# ── options of every command ──────────────────────────────────────────────────────────────────────────────


def _note(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if isinstance(ctx.obj, App) and value not in (None, False):
        setattr(ctx.obj.flags, param.name or "", value)


def _help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.obj, App) and not ctx.resilient_parsing:  # completion parses, and runs nothing
        show_help(ctx)
        ctx.exit()


def print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.obj, App) and not ctx.resilient_parsing:
        from queuectl import __version__

        ctx.obj.print(f"queuectl {__version__}")
        ctx.exit()


def _global(*names: str, **settings: Any) -> click.Option:
    return click.Option(list(names), expose_value=False, **{"callback": _note, **settings})


# Shared by all commands: an option keeps no state.
GLOBAL_OPTIONS: list[click.Option] = [
    _global("--home", metavar="DIR", help="Data directory (default: $QUEUECTL_HOME, ~/.queuectl)."),
    _global("--db", metavar="URL", help="Database: path or postgresql://… (default: $QUEUECTL_DB)."),
    _global("--trust-home", is_flag=True, help="Allow a data directory that other users can change."),
    _global("--json", is_flag=True, help="Print JSON."),
    _global("--quiet", is_flag=True, help="Print only IDs."),
    _global("--no-color", is_flag=True, help="Disable colors."),
    _global("-h", "--help", is_flag=True, is_eager=True, callback=_help, help="Show this help."),
]


@contextmanager
def _context_of_errors(ctx: click.Context) -> Iterator[None]:
    """click's parser sets no context, which the error message needs."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


class Command(click.Command):
    """A command that gets the `App` as its first argument and returns a Result.

    `signed_arguments`: arguments like -5 are values, not options. `any_environment`: it also runs with invalid QUEUECTL_*
    variables, to report them. `any_home`: it does not use the data directory, or checks by itself that it is trusted.
    `prints_jobs`: --json may be followed by a list of fields. `option_groups`: headings of the help, with the names of the
    parameters below each; the others are below "Options".
    """

    def __init__(
        self,
        name: str | None,
        *,
        examples: str = "",
        signed_arguments: bool = False,
        any_environment: bool = False,
        any_home: bool = False,
        prints_jobs: bool = False,
        option_groups: Mapping[str, Sequence[str]] = NO_GROUPS,
        **rest: Any,
    ) -> None:
        super().__init__(name, add_help_option=False, **rest)
        self.examples = examples
        self.signed_arguments = signed_arguments
        self.any_environment = any_environment
        self.any_home = any_home
        self.prints_jobs = prints_jobs
        self.option_groups = option_groups
        self.own_params = list(self.params)
        self.params = [*self.params, *GLOBAL_OPTIONS]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _context_of_errors(ctx):
            args = args if ctx.resilient_parsing else self.arrange(ctx, args)
            if self.signed_arguments:
                args = [_GUARD + word if re.match(r"-[\d.]", word) else word for word in args]
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        assert self.callback is not None
        if not self.any_environment:
            check_environment(ctx.obj.environ)
        if not self.any_home:
            ctx.obj.check_trust()
        params = ctx.params
        if self.signed_arguments:
            params = {name: _unguard(value) for name, value in params.items()}
        return self.callback(ctx.obj, **params)

    def arrange(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments for click's parser."""
        return self._take_fields(ctx, args) if self.prints_jobs else args

    def _take_fields(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the fields of `--json id,state` and `--json=id,state` to the flags.

        A single name is a list of fields only after another argument: `enqueue --json env` runs env.
        """
        end = args.index("--") if "--" in args else len(args)
        for at, arg in enumerate(args[:end]):
            if arg.startswith("--json="):
                names, after = arg.removeprefix("--json="), at + 1
            elif arg == "--json" and at + 1 < end and self._are_fields(args[at + 1], before=args[:at]):
                names, after = args[at + 1], at + 2
            else:
                continue
            ctx.obj.flags.fields = tuple(_job_fields(names))
            return [*args[:at], "--json", *args[after:]]
        return args

    def _are_fields(self, word: str, *, before: list[str]) -> bool:
        names = [name.strip() for name in word.split(",")]
        if len(names) > 1:
            return any(name in JOB_FIELDS for name in names)
        takes_ids = any(param.name == "ids" for param in self.own_params)
        return word in JOB_FIELDS and (takes_ids or self._has_argument(before))

    def _has_argument(self, args: list[str]) -> bool:
        """Whether there is one that is neither an option nor its value."""
        values = {name for param in self.params if not getattr(param, "is_flag", False) for name in param.opts}
        is_value = False
        for arg in args:
            if not is_value and not arg.startswith("-"):
                return True
            is_value = not is_value and arg in values
        return False

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(formatter, self.examples)
        grouped = {name for names in self.option_groups.values() for name in names}
        for title, names in self.option_groups.items():
            _write_options(ctx, formatter, title, [param for param in self.own_params if param.name in names])
        others = [param for param in self.own_params if param.name not in grouped]
        _write_options(ctx, formatter, "Other options" if grouped else "Options", others)
        shared = list(GLOBAL_OPTIONS)
        if self.prints_jobs:
            shared = [_JSON_FIELDS if option.name == "json" else option for option in shared]
        _write_options(ctx, formatter, "Options of every command", shared)


_JSON_FIELDS: Final = _global("--json", metavar="[FIELD,…]", help="Print JSON, or only these fields of it.")
# The fields that list, show and enqueue can print.
_FIELDS: Final = (
    "id command argv state queue priority effective_priority attempts runs crashes max_retries backoff_base timeout"
    " run_at created_at updated_at started_at finished_at duration_ms wait_ms exit_code signal error last_output worker"
    " cwd env tags depends_on unique_key cron batch key array_index held reason log limits secrets history output duplicate"
)
JOB_FIELDS: Final = frozenset(_FIELDS.split())


def _job_fields(text: str) -> Iterator[str]:
    for name in map(str.strip, text.split(",")):
        if name not in JOB_FIELDS:
            from queuectl.text import closest_match

            known = sorted(JOB_FIELDS)
            raise UnknownName("field", name, nearest=closest_match(name, known), known=known)
        yield name


# Options of several commands.
show_env_option: Final = click.option("--show-env", is_flag=True, help="Show the values of environment variables.")
policy_option: Final = click.option(
    "--policy",
    metavar="FILE",
    callback=lambda ctx, param, value: None if value is None else file_path(value, spelled="--policy"),
    help="Policy file (default: policy.toml in --home).",
)


class LazyGroup(click.Group):
    """A group with a table of its commands. The module of a command is imported when the command is called."""

    def __init__(self, name: str | None, *, table: Mapping[str, Entry], examples: str = "", **rest: Any) -> None:
        callback = click.pass_context(self.without_command)
        super().__init__(name, add_help_option=False, invoke_without_command=True, callback=callback, **rest)
        self.table = dict(table)
        self.examples = examples
        self.own_params = list(self.params)
        self.params = [*self.params, *GLOBAL_OPTIONS]

    @property
    def aliases(self) -> dict[str, str]:
        return {entry.alias: name for name, entry in self.table.items() if entry.alias}

    def subcommand(
        self, name: str, help: str, *, hidden: bool = False, alias: str = "", **rest: Any
    ) -> Callable[[Callable[..., Result]], Command]:
        """As `command`, for one in the module of its group. `help`: its line in the help of the group."""

        def wrap(function: Callable[..., Result]) -> Command:
            made = command(name, **rest)(function)
            self.table[name] = Entry("", "", help, hidden=hidden, alias=alias)
            self.add_command(made)
            return made

        return wrap

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, entry in self.table.items() if not entry.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self.aliases.get(cmd_name, cmd_name)
        entry = self.table.get(name)
        if entry is None or name in self.commands:
            return self.commands.get(name)
        return cast(click.Command, getattr(import_module(f"{COMMANDS_PACKAGE}.{entry.module}"), entry.attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, rest = args[0], args[1:]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            raise UnknownCommand(name, group=ctx.command_path, known=[*self.table, *self.aliases])
        return name, command, rest

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _context_of_errors(ctx):
            return super().parse_args(ctx, args)

    def without_command(self, ctx: click.Context) -> Result | None:
        if ctx.invoked_subcommand is not None:
            return None
        if ctx.parent is None:
            show_help(ctx)
            return Nothing()
        raise UsageError(
            f"{ctx.command_path} needs a command: {', '.join(self.list_commands(ctx))}",
            hint=f"{ctx.command_path} --help shows what they do",
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: MutableMapping[str, list[tuple[str, str]]] = {}
        for name, entry in self.table.items():
            if not entry.hidden and entry.section:
                alias = f" (alias: {entry.alias})" if entry.alias else ""
                sections.setdefault(entry.section, []).append((name, entry.help.removesuffix(".") + alias))
        longest = max(len(name) for rows in sections.values() for name, _ in rows)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(longest), text) for name, text in rows])
        if ctx.parent is None:
            with formatter.section("Options of every command"):
                formatter.write_text(_OPTIONS_IN_SHORT)
        _write_examples(formatter, self.examples)
        if ctx.parent is None:
            formatter.write_paragraph()
            formatter.write_text("More: queuectl COMMAND --help, queuectl help TOPIC, queuectl help")
        else:
            _write_options(ctx, formatter, "Options of every command", GLOBAL_OPTIONS)


def command(
    name: str, *, examples: str = "", cls: type[Command] = Command, **rest: Any
) -> Callable[[Callable[..., Result]], Command]:
    """Turn a function with options and arguments of click into a Command. Its docstring is the help page, with the examples after a
    line `Examples:`, unless `examples` has them in one line."""
    from inspect import cleandoc

    def wrap(function: Callable[..., Result]) -> Command:
        page, _, listed = cleandoc(function.__doc__ or "").partition("\nExamples:\n")
        more = {"help": page.rstrip(), "examples": examples or listed, "context_settings": dict(SETTINGS), **rest}
        return click.command(name, cls=cls, **more)(function)

    return wrap


def group(
    name: str, help: str, table: Mapping[str, Entry] | None = None, *, examples: str = "", **rest: Any
) -> LazyGroup:
    return LazyGroup(name, help=help, table=table or {}, examples=examples, context_settings=dict(SETTINGS), **rest)


# ── help pages ──────────────────────────────────────────────────────────────────────────────────────────────────────


def show_help(ctx: click.Context) -> None:
    app: App = ctx.obj
    for line in ctx.get_help().split("\n"):
        is_heading = line.endswith(":") and not line.startswith(" ")
        is_comment = line.startswith("  # ")
        app.print(app.paint(line, "bold" if is_heading else "dim" if is_comment else None))


_OPTIONS_IN_SHORT: Final = "--home DIR  --db URL  --trust-home  --json  --quiet  --no-color  -h, --help  -V, --version"


def _write_options(
    ctx: click.Context, formatter: click.HelpFormatter, title: str, params: Iterable[click.Parameter]
) -> None:
    options = [param for param in params if isinstance(param, click.Option)]
    records = [record for option in options if (record := option.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


def _write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    from inspect import cleandoc

    if not examples:
        return
    with formatter.section("Examples"):
        for line in cleandoc(examples).splitlines():
            formatter.write(f"  {line}\n" if line else "\n")


# ── arguments like -5 ───────────────────────────────────────────────────────────────────────────────────────────────

# No argument can contain a NUL, so click's parser cannot mistake a marked one for an option.
_GUARD = "\0"


def _unguard(value: object) -> object:
    if isinstance(value, str):
        return value.removeprefix(_GUARD)
    if isinstance(value, tuple):
        return tuple(_unguard(item) for item in value)
    return value


# ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


def combine_options(*options: Decorator) -> Decorator:
    """A decorator that adds several options or arguments, in this order."""

    def wrap(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return wrap


# ── option types ────────────────────────────────────────────────────────────────────────────────────────────────────
# Any other text is returned as it is: the parser of the value rejects it, and names the range and an example.
# ASCII digits only: int() and float() also accept 1_000 or ٣.


def integer(value: str) -> int | str:
    # int() accepts at most 4300 digits.
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,4000}", value) else value


def attempts(value: str) -> int | str:
    count = integer(value)
    if isinstance(count, int) and count < 1:
        hint = "--max-attempts 1 runs a job once, without a retry"
        raise InvalidInput("--max-attempts", f"expected an integer from 1 to 1000000, got {count}", hint=hint)
    return count


def number(value: str) -> float | str:
    is_number = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", value, re.IGNORECASE)
    return float(value) if is_number else value
