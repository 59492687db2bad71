"""Suggestions for unknown commands and options. Loaded on an error only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from queuectl.errors import UnknownName
from queuectl.text import truncate

COMMAND_CUTOFF: Final = 0.7
OPTION_CUTOFF: Final = 0.75
# Group -> a name that other tools use -> what to run here.
COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "queuectl": {
        "abort": "queuectl cancel ID",
        "attach": "queuectl logs -f ID",
        "cat": "queuectl logs ID",
        "create": "queuectl enqueue COMMAND",
        "daemon": "queuectl worker start",
        "delete": "queuectl db prune ID, or: queuectl dlq purge ID",
        "describe": "queuectl show ID",
        "exec": "queuectl run COMMAND",
        "follow": "queuectl logs -f ID",
        "history": "queuectl show ID, or: queuectl audit",
        "info": "queuectl show ID",
        "inspect": "queuectl show ID",
        "init": "queuectl enqueue COMMAND, which creates the database",
        "job": "queuectl list",
        "jobs": "queuectl list",
        "monitor": "queuectl top",
        "new": "queuectl enqueue COMMAND",
        "output": "queuectl logs ID",
        "pause": "queuectl queue pause QUEUE, or: queuectl hold ID",
        "ps": "queuectl list, or: queuectl worker list",
        "push": "queuectl enqueue COMMAND",
        "queues": "queuectl queue list",
        "remove": "queuectl db prune ID, or: queuectl dlq purge ID",
        "requeue": "queuectl retry ID",
        "restart": "queuectl retry ID, or: queuectl worker restart",
        "resume": "queuectl queue resume QUEUE, or: queuectl release ID",
        "rm": "queuectl db prune ID, or: queuectl dlq purge ID",
        "schedules": "queuectl cron list",
        "send": "queuectl enqueue COMMAND",
        "serve": "queuectl dashboard",
        "server": "queuectl dashboard",
        "set": "queuectl config set KEY VALUE",
        "settings": "queuectl config list",
        "start": "queuectl worker start",
        "stash": "queuectl hold ID",
        "stat": "queuectl status",
        "stats": "queuectl metrics",
        "stop": "queuectl cancel ID, or: queuectl worker stop",
        "submit": "queuectl enqueue COMMAND",
        "tail": "queuectl logs -f ID",
        "tui": "queuectl top",
        "ui": "queuectl dashboard",
        "version": "queuectl --version",
        "watch": "queuectl status --watch",
        "web": "queuectl dashboard",
        "work": "queuectl worker start",
        "workers": "queuectl worker list",
    },
    "queuectl worker": {
        "kill": "queuectl worker stop --now",
        "ls": "queuectl worker list",
        "ps": "queuectl worker list",
        "reload": "queuectl worker restart",
        "run": "queuectl worker start",
        "status": "queuectl worker list",
    },
    "queuectl queue": {
        "add": "queuectl enqueue --queue QUEUE COMMAND, which creates the queue",
        "create": "queuectl enqueue --queue QUEUE COMMAND, which creates the queue",
        "ls": "queuectl queue list",
        "show": "queuectl queue list",
        "start": "queuectl queue resume QUEUE",
        "stop": "queuectl queue pause QUEUE",
        "unpause": "queuectl queue resume QUEUE",
    },
    "queuectl dlq": {
        "clear": "queuectl dlq purge --all",
        "ls": "queuectl dlq list",
        "remove": "queuectl dlq purge ID",
        "requeue": "queuectl dlq retry ID",
        "rm": "queuectl dlq purge ID",
    },
    "queuectl cron": {
        "create": "queuectl cron add NAME SCHEDULE COMMAND",
        "delete": "queuectl cron remove NAME",
        "edit": "queuectl cron add --replace NAME SCHEDULE COMMAND",
        "ls": "queuectl cron list",
        "rm": "queuectl cron remove NAME",
        "trigger": "queuectl cron run NAME",
    },
    "queuectl config": {"ls": "queuectl config list", "remove": "queuectl config unset KEY"},
    "queuectl db": {
        "dump": "queuectl db backup FILE, or: queuectl db export FILE",
        "init": "queuectl enqueue COMMAND, which creates the database",
        "load": "queuectl db import FILE",
        "migrate": "queuectl db copy --from ADDRESS --to ADDRESS",
        "vacuum": "queuectl db prune",
    },
}
# Option -> command, or "" for every one -> what to use here.
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "--all": {"cancel": "--state pending,failed,processing", "list": "--limit 1000000000"},
    "--background": {"worker start": "--detach"},
    "--daemon": {"worker start": "--detach", "run": "queuectl enqueue COMMAND"},
    "--database": {"": "--db"},
    "--depends": {"": "--after"},
    "--depends-on": {"": "--after"},
    "--detach": {"run": "queuectl enqueue COMMAND"},
    "--dir": {"": "--cwd"},
    "--directory": {"": "--cwd"},
    "--follow": {"enqueue": "queuectl run COMMAND"},
    "--force": {"cancel": "--yes"},
    "--jobs": {"worker start": "--count"},
    "--label": {"": "--tag"},
    "--name": {"enqueue": "--id"},
    "--status": {"": "--state"},
    "--threads": {"worker start": "--count"},
    "--wait": {"enqueue": "queuectl run COMMAND", "clone": "queuectl wait ID"},
    "--workers": {"worker start": "--count"},
    "--working-directory": {"": "--cwd"},
}


OLD_NAMES: Final[Mapping[str, str]] = {"--retries": "--max-attempts", "--max-retries": "--max-attempts"}


class UnknownCommand(UnknownName):
    """`group` is the path of the group, such as `queuectl worker`."""

    def __init__(self, name: str, *, group: str, known: Sequence[str], what: str = "command") -> None:
        super().__init__(what, name, nearest=None, known=known)
        synonym = COMMANDS.get(group.replace("queuectl schedule", "queuectl cron"), {}).get(name.lower())
        nearest = closest(name.lower(), known, cutoff=COMMAND_CUTOFF)
        listed = "queuectl help lists all of them" if what == "topic" else f"{group} --help lists the commands"
        if synonym is not None:
            self.hint = f"use: {synonym}"
        else:
            self.hint = f"did you mean {nearest!r}? {listed}" if nearest else listed


def option_hint(name: str, command_path: str, known: Sequence[str]) -> str | None:
    """What to use instead of an unknown option; None if no option is similar."""
    command = command_path.partition(" ")[2]
    by_command = OPTIONS.get(name, {})
    if meant := by_command.get(command, by_command.get("")):
        return f"use: {meant}" if meant.startswith("queuectl") or meant.partition(" ")[0] in known else None
    longer = [one for one in known if one.startswith(name)]
    nearest = longer[0] if len(longer) == 1 else closest(name, known, cutoff=OPTION_CUTOFF)
    return f"did you mean {OLD_NAMES.get(nearest, nearest)}?" if nearest else None


def closest(name: str, known: Iterable[str], *, cutoff: float) -> str | None:
    found = get_close_matches(truncate(name), list(known), n=1, cutoff=cutoff)
    return found[0] if found else None
