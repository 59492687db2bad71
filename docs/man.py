"""Man pages, made from what --help is made of. `scripts/docs` writes them to man/, and the package installs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc

import click

from queuectl import __version__
from queuectl.cli.command import GLOBAL_OPTIONS, Command, LazyGroup
from queuectl.cli.commands.table import COMMANDS, root

NOTICE = r".\" Made by docs/generate.py: scripts/docs makes it anew."
EXITS = (
    ("0", "Done."),
    ("1", "Well said, but refused as things are: an unknown id, a wrong state, a store that cannot serve."),
    ("2", "The words could never be right: an unknown option, a value of a wrong type or range."),
    ("124", "Waited too long."),
    ("130, 143", "Ended by the second signal."),
)
VARIABLES = (
    ("QUEUECTL_HOME", "The home, unless --home names it."),
    ("QUEUECTL_DB", "The store, unless --db names it."),
    ("QUEUECTL_<KEY>", "A setting, such as QUEUECTL_MAX_RETRIES; queuectl config list shows all of them."),
    ("NO_COLOR", "No colours."),
)


def escaped(text: str) -> str:
    """As it is: no request, no escape, and hyphens that can be searched for and copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    plain = plain.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    plain = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in plain)
    return f"\\&{plain}" if plain.startswith(".") else plain


def paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", cleandoc(text))):
        if number:
            yield ".PP"
        yield escaped(" ".join(paragraph.split()))


def options(params: Iterable[click.Option]) -> Iterator[str]:
    for option in params:
        record = option.get_help_record(click.Context(click.Command("x")))
        if record is not None:
            yield from entry(*record)


def entry(term: str, about: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{escaped(term)}\\fR"
    yield escaped(about)


def examples(text: str) -> Iterator[str]:
    yield ".nf"
    yield ".RS 4"
    yield from (escaped(line) if line else ".sp" for line in cleandoc(text).splitlines())
    yield ".RE"
    yield ".fi"


def head(name: str, about: str) -> Iterator[str]:
    yield NOTICE
    yield f'.TH "{escaped(name.upper())}" "1" "" "queuectl {__version__}" "queuectl"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {escaped(about.rstrip('.'))}"


def usage(path: str, command: Command) -> str:
    context = click.Context(command, info_name=path)
    return context.get_usage().removeprefix("Usage: ").replace("\n", " ")


def own(command: Command | LazyGroup) -> list[click.Option]:
    return [param for param in command.own_params if isinstance(param, click.Option) and not param.hidden]


def main_page() -> Iterator[str]:
    yield from head("queuectl", root.help or "")
    yield ".SH SYNOPSIS"
    yield "\\fBqueuectl\\fR [OPTIONS] COMMAND [ARGS]..."
    yield ".SH DESCRIPTION"
    yield from paragraphs(root.help or "")
    yield ".PP"
    yield escaped(
        "Each command has a page of its own, such as queuectl-enqueue(1). queuectl help lists topics to read."
    )
    sections: dict[str, list[tuple[str, str]]] = {}
    for name, found in COMMANDS.items():
        if not found.hidden:
            sections.setdefault(found.section, []).append((name, found.help))
    yield ".SH COMMANDS"
    for section, rows in sections.items():
        yield f".SS {escaped(section)}"
        for name, about in rows:
            yield from entry(name, about)
    yield ".SH OPTIONS"
    yield escaped("Before or after the command's name; the rightmost wins.")
    yield from options([*own(root), *GLOBAL_OPTIONS])
    yield ".SH EXIT STATUS"
    for code, about in EXITS:
        yield from entry(code, about)
    yield ".SH ENVIRONMENT"
    for name, about in VARIABLES:
        yield from entry(name, about)
    yield ".SH FILES"
    yield from entry("~/.queuectl", "The home: the store, the logs of jobs, what workers need.")
    yield ".SH EXAMPLES"
    yield from examples(root.examples)


def command_page(name: str, command: Command | LazyGroup) -> Iterator[str]:
    yield from head(f"queuectl-{name}", COMMANDS[name].help)
    subs: list[tuple[str, Command]] = []
    if isinstance(command, LazyGroup):
        for sub in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), sub)
            assert isinstance(found, Command)
            subs.append((f"queuectl {name} {sub}", found))
    else:
        subs.append((f"queuectl {name}", command))
    yield ".SH SYNOPSIS"
    for number, (path, one) in enumerate(subs):
        if number:
            yield ".br"
        yield escaped(usage(path, one))
    yield ".SH DESCRIPTION"
    yield from paragraphs(command.help or "")
    for path, one in subs:
        if isinstance(command, LazyGroup):
            yield f".SH {escaped(path.upper())}"
            yield from paragraphs(one.help or "")
        elif own(one):
            yield ".SH OPTIONS"
        yield from options(own(one))
        if isinstance(command, LazyGroup):
            yield ".PP"
            yield from examples(one.examples)
    if isinstance(command, Command):
        yield ".SH EXAMPLES"
        yield from examples(command.examples)
    yield ".SH SEE ALSO"
    yield "\\fBqueuectl\\fR(1) has the options of every command and the exit status."


def pages() -> Mapping[str, str]:
    """Every page by the name of its file."""
    made = {"queuectl.1": "\n".join(main_page()) + "\n"}
    for name, found in COMMANDS.items():
        command = root.get_command(click.Context(root), name)
        assert isinstance(command, Command | LazyGroup)
        if not found.hidden:
            made[f"queuectl-{name}.1"] = "\n".join(command_page(name, command)) + "\n"
    return made
