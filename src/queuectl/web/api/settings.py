"""The settings of the store."""

from __future__ import annotations

from typing import Any, Final

from queuectl.config import Entry
from queuectl.errors import InvalidInput
from queuectl.job.shown import shown
from queuectl.queue import settings
from queuectl.web.api.listing import PAGING, listing, page
from queuectl.web.api.operation import Call, Operation
from queuectl.web.api.schemas import TEXT, array, exactly, ref
from queuectl.web.api.words import an_object
from queuectl.web.desk import Desk


def list_settings(desk: Desk, call: Call) -> Any:
    return page(call, [_shown(entry) for entry in settings.list_settings(desk.settings)], name="key")


def get_setting(desk: Desk, call: Call) -> Any:
    settings.require_key(call.path["key"])
    return _shown(settings.get_setting(desk.settings, call.path["key"]))


def set_setting(desk: Desk, call: Call) -> Any:
    value = an_object(call.body, "body", known=["value"]).get("value")
    if isinstance(value, dict | list) or value is None:
        hint = 'like {"value": 5} or {"value": "1h30m"}'
        raise InvalidInput("value", f"expected a text, a number or a boolean, got {shown(value)}", hint=hint)
    return _change(desk, call.path["key"], str(value).lower() if isinstance(value, bool) else str(value))


def unset_setting(desk: Desk, call: Call) -> Any:
    return _change(desk, call.path["key"], None)


def reset_settings(desk: Desk, call: Call) -> Any:
    return {"unset": settings.reset(reads=lambda: desk.reads, open_store=desk.open_store)}


def _change(desk: Desk, key: str, value: str | None) -> Any:
    (name,) = settings.change({key: value}, reads=lambda: desk.reads, open_store=desk.open_store)
    return _shown(settings.get_setting(desk.settings, name))


def _shown(entry: Entry) -> dict[str, Any]:
    return {"key": entry.key, "value": entry.value, "default": entry.default, "source": entry.source}


OPERATIONS: Final = (
    Operation(
        "GET",
        "/config",
        list_settings,
        "Every setting, and where its value comes from.",
        listing(ref("Setting")),
        PAGING,
        tag="config",
    ),
    Operation(
        "DELETE",
        "/config",
        reset_settings,
        "Every setting back to its default.",
        exactly(unset=array(TEXT)),
        tag="config",
    ),
    Operation("GET", "/config/{key}", get_setting, "One setting.", ref("Setting"), tag="config"),
    Operation(
        "PUT",
        "/config/{key}",
        set_setting,
        "Change a setting, for everybody who uses this store.",
        ref("Setting"),
        body=exactly(value={"type": ["string", "number", "boolean"]}),
        tag="config",
    ),
    Operation("DELETE", "/config/{key}", unset_setting, "Back to the default.", ref("Setting"), tag="config"),
)
