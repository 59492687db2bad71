"""One thing that the API can do: where, with what, and what comes back. The routes and the OpenAPI document are both made of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown
from queuectl.web.desk import Desk

Schema = Mapping[str, Any]
TEXT: Final[Schema] = MappingProxyType({"type": "string"})
MOST_VALUES: Final = 100  # of a parameter that may be given several times


class Call(NamedTuple):
    """What was asked, read and checked as far as its operation says."""

    path: Mapping[str, str]
    query: Mapping[str, Any]  # every parameter of the operation, None or () for those not given
    body: Any = None
    headers: Mapping[str, str | None] = {}  # those of the operation, by lower-case name


class Made(NamedTuple):
    """An answer that says that something is new, and where it is from now on, below /api/v1."""

    value: Any
    is_new: bool = True
    location: str | None = None


def without_nul(text: str, subject: str) -> str:
    """No name and no text of ours holds one, and PostgreSQL cannot even be asked about it."""
    if "\0" in text:
        raise InvalidInput(subject, "holds a NUL", hint="leave it away")
    return text


class Room(Enum):
    ASK = "ask"
    WAIT = "wait"


class Param(NamedTuple):
    """A parameter of the query. `many`: may be given several times."""

    name: str
    about: str
    schema: Schema = TEXT
    many: bool = False

    def read(self, given: Sequence[str]) -> Any:
        values = [self._one(text) for text in given]
        if len(values) > MOST_VALUES:
            raise InvalidInput(self.name, f"given more than {MOST_VALUES} times", hint="ask in parts")
        if self.many:
            return tuple(values)
        if len(values) > 1:
            raise InvalidInput(self.name, "given more than once", hint="give it once")
        return values[0] if values else self.schema.get("default")

    def _one(self, text: str) -> Any:
        without_nul(text, self.name)
        match self.schema["type"]:
            case "integer":
                return self._integer(text)
            case "boolean":
                if text not in {"true", "false"}:
                    raise InvalidInput(self.name, f"expected true or false, got {shown(text)}", hint="true or false")
                return text == "true"
            case _:
                known = self.schema.get("enum")
                if known is not None and text not in known:
                    raise UnknownName(self.name, text, nearest=nearest(text, known), known=known)
                return text

    def _integer(self, text: str) -> int:
        low, high = self.schema.get("minimum", 0), self.schema.get("maximum", 2**31 - 1)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20) or not low <= int(text) <= high:
            problem = f"expected a whole number from {low} to {high}, got {shown(text)}"
            raise InvalidInput(self.name, problem, hint=f"like {self.name}={max(low, min(50, high))}")
        return int(text)


class Operation(NamedTuple):
    method: str
    path: str  # below /api/v1, with {names}
    does: Callable[[Desk, Call], Any]
    summary: str
    answer: Schema
    params: tuple[Param, ...] = ()
    body: Schema | None = None
    status: int = 200
    tag: str = "jobs"
    room: Room = Room.ASK
    headers: tuple[Param, ...] = ()
    media_type: str = "application/json"
    also: Mapping[str, Schema] = {}  # other media types that it may answer in

    @property
    def name(self) -> str:
        return self.does.__name__

    @property
    def changes(self) -> bool:
        return self.method != "GET"

    def read_query(self, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
        known = [param.name for param in self.params]
        for name, _ in given:
            if name not in known:
                raise UnknownName("parameter", name, nearest=nearest(name, known), known=known or ["none"])
        return {param.name: param.read([value for name, value in given if name == param.name]) for param in self.params}
