"""config: look at and change the settings."""

from __future__ import annotations

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_keys
from queuectl.cli.result import Column, Lines, Result, Sheet, Table
from queuectl.cli.workers import store_line
from queuectl.config import KEYS, resolve_key
from queuectl.config import Entry as Setting
from queuectl.queue import settings

_HERE = __name__
MOST_READ = 16 * 1024  # no value is that long
_TABLE = {
    "list": Entry(_HERE, "list_settings", "Every setting, its value and where it comes from."),
    "show": Entry(_HERE, "list_settings", "The same as list.", hidden=True),
    "get": Entry(_HERE, "get", "The value of one setting."),
    "set": Entry(_HERE, "set_setting", "Change a setting, for everybody who uses this store."),
    "unset": Entry(_HERE, "unset", "Back to the default."),
    "reset": Entry(_HERE, "reset", "Every setting back to its default."),
}

config = group(
    "config",
    "Look at and change the settings. A flag wins over QUEUECTL_<KEY> in the environment, that over what is stored.",
    _TABLE,
    examples="""
        queuectl config list
        queuectl config set max-retries 5
        queuectl config get max-retries
    """,
)


_key_argument = click.argument("key", shell_complete=complete_keys)


@command(
    "list",
    examples="""
        queuectl config list
        queuectl config list --json | jq '.[] | select(.source != "default")'
    """,
)
def list_settings(app: App) -> Result:
    """Every setting, its value, its default, and where the value comes from."""
    entries = settings.list_settings(app.settings)
    if not app.stdout_is_terminal:
        return Lines([f"{entry.key} = {entry.text}" for entry in entries], [_to_json(entry) for entry in entries])
    about = {key.name: key for key in KEYS}
    return Table(
        entries,
        columns=[
            Column("KEY", lambda entry: entry.key),
            Column("VALUE", lambda entry: entry.text, style=lambda entry: _SOURCE_STYLE[entry.source]),
            Column(
                "FROM", lambda entry: entry.source, style=lambda entry: _SOURCE_STYLE[entry.source] or "dim", spare=1
            ),
            Column("DEFAULT", lambda entry: about[entry.key].text(about[entry.key].default), style="dim", spare=2),
            Column("DECIDES", lambda entry: about[entry.key].about, style="dim", flexible=True, spare=3),
        ],
        to_json=_to_json,
        footer=store_line(app),
    )


_SOURCE_STYLE = {"flag": "cyan", "env": "cyan", "stored": "green", "default": None}


def _to_json(entry: Setting) -> dict[str, object]:
    return {"key": entry.key, "value": entry.value, "default": entry.default, "source": entry.source}


@command(
    "get",
    examples="""
        queuectl config get backoff-base
        queuectl config get max_retries
    """,
)
@_key_argument
def get(app: App, key: str) -> Result:
    """Print the value that is in force, in its canonical form and nothing else."""
    settings.require_key(key)
    entry = settings.get_setting(app.settings, key)
    return Lines([entry.text], _to_json(entry))


@command(
    "set",
    signed_words=True,
    examples="""
        queuectl config set max-retries 5
        queuectl config set timeout 1h30m
        queuectl config set priority -5
        # from stdin: not for everybody to see in the list of processes
        openssl rand -hex 32 | queuectl config set webhook-secret -
    """,
)
@_key_argument
@click.argument("value")
def set_setting(app: App, key: str, value: str) -> Result:
    """Store a setting. Running workers follow within their heartbeat; jobs already queued keep what they have.

    The word - reads the value from stdin: what is typed can be seen by others, in the list of processes and in the shell's
    history.
    """
    return _change(app, key, _from_stdin(app) if value == "-" else value)


@command(
    "unset",
    examples="""
        queuectl config unset max-retries
    """,
)
@_key_argument
def unset(app: App, key: str) -> Result:
    """Forget what is stored for a setting: its default holds again."""
    return _change(app, key, None)


@command(
    "reset",
    examples="""
        queuectl config reset
    """,
)
def reset(app: App) -> Result:
    """Forget everything that is stored: all defaults hold again. Jobs stay as they are."""
    keys = settings.reset(reads=app.open_reads, open_store=app.open_store)
    return Lines([f"{key} is back to its default" for key in keys] or ["nothing was set"], {"unset": keys})


def _change(app: App, key: str, value: str | None) -> Result:
    changed = settings.change({key: value}, reads=app.open_reads, open_store=app.open_store)
    (name,) = changed
    entry = settings.get_setting(app.settings, name)
    if entry.source == "env":
        app.say(f"the environment says otherwise here: {name} = {entry.text}")
    return Sheet(_to_json(entry), people=lambda: [f"{name} = {_told(name, changed[name]) or entry.text}"], id=name)


def _from_stdin(app: App) -> str:
    return app.stdin_bytes.read(MOST_READ).decode("utf-8", "replace")


def _told(name: str, text: str | None) -> str | None:
    """What was written, without what is secret in it."""
    key = resolve_key(name)
    return None if text is None else key.shown(key.parse(text, subject=name))
