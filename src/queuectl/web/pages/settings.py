"""The settings: what each is, where that comes from, and changing it."""

from __future__ import annotations

from typing import Any

from queuectl.config import KEYS
from queuectl.queue import settings as use
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, Shown, back_to
from queuectl.web.pages.notices import Notice, done


def show(desk: Desk, ask: Ask) -> Shown:
    about = {key.name: key for key in KEYS}
    rows: list[dict[str, Any]] = [
        {
            **entry._asdict(),
            "about": about[entry.key].about,
            "form": about[entry.key].form,
            "default_text": about[entry.key].text(about[entry.key].default),
        }
        for entry in use.list_settings(desk.settings)
    ]
    return Shown("settings.html", "Settings", {"settings": rows})


def change(desk: Desk, ask: Ask) -> Done:
    key = ask.param("key")
    use.require_key(key)
    before = desk.reads.config().get(key)
    wanted = None if ask.form.has("unset") else ask.form.one("value") or ""
    return Done(back_to(ask.form, "/settings"), _change(desk, key, wanted, before=before))


def _change(desk: Desk, key: str, value: str | None, *, before: str | None) -> Notice:
    (name,) = use.change({key: value}, reads=lambda: desk.reads, open_store=desk.open_store)
    text = use.get_setting(desk.settings, name).text
    words = f"{name} is {text} again, the default" if value is None else f"{name} is {text} now"

    def back(again: Desk) -> Notice:
        return _change(again, name, before, before=None)._replace(undo=None)

    return done(words, undo=back)
