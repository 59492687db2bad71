"""All operations of the API, the OpenAPI document that is generated from them, and its page."""

from __future__ import annotations

import json
import re
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from queuectl import __version__
from queuectl.web import sse
from queuectl.web.api import admin, alerts, bulk, jobs, logs, queues
from queuectl.web.api.operation import Operation, Param
from queuectl.web.middleware import MEDIA_TYPE
from queuectl.web.pages.render import open_templates
from queuectl.web.schemas import COMPONENTS, Schema, ref

ROOT: Final = "/api/v1"

OPERATIONS: Final[tuple[Operation, ...]] = (
    *sse.EVENTS,
    *bulk.BULK,
    *jobs.JOBS,
    *logs.STREAMS,
    *bulk.DLQ,
    *queues.QUEUES,
    *queues.BATCHES,
    *queues.CRON,
    *alerts.ALERTS,
    *admin.STATUS,
    *admin.WORKERS,
    *admin.CONFIG,
    *admin.MAINTENANCE,
)

_ERROR_DESCRIPTIONS: Final = {
    400: "The body ended early.",
    401: "No token, or an invalid one.",
    403: "A read-only token, a request from another origin, or a feature that is switched off on this server.",
    404: "Not found.",
    408: "Timeout while reading the body.",
    409: "Conflict with the current state.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The Host header names another server.",
    422: "Invalid request.",
    500: "Internal error.",
    503: "The database is unavailable, or too many requests are waiting.",
    504: "Timeout while waiting.",
}
_READ_ERRORS: Final = (400, 401, 403, 404, 409, 421, 422, 500, 503)
_WRITE_ERRORS: Final = (*_READ_ERRORS, 408, 413, 415)
_PATH_PARAMETERS: Final = {
    "id": "An ID. For a job, also a unique prefix, or `last`.",
    "name": "Its name.",
    "key": "Its key.",
}


def document() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(ROOT + operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "queuectl",
            "version": __version__,
            "description": "A durable background job queue for shell commands. Every call needs a token; errors are problem documents.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {"schemas": COMPONENTS, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }


def _describe(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [
            *(_path_parameter(name) for name in re.findall(r"{(\w+)}", operation.path)),
            *(_parameter(param, "query") for param in operation.params),
            *(_parameter(param, "header") for param in operation.headers),
        ],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {
            "required": _is_required(operation.body),
            "content": {"application/json": {"schema": operation.body}},
        }
    return described


def _is_required(body: Schema) -> bool:
    """Whether the schema requires a body."""
    named = COMPONENTS[body["$ref"].rpartition("/")[2]] if "$ref" in body else {}
    return bool({"required", "oneOf", "minProperties"} & (body.keys() | named.keys()))


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": _PATH_PARAMETERS[name], "schema": schema}


def _parameter(param: Param, place: str) -> dict[str, Any]:
    schema = {"type": "array", "items": dict(param.schema)} if param.many else dict(param.schema)
    return {"name": param.name, "in": place, "required": False, "description": param.about, "schema": schema}


def _responses(operation: Operation) -> dict[str, Any]:
    kinds = {operation.media_type: operation.response, **operation.also}
    content = {kind: {"schema": schema} for kind, schema in kinds.items()}
    good = {str(operation.status): {"description": HTTPStatus(operation.status).phrase, "content": content}}
    if operation.status == HTTPStatus.CREATED:
        good["200"] = {"description": "It already existed.", "content": content}
    problem = {MEDIA_TYPE: {"schema": ref("Problem")}}
    statuses = [*(_WRITE_ERRORS if operation.changes else _READ_ERRORS), *([504] if operation.slow else [])]
    refused = {str(code): {"description": _ERROR_DESCRIPTIONS[code], "content": problem} for code in sorted(statuses)}
    return {**good, **refused}


@cache
def page() -> str:
    return open_templates().get_template("api.html").render(_values())


def _values() -> dict[str, Any]:
    described = document()
    tags: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
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
    schemas = [(name, _text(schema)) for name, schema in described["components"]["schemas"].items()]
    return {"document": described, "tags": list(tags.items()), "schemas": schemas}


def _text(value: Any) -> str:
    return json.dumps(value, indent=2) if value else ""
