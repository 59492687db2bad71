"""The OpenAPI document as a page to read: made here, of nothing but the document."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from queuectl.web import openapi

_TEMPLATES: Final = os.path.join(os.path.dirname(__file__), "pages", "templates")


@cache
def page() -> str:
    templates = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("api.html").render(_values())


def _values() -> dict[str, Any]:
    document = openapi.document()
    tags: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            tags.setdefault(about["tags"][0], []).append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": about,
                    "body": _text(about.get("requestBody", {}).get("content", {}).get("application/json", {})),
                    "answer": _text(next(iter(about["responses"].values()))["content"]),
                }
            )
    schemas = [(name, _text(schema)) for name, schema in document["components"]["schemas"].items()]
    return {"document": document, "tags": list(tags.items()), "schemas": schemas}


def _text(value: Any) -> str:
    return json.dumps(value, indent=2) if value else ""
