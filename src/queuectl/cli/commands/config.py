"""queuectl config: show and change settings."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.completion import complete_keys
from queuectl.cli.render import Details, Lines, Result, Table
from queuectl.cli.tables import Column
from queuectl.cli.worker_status import store_line
from queuectl.config import reset_settings, store_settings
from queuectl.settings import KEYS, resolve_key
from queuectl.settings import SettingEntry as Setting

_HERE: Final = "config"


MAX_VALUE_BYTES: Final = 16 * 1024  # read from stdin


_TABLE = {
    "list": Entry(_HERE, "config_list", "List settings with values and sources."),
    "show": Entry(_HERE, "config_list", "The same as list.", hidden=True),
    "get": Entry(_HERE, "config_get", "Print a setting."),
    "set": Entry(_HERE, "config_set", "Store a setting, for all users of this database."),
    "unset": Entry(_HERE, "config_unset", "Restore the default of a setting."),
    "reset": Entry(_HERE, "config_reset", "Restore all defaults."),
}


config = group(
    "config",
    "Show and change settings. A flag overrides QUEUECTL_<KEY> in the environment, which overrides the stored value.",
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
def config_list(app: App) -> Result:
    """List settings: value, default, and the source of the value."""
    entries = app.settings.entries()
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
def config_get(app: App, key: str) -> Result:
    """Print the value in force, in its canonical form."""
    resolve_key(key)  # before the data directory is opened
    entry = app.settings.entry(key)
    return Lines([entry.text], _to_json(entry))


@command(
    "set",
    signed_arguments=True,
    examples="""
        queuectl config set max-retries 5
        queuectl config set timeout 1h30m
        queuectl config set priority -5
        # from stdin: arguments are visible in the list of processes
        openssl rand -hex 32 | queuectl config set webhook-secret -
    """,
)
@_key_argument
@click.argument("value")
def config_set(app: App, key: str, value: str) -> Result:
    """Store a setting. Running workers apply it at their next heartbeat; enqueued jobs keep their values.

    The value - is read from stdin: an argument can be seen by others, in the list of processes and in the history of the
    shell.
    """
    return _change_setting(app, key, _from_stdin(app) if value == "-" else value)


@command("unset", examples="queuectl config unset max-retries")
@_key_argument
def config_unset(app: App, key: str) -> Result:
    """Remove the stored value of a setting: its default applies again."""
    return _change_setting(app, key, None)


@command("reset", examples="queuectl config reset")
def config_reset(app: App) -> Result:
    """Remove all stored settings: all defaults apply again. Jobs are not affected."""
    keys = reset_settings(reads=app.open_reads, open_store=app.open_store)
    return Lines([f"{key} is back to its default" for key in keys] or ["nothing was set"], {"unset": keys})


def _change_setting(app: App, key: str, value: str | None) -> Result:
    changed = store_settings({key: value}, reads=app.open_reads, open_store=app.open_store)
    (name,) = changed
    entry = app.settings.entry(name)
    if entry.source == "env":
        app.say(f"overridden by the environment here: {name} = {entry.text}")
    return Details(_to_json(entry), text=lambda: [f"{name} = {_redacted(name, changed[name]) or entry.text}"], id=name)


def _from_stdin(app: App) -> str:
    return app.stdin_bytes.read(MAX_VALUE_BYTES).decode("utf-8", "replace")


def _redacted(name: str, text: str | None) -> str | None:
    """The written value, redacted if it is secret."""
    key = resolve_key(name)
    return None if text is None else key.redacted(key.parse(text, subject=name))
