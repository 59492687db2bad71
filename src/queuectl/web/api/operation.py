"""An operation of the API: its route, parameters and schemas. The routes and the OpenAPI document are generated from these.

    QUEUES = Operations("queues")

    @QUEUES("GET /queues/{name}", "Show a queue.", ref("Queue"))
    def show_queue(session: WebSession, call: ApiRequest) -> Any: ...

A literal path is declared before one with a parameter in the same position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.operations.pages import decode_cursor, encode_cursor, invalid_cursor
from queuectl.operations.query import parse_filter
from queuectl.store.reads import Reads
from queuectl.store.types import Filter
from queuectl.text import closest_match, short_repr
from queuectl.web.middleware import MEDIA_TYPE
from queuectl.web.schemas import COMPONENTS, DURATION, NAME, TEXT, Schema, array, exactly, maybe, only, ref

MAX_PARAM_VALUES: Final = 100  # of a repeatable parameter
MAX_PAGE_SIZE: Final = 1000


class ApiRequest(NamedTuple):
    """A request whose query and headers have been parsed as its operation declares them."""

    path: Mapping[str, str]
    query: Mapping[str, Any]  # every parameter of the operation; None or () if it is omitted
    body: Any = None  # see Operation.read_body
    headers: Mapping[str, str | None] = {}  # those that the operation declares, by lower-case name


class Created(NamedTuple):
    """A response with status 201 if `is_new`. `location`: its path below /api/v1."""

    value: Any
    is_new: bool = True
    location: str | None = None


def reject_nul(text: str, subject: str) -> str:
    """Raises InvalidInput for text with a NUL character, which PostgreSQL cannot store."""
    if "\0" in text:
        raise InvalidInput(subject, "contains a NUL character", hint="remove it")
    return text


class Param(NamedTuple):
    """A query parameter. `many`: may be repeated."""

    name: str
    about: str
    schema: Schema = TEXT
    many: bool = False

    def read(self, given: Sequence[str]) -> Any:
        values = [self._one(text) for text in given]
        if len(values) > MAX_PARAM_VALUES:
            raise InvalidInput(self.name, f"given more than {MAX_PARAM_VALUES} times", hint="split the request")
        if self.many:
            return tuple(values)
        if len(values) > 1:
            raise InvalidInput(self.name, "given more than once", hint="give it once")
        return values[0] if values else self.schema.get("default")

    def _one(self, text: str) -> Any:
        reject_nul(text, self.name)
        match self.schema["type"]:
            case "integer":
                return self._integer(text)
            case "boolean":
                if text not in {"true", "false"}:
                    raise InvalidInput(
                        self.name, f"expected true or false, got {short_repr(text)}", hint="true or false"
                    )
                return text == "true"
            case _:
                known = self.schema.get("enum")
                if known is not None and text not in known:
                    raise UnknownName(self.name, text, nearest=closest_match(text, known), known=known)
                return text

    def _integer(self, text: str) -> int:
        low, high = self.schema.get("minimum", 0), self.schema.get("maximum", 2**31 - 1)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20) or not low <= int(text) <= high:
            problem = f"expected a whole number from {low} to {high}, got {short_repr(text)}"
            raise InvalidInput(self.name, problem, hint=f"for example {self.name}={max(low, min(50, high))}")
        return int(text)


Handler = Callable[..., Any]
Declare = Callable[[Handler], Handler]


class Operation(NamedTuple):
    """`handler` gets a store session and the ApiRequest; that of a stream is a coroutine, which gets the request of Starlette, its
    parsed query, the thread pools and the feed of events."""

    method: str
    path: str  # below /api/v1, with {names}
    handler: Handler
    summary: str
    response: Schema
    params: tuple[Param, ...] = ()
    body: Schema | None = None
    checks_types: bool = (
        True  # of flags and texts in the body; False: what the handler calls does, with hints of its own
    )
    status: int = 200
    tag: str = "jobs"
    slow: bool = False  # may wait long: uses a separate thread pool
    headers: tuple[Param, ...] = ()
    media_type: str = "application/json"
    also: Mapping[str, Schema] = {}  # other media types of the response

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def changes(self) -> bool:
        return self.method != "GET"

    @property
    def is_stream(self) -> bool:
        return iscoroutinefunction(self.handler)

    def read_query(self, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
        known = [param.name for param in self.params]
        for name, _ in given:
            if name not in known:
                raise UnknownName("parameter", name, nearest=closest_match(name, known), known=known or ["none"])
        return {param.name: param.read([value for name, value in given if name == param.name]) for param in self.params}

    def read_body(self, value: Any) -> Any:
        """Check a body. If its schema lists all its fields, return those given; otherwise the handler reads it."""
        if value is not None and self.body is None:
            raise InvalidInput("body", "expected none", hint="omit it")
        if self.body is None or self.body.get("additionalProperties") is not False:
            return value
        fields: Mapping[str, Schema] = self.body["properties"]
        given = parse_object(value, "body", known=list(fields))
        return (
            {name: read_field(one, name, fields[name]) for name, one in given.items()} if self.checks_types else given
        )


class Operations(list[Operation]):
    """The operations of a subject, in the order of their declaration. Called, it returns a decorator for a handler."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self._tag = tag

    def __call__(self, route: str, summary: str, response: Schema, **more: Any) -> Declare:
        """`route`: method and path. `more`: other fields of Operation."""
        method, path = route.split()

        def register(handler: Handler) -> Handler:
            self.append(Operation(method, path, handler, summary, response, **{"tag": self._tag, **more}))
            return handler

        return register


SELECTORS: Final = (
    Param("state", "Only jobs in one of these states. Comma-separated lists are accepted.", many=True),
    Param("queue", "Only jobs in one of these queues.", many=True),
    Param("tag", "Only jobs with all of these tags.", many=True),
    Param("batch", "Only jobs of one of these batches.", many=True),
    Param("fingerprint", "Only jobs that failed in one of these ways, see `GET /deaths`.", many=True),
    Param("worker", "Only jobs whose latest run is by one of these workers.", many=True),
    Param("error", "Only jobs with one of these texts in the error, in any case.", many=True),
    Param("since", "Only jobs enqueued since this time: a timestamp, or a duration before now."),
    Param("match", "Only jobs with this text in the command, in any case."),
    Param("q", "A query, for example `queue:mail error:timeout ffmpeg`. Its terms are added to the other parameters."),
)
LIMIT: Final = Param(
    "limit", "Maximum number of items.", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": 50}
)
CURSOR: Final = Param("cursor", "The `next_cursor` of the previous page.")

# The same selectors in a body: {"state": ["dead"], "queue": "mail"}
WHERE_SCHEMA: Final = only(
    **{param.name: {"oneOf": [NAME, {"type": "array", "items": NAME}]} for param in SELECTORS if param.many},
    since=DURATION,
    match=NAME,
    q=NAME,
)


def to_filter(values: Mapping[str, Any], reads: Reads) -> Filter:
    return parse_filter(
        states=values["state"],
        queues=values["queue"],
        tags=values["tag"],
        batches=values["batch"],
        fingerprints=values["fingerprint"],
        workers=values["worker"],
        errors=values["error"],
        since=values["since"],
        match=values["match"],
        query=values["q"],
        query_name="q",
        now_ms=reads.now_ms,
    )


def parse_where(value: object, reads: Reads) -> Filter:
    """Parse `where` of a body."""
    fields = parse_object(value, "where", known=[param.name for param in SELECTORS])
    read: dict[str, Any] = {}
    for param in SELECTORS:
        value = fields.get(param.name)
        read[param.name] = _names(value, param.name) if param.many else value
    return to_filter(read, reads)


def _names(value: object, subject: str) -> tuple[str, ...]:
    """Reject empty names: an unset variable must not select everything."""
    given = parse_texts(value, subject)
    if "" in given:
        raise InvalidInput(subject, "expected a name, got an empty text", hint="omit it")
    return given


def parse_object(value: object, subject: str, *, known: Sequence[str]) -> dict[str, Any]:
    """Return `value` if it is an object with these fields only; null is an empty object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(subject, f"expected an object, got {short_repr(value)}", hint=f"fields: {', '.join(known)}")
    for name in value:
        if name not in known:
            close = closest_match(name, known)
            hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
            raise InvalidInput(subject, f"unknown field {name!r}", hint=hint)
    return value


def parse_texts(value: object, subject: str) -> tuple[str, ...]:
    """Parse a list of texts; one text is a list of one, null an empty list."""
    if value is None:
        return ()
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(
            subject, f"expected text or a list of texts, got {short_repr(value)}", hint='for example ["a", "b"]'
        )
    return tuple(reject_nul(one, subject) for one in given)


def read_field(value: Any, name: str, schema: Schema) -> Any:
    """Check a flag, a text or a list of texts of a body. The operations check values of other types."""
    kind = schema.get("type")
    match [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]:
        case _ if value is None:
            return None
        case ["boolean"] if not isinstance(value, bool):
            problem = f"expected true or false, got {short_repr(value)}"
            raise InvalidInput(name, problem, hint=f'for example {{"{name}": true}}')
        case ["string"] if not isinstance(value, str):
            raise InvalidInput(name, f"expected text, got {short_repr(value)}", hint="write it in quotes")
        case ["array"] if schema["items"].get("type") == "string":
            return parse_texts(value, name)
    return value


# The default is large: most clients never need a second page.
PAGING: Final = (LIMIT._replace(schema={**LIMIT.schema, "default": MAX_PAGE_SIZE}), CURSOR)


def listing(of: Schema) -> Schema:
    return exactly(items=array(of), next_cursor=maybe("string"))


def paginate(call: ApiRequest, rows: Sequence[Mapping[str, Any]], *, name: str) -> dict[str, Any]:
    """Return one page of a list that was read completely. `name`: the field that identifies an item.

    Lists of jobs are paginated by the database instead, see operations/query.py.
    """
    begin = 0 if call.query["cursor"] is None else _offset(call.query["cursor"], [row[name] for row in rows])
    end = begin + call.query["limit"]
    last = encode_cursor([end - 1, rows[end - 1][name]]) if end < len(rows) else None
    return {"items": rows[begin:end], "next_cursor": last}


def read_cursor(text: str, *kinds: type) -> list[Any]:
    """Decode a cursor with fields of these types. Raises InvalidInput."""
    try:
        fields = decode_cursor(text)
        # Reject every encoding but our own.
        if [type(field) for field in fields] != [*kinds] or encode_cursor(fields) != text:
            raise ValueError
    except (ValueError, TypeError, RecursionError) as exc:
        raise invalid_cursor() from exc
    return fields


def _offset(cursor: str, names: Sequence[str]) -> int:
    """The index after the last item of the previous page. If that item was removed, its successor is now in its place."""
    place, last = read_cursor(cursor, int, str)
    return names.index(last) + 1 if last in names else max(0, min(place, len(names)))


# ── the OpenAPI document ────────────────────────────────────────────────────────────────────────────────────────────

_ERROR_DESCRIPTIONS: Final = {
    400: "The request body is incomplete.",
    401: "The token is missing or invalid.",
    403: "The token is read-only, the origin is not allowed, or the feature is disabled on this server.",
    404: "Not found.",
    408: "Timeout while reading the request body.",
    409: "Conflict with the current state.",
    413: "The request body is too large.",
    415: "The request body is not JSON.",
    421: "The `Host` header is not allowed.",
    422: "Invalid request.",
    500: "Internal error.",
    503: "The database is unavailable, or too many requests are waiting.",
    504: "Timeout while waiting.",
}
_READ_ERRORS: Final = (400, 401, 403, 404, 409, 421, 422, 500, 503)
_WRITE_ERRORS: Final = (*_READ_ERRORS, 408, 413, 415)
_PATH_PARAMETERS: Final = {
    "id": "The ID. For a job, a unique prefix or `last` also works.",
    "name": "The name.",
    "key": "The name of the setting.",
}


def describe(operation: Operation) -> dict[str, Any]:
    """The operation in the OpenAPI document."""
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
        good["200"] = {"description": "It already exists.", "content": content}
    problem = {MEDIA_TYPE: {"schema": ref("Problem")}}
    statuses = [*(_WRITE_ERRORS if operation.changes else _READ_ERRORS), *([504] if operation.slow else [])]
    refused = {str(code): {"description": _ERROR_DESCRIPTIONS[code], "content": problem} for code in sorted(statuses)}
    return {**good, **refused}
