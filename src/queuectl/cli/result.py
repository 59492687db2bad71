"""What a command hands to the renderer. A result says what there is; `render.py` decides how it is shown.

`exit_code` may be a function where it is known only after the rows were read. Plain classes, since each enqueue pays for
making them: seven named tuples take a millisecond and a half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from queuectl.errors import QueuectlError

T = TypeVar("T")


class Column(Generic[T]):
    """One column of a table. `cell` gives plain text, which the renderer makes safe to print.

    A `flexible` one may be cut to fit a terminal, an `optional` one is left out when all of its cells are empty. On a
    terminal too narrow for all of them the one with the highest `spare` is left out first, one with 0 never.
    """

    def __init__(
        self,
        title: str,
        cell: Callable[[T], str],
        *,
        style: Callable[[T], str | None] | str | None = None,
        right: bool = False,
        flexible: bool = False,
        optional: bool = False,
        spare: int = 0,
    ) -> None:
        self.title = title
        self.cell = cell
        self.style = style
        self.right = right
        self.flexible = flexible
        self.optional = optional
        self.spare = spare


class Table(Generic[T]):
    """Rows for people; with --json one array, streamed: `rows` may be a generator of a million; --quiet: the ids.

    For people only: `empty` is said instead of a table without rows, `footer` below the table.
    """

    def __init__(
        self,
        rows: Iterable[T],
        columns: Sequence[Column[T]],
        *,
        to_json: Callable[[T], Any],
        to_id: Callable[[T], str] | None = None,
        empty: str = "nothing to show",
        footer: str | None = None,
        exit_code: int = 0,
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.to_json = to_json
        self.to_id = to_id
        self.empty = empty
        self.footer = footer
        self.exit_code = exit_code


class Stream(Generic[T]):
    """One line for each row, printed as it comes; with --json one array, element by element.

    `summary` is for people on a terminal, instead of the lines. `live`: somebody waits for each row, so flush it.
    """

    def __init__(
        self,
        rows: Iterable[T],
        *,
        to_line: Callable[[T], str],
        to_json: Callable[[T], Any],
        summary: Callable[[], str] | None = None,
        live: bool = False,
        exit_code: int | Callable[[], int] = 0,
    ) -> None:
        self.rows = rows
        self.to_line = to_line
        self.to_json = to_json
        self.summary = summary
        self.live = live
        self.exit_code = exit_code


class Sheet:
    """One thing: `value` (or what it gives when called) with --json, the lines of `people()` else, `id` with --quiet.

    Lines may hold colours (`app.paint`), so whoever makes them passes foreign text through `printable`. `note` is said
    after them, to people on a terminal only.
    """

    def __init__(
        self,
        value: Any,
        *,
        people: Callable[[], Iterable[str]],
        id: str | None = None,
        note: Callable[[], str] | None = None,
        exit_code: int = 0,
    ) -> None:
        self.value = value
        self.people = people
        self.id = id
        self.note = note
        self.exit_code = exit_code


class Lines:
    """Plain lines, the same on a terminal and in a pipe; `value` with --json."""

    def __init__(self, lines: Iterable[str], value: Any, *, exit_code: int = 0) -> None:
        self.lines = lines
        self.value = value
        self.exit_code = exit_code


class Done:
    """What became of the ids that a command was given: `verb` says it for people ("cancelled"), `notes` follow.

    `is_bulk`: they were chosen, not named. If they are many, people on a terminal get their number.
    """

    def __init__(
        self,
        done: Sequence[str],
        *,
        refused: Sequence[tuple[str, QueuectlError]] = (),
        verb: str = "done",
        notes: Sequence[str] = (),
        is_bulk: bool = False,
    ) -> None:
        self.done = done
        self.refused = refused
        self.verb = verb
        self.notes = notes
        self.is_bulk = is_bulk


class Raw:
    """Bytes exactly as they are, each chunk flushed as it comes."""

    def __init__(self, chunks: Iterable[bytes], *, exit_code: int | Callable[[], int] = 0) -> None:
        self.chunks = chunks
        self.exit_code = exit_code


class Nothing:
    """There is nothing to print."""

    def __init__(self, *, exit_code: int = 0) -> None:
        self.exit_code = exit_code


Result = Table[Any] | Stream[Any] | Sheet | Lines | Done | Raw | Nothing
