"""queuectl help: pages of the documentation in the terminal; queuectl completion: the script for a shell.

The pages are files of the package, written by scripts/docs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.errors import UnknownCommand
from queuectl.cli.render import Lines, Result

TOPICS_DIRECTORY: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "topics")
TOPIC_SUFFIX: Final = ".txt"
# Names of topics before 0.9. They keep working.
RENAMED_TOPICS: Final = {
    "change-your-mind": "edit-jobs",
    "choose-many-jobs": "bulk-operations",
    "find-out-what-is-wrong": "troubleshooting",
    "home": "data-directory",
    "keep-house": "retention-and-backup",
    "limit-resources": "resource-limits",
    "limits": "rate-limits",
    "not-twice": "unique-jobs",
    "priorities-and-ageing": "priorities",
    "retry-policy": "retries",
    "run-in-a-container": "containers",
    "run-under-systemd": "systemd",
    "see-what-happens": "inspect",
    "use-from-python": "python",
    "use-postgresql": "postgresql",
    "watch-in-the-terminal": "terminal-ui",
    "watch-with-prometheus": "prometheus",
}


def topic_names() -> list[str]:
    return sorted(
        name.removesuffix(TOPIC_SUFFIX) for name in os.listdir(TOPICS_DIRECTORY) if name.endswith(TOPIC_SUFFIX)
    )


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in topic_names() if name.startswith(incomplete)]


@command("help", any_home=True)
@click.argument("arguments", nargs=-1, metavar="[TOPIC | COMMAND...]", shell_complete=complete_topics)
def help_topic(app: App, arguments: tuple[str, ...]) -> Result:
    """Print a topic of the documentation, or the help of a command. Without an argument, list both.

    Examples:
        queuectl help
        queuectl help retries
        queuectl help enqueue
    """
    if not arguments:
        return Lines([*_list(app)], topic_names())
    if len(arguments) == 1 and (text := _topic_text(arguments[0])) is not None:
        return Lines(text.splitlines(), {"topic": arguments[0], "text": text})
    text = _command_help(app, arguments)
    return Lines(text.splitlines(), {"command": " ".join(arguments), "text": text})


def _list(app: App) -> Iterator[str]:
    from queuectl.cli.commands import root

    topics = topic_names()
    commands = {name: entry for name, entry in root.table.items() if not entry.hidden}
    width = max(map(len, [*topics, *commands])) + 2
    yield "Commands: queuectl help COMMAND"
    yield ""
    for name, entry in commands.items():
        yield f"  {name:<{width}}{entry.help.removesuffix('.')}"
    yield ""
    yield "Topics: queuectl help TOPIC"
    yield ""
    for name in topics:
        title = (_topic_text(name) or "").partition("\n")[0]
        yield f"  {name:<{width}}{title}"


def _topic_text(name: str) -> str | None:
    name = RENAMED_TOPICS.get(name, name)
    if name not in topic_names():  # never a path outside of the directory
        return None
    with open(os.path.join(TOPICS_DIRECTORY, name + TOPIC_SUFFIX), encoding="utf-8") as file:
        return file.read()


def _command_help(app: App, arguments: tuple[str, ...]) -> str:
    from queuectl.cli.command import LazyGroup
    from queuectl.cli.commands import root
    from queuectl.cli.main import PROGRAM

    context = click.Context(root, info_name=PROGRAM, obj=app)
    for number, word in enumerate(arguments):
        group = context.command
        found = group.get_command(context, word) if isinstance(group, LazyGroup) else None
        if found is None:
            known = group.list_commands(context) if isinstance(group, LazyGroup) else []
            if number == 0:
                raise UnknownCommand(word, what="topic", group=PROGRAM, known=[*known, *topic_names()])
            raise UnknownCommand(word, group=context.command_path, known=known)
        context = click.Context(found, info_name=word, parent=context, obj=app)
    return context.get_help() + "\n"


@command("completion", any_home=True)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(app: App, shell: str) -> Result:
    """Print the completion script for a shell.

    It completes commands, options, states and settings. It also completes IDs, queues and names from the database.

    Examples:
        # bash: now, and in every new shell
        source <(queuectl completion bash)
        echo 'source <(queuectl completion bash)' >> ~/.bashrc

        # zsh, fish
        queuectl completion zsh > "${fpath[1]}/_queuectl"
        queuectl completion fish > ~/.config/fish/completions/queuectl.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from queuectl.cli.commands import root
    from queuectl.cli.main import COMPLETION_VARIABLE, PROGRAM

    found = get_completion_class(shell)
    assert found is not None
    # Not the method of the class for bash: it runs bash to warn about versions before 2016.
    script = ShellComplete.source(found(root, {}, PROGRAM, COMPLETION_VARIABLE))
    return Lines(script.splitlines(), {"shell": shell, "script": script})
