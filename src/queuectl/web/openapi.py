"""The OpenAPI document, made of the same table as the routes."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final

from queuectl import __version__
from queuectl.web.api.components import COMPONENTS
from queuectl.web.api.operation import Operation, Param, Room, Schema
from queuectl.web.api.schemas import ref
from queuectl.web.api.table import OPERATIONS, ROOT
from queuectl.web.problems import MEDIA_TYPE

_REFUSALS: Final = {
    400: "No HTTP, or a body that ended early.",
    401: "No token, or a wrong one.",
    403: "A read-only token, a page of another origin, or something that this server was not started to accept.",
    404: "There is no such thing.",
    408: "The body took too long.",
    409: "Well said, but refused as things are.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "Meant for another host.",
    422: "The words could never be right.",
    500: "Something went wrong here.",
    503: "The store cannot serve now, or too many wait.",
    504: "What was waited for has not come in time.",
}
_OF_READING: Final = (400, 401, 403, 404, 409, 421, 422, 500, 503)
_OF_CHANGING: Final = (*_OF_READING, 408, 413, 415)


_PLACES: Final = {
    "id": "An id; of a job the beginning of one will do, or `last`.",
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
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
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
    """Whether nothing at all would be too little."""
    named = COMPONENTS[body["$ref"].rpartition("/")[2]] if "$ref" in body else {}
    return bool({"required", "oneOf", "minProperties"} & (body.keys() | named.keys()))


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": _PLACES[name], "schema": schema}


def _parameter(param: Param, place: str) -> dict[str, Any]:
    schema = {"type": "array", "items": dict(param.schema)} if param.many else dict(param.schema)
    return {"name": param.name, "in": place, "required": False, "description": param.about, "schema": schema}


def _responses(operation: Operation) -> dict[str, Any]:
    kinds = {operation.media_type: operation.answer, **operation.also}
    content = {kind: {"schema": schema} for kind, schema in kinds.items()}
    good = {str(operation.status): {"description": HTTPStatus(operation.status).phrase, "content": content}}
    if operation.status == HTTPStatus.CREATED:
        good["200"] = {"description": "It was there already.", "content": content}
    problem = {MEDIA_TYPE: {"schema": ref("Problem")}}
    statuses = [*(_OF_CHANGING if operation.changes else _OF_READING), *([504] if operation.room is Room.WAIT else [])]
    refused = {str(code): {"description": _REFUSALS[code], "content": problem} for code in sorted(statuses)}
    return {**good, **refused}
