"""queuectl help: the pages of the documentation, in the terminal. They are files of the package, made by scripts/docs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Lines, Result
from queuectl.errors import UnknownName

TOPICS: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "topics")
ENDING: Final = ".txt"


def topic_names() -> list[str]:
    return sorted(name.removesuffix(ENDING) for name in os.listdir(TOPICS) if name.endswith(ENDING))


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in topic_names() if name.startswith(incomplete)]


@command(
    "help",
    any_home=True,
    examples="""
        queuectl help
        queuectl help retry-policy
        queuectl help enqueue
    """,
)
@click.argument("words", nargs=-1, metavar="[TOPIC | COMMAND...]", shell_complete=complete_topics)
def help_topic(app: App, words: tuple[str, ...]) -> Result:
    """Read about a topic, or what --help says of a command. Without one: the topics there are."""
    if not words:
        return Lines([*_list()], topic_names())
    if len(words) == 1 and (text := _text(words[0])) is not None:
        return Lines(text.splitlines(), {"topic": words[0], "text": text})
    text = _of_command(app, words)
    return Lines(text.splitlines(), {"command": " ".join(words), "text": text})


def _list() -> Iterator[str]:
    yield "Topics, each a page: queuectl help TOPIC"
    yield ""
    for name in topic_names():
        yield f"  {name:<24}{_title(name)}"


def _title(name: str) -> str:
    return (_text(name) or "").partition("\n")[0]


def _text(name: str) -> str | None:
    if name not in topic_names():  # and so no path of anything else
        return None
    with open(os.path.join(TOPICS, name + ENDING), encoding="utf-8") as file:
        return file.read()


def _of_command(app: App, words: tuple[str, ...]) -> str:
    from queuectl.cli.command import LazyGroup
    from queuectl.cli.commands.table import root
    from queuectl.cli.invoke import PROGRAM
    from queuectl.job.nearest import nearest

    context = click.Context(root, info_name=PROGRAM, obj=app)
    for number, word in enumerate(words):
        group = context.command
        found = group.get_command(context, word) if isinstance(group, LazyGroup) else None
        if found is None:
            known = [*root.list_commands(context), *topic_names()]
            raise UnknownName("topic", " ".join(words[: number + 1]), nearest=nearest(word, known), known=topic_names())
        context = click.Context(found, info_name=word, parent=context, obj=app)
    return context.get_help() + "\n"
