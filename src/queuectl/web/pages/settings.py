"""The page of settings, grouped by subject."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from queuectl.errors import QueuectlError, Unavailable
from queuectl.settings import KEYS, Key, SettingEntry, resolve_key
from queuectl.store_threads import WebSession
from queuectl.web.api.admin import change_setting
from queuectl.web.pages.render import Notice, PageRequest, View, done, refused_form

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Retries": (
        *("max-retries", "first-attempt-is-free", "backoff-base", "backoff-max", "backoff-jitter"),
        "max-crashes",
    ),
    "Runs": ("timeout", "kill-grace"),
    "Order": ("priority", "ageing"),
    "Workers": ("worker-count", "poll-interval", "heartbeat", "lease"),
    "Logs": ("log-limit", "output-limit"),
    "Retention": ("retain-completed", "retain-dead", "retain-audit"),
    "Webhooks": ("webhook-success", "webhook-failure", "webhook-dead", "webhook-secret", "webhook-allow-private"),
}


def show(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    keys = {key.name: key for key in KEYS}
    entries = {entry.key: entry for entry in session.settings.entries()}
    wrong = resolve_key(ask.param("key")).name if error is not None else None
    sections = {
        title: [
            {
                **_row(keys[name], entries[name]),
                "error": error if name == wrong else None,
                **({"text": ask.form.one("value") or ""} if name == wrong else {}),
            }
            for name in names
        ]
        for title, names in SECTIONS.items()
    }
    values = {"sections": sections, **refused_form(ask, "/settings", error)}
    return View("settings.html", "Settings", values, status=200 if error is None else 422)


def _row(key: Key, entry: SettingEntry) -> dict[str, Any]:
    return {
        **entry._asdict(),
        "about": key.about,
        "form": key.form,
        "is_switch": isinstance(key.default, bool),
        "is_number": isinstance(key.default, int | float) and key.kind.is_plain,
        "default_text": key.text(key.default),
        "variable": key.variables[0],
    }


def save(session: WebSession, ask: PageRequest) -> View | Notice:
    key = resolve_key(ask.param("key")).name
    before = session.reads.config().get(key)
    # A checked box sends its value after that of the hidden field.
    wanted = None if ask.form.has("unset") else next(reversed(ask.form.all("value")), "")
    try:
        return _change_setting(key, wanted, session)._replace(undo=partial(_change_setting, key, before))
    except Unavailable:
        raise
    except QueuectlError as error:
        return show(session, ask, error)


def _change_setting(key: str, value: str | None, session: WebSession) -> Notice:
    text = change_setting(session, key, value).text
    return done(f"{key} reset to its default, {text}" if value is None else f"{key} set to {text}")
