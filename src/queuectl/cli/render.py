"""Results of commands, and the renderer that prints one as a table, as JSON or as bare ids.

`effect` describes the change that a command made, for the error message if its result cannot be printed. `exit_code` may
be a function where it is known only after the rows were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, assert_never

from queuectl.cli.app import App
from queuectl.cli.errors import DONE, REFUSED, report_refusals
from queuectl.errors import OutputFailed, QueuectlError
from queuectl.text import escape_control, escape_json
from queuectl.units import humanize_elapsed

if TYPE_CHECKING:
    from queuectl.cli.tables import Column  # which enqueue does without

T = TypeVar("T")


class Table(NamedTuple, Generic[T]):
    """Rows as a table; with --json one array, streamed, as `rows` may be a generator of a million; with --quiet the ids.

    `empty` is printed instead of a table without rows. `footer` is printed below a table.
    """

    rows: Iterable[T]
    columns: Sequence[Column[T]]
    to_json: Callable[[T], Any]
    to_id: Callable[[T], str] | None = None
    empty: str = "Nothing to show."
    footer: str | None = None
    exit_code: int = 0


class Stream(NamedTuple, Generic[T]):
    """One line for each row, printed as it arrives; with --json one array, element by element.

    `summary` is printed on a terminal instead of the lines. `live`: flush after each row.
    """

    rows: Iterable[T]
    to_line: Callable[[T], str]
    to_json: Callable[[T], Any]
    summary: Callable[[], str] | None = None
    live: bool = False
    effect: Callable[[], str | None] | None = None
    exit_code: int | Callable[[], int] = 0


class Details(NamedTuple):
    """A single object: the lines of `text()`; with --json `value`, or what it returns; with --quiet `id`.

    Lines may hold colors (`app.paint`): the command escapes untrusted text by `escape_control`. `note` is printed after
    them, on a terminal only.
    """

    value: Any
    text: Callable[[], Iterable[str]]
    id: str | None = None
    note: Callable[[], str] | None = None
    effect: str | None = None
    exit_code: int = 0


class Lines(NamedTuple):
    """Lines without colors, the same on a terminal and in a pipe; `value` with --json."""

    lines: Iterable[str]
    value: Any
    exit_code: int = 0


class Done(NamedTuple):
    """The ids that a command changed, each printed after `verb` ("cancelled"), and those that it refused.

    `is_bulk`: selected by filters. On a terminal many of them are printed as a number.
    """

    done: Sequence[str]
    refused: Sequence[tuple[str, QueuectlError]] = ()
    verb: str = "done"
    is_bulk: bool = False


class Raw(NamedTuple):
    """Bytes, unchanged, each chunk flushed."""

    chunks: Iterable[bytes]
    exit_code: int | Callable[[], int] = 0


class Nothing(NamedTuple):
    """No output."""

    exit_code: int = 0


Result = Table[Any] | Stream[Any] | Details | Lines | Done | Raw | Nothing


LINES_PER_WRITE = 1000  # 100,000 single writes take 0.2 s
MAX_LISTED_IDS = 20  # on a terminal, of a bulk change


def render(app: App, result: Result) -> int:
    """Print `result` and return the exit status."""
    if isinstance(result, Done):
        return _render_done(app, result)
    _print(app, result)
    return result.exit_code() if callable(result.exit_code) else result.exit_code


def _print(app: App, result: Table[Any] | Stream[Any] | Details | Lines | Raw | Nothing) -> None:
    as_json = app.flags.json
    match result:
        case Nothing():
            pass
        case Raw():
            for chunk in result.chunks:
                app.write_bytes(chunk)
        case Lines() | Details() if as_json:
            value = result.value() if callable(result.value) else result.value
            _print_json(app, select_fields(app, value))
        case Lines():
            for line in result.lines:
                app.print(line)
        case Details():
            if app.flags.quiet:
                if result.id is not None:
                    app.print(escape_control(result.id))
                return
            for line in result.text():
                app.print(line)
            if result.note is not None and app.shows_messages and app.stdout_is_terminal:
                app.say(result.note())
        case Stream():
            if as_json:
                _print_array(app, (select_fields(app, result.to_json(row)) for row in result.rows), live=result.live)
            elif result.summary is not None and app.stdout_is_terminal and not app.flags.quiet:
                app.print(result.summary())
            elif result.live:
                for row in result.rows:
                    app.print(result.to_line(row), flush=True)
            else:
                lines = map(result.to_line, result.rows)
                while some := list(islice(lines, LINES_PER_WRITE)):
                    app.print("\n".join(some))
        case Table():
            if as_json:
                _print_array(app, (select_fields(app, result.to_json(row)) for row in result.rows))
            elif app.flags.quiet:
                for row in result.rows:
                    app.print(escape_control(result.to_id(row) if result.to_id else result.columns[0].cell(row)))
            else:
                _print_table(app, result)
        case unreachable:
            assert_never(unreachable)


def print_result(app: App, result: Result) -> int:
    """As `render`. If the output fails, the error mentions the change that the command made."""
    try:
        code = render(app, result)
        app.write("", flush=True)
    except OutputFailed as error:
        effect = getattr(result, "effect", None)
        raise OutputFailed(error.problem, done=effect() if callable(effect) else effect) from error
    return code


def _print_table(app: App, table: Table[Any]) -> None:
    lines = list(table_lines(app, table.rows, table.columns))
    if len(lines) == 1:  # the header
        lines = [table.empty]
    for line in lines:
        app.print(line)
    if table.footer is not None:
        app.print(app.paint(table.footer, "dim"))


def _render_done(app: App, result: Done) -> int:
    if app.flags.json:
        refused = [{"id": ref, "code": error.code, "message": error.message} for ref, error in result.refused]
        _print_json(app, {"done": list(result.done), "refused": refused})
    else:
        is_summarized = (
            result.is_bulk and len(result.done) > MAX_LISTED_IDS and app.stdout_is_terminal and not app.flags.quiet
        )
        if is_summarized:
            app.print(f"{result.verb} {len(result.done):,} jobs")
        for job_id in () if is_summarized else result.done:
            app.print(escape_control(job_id) if app.flags.quiet else f"{result.verb} {escape_control(job_id)}")
    report_refusals(app, result.refused, of=len(result.done) + len(result.refused))
    return REFUSED if result.refused else DONE


def table_lines(app: App, rows: Iterable[T], columns: Sequence[Column[T]], *, indent: str = "") -> Iterator[str]:
    """The lines of a table that fits the terminal; the first one is the header."""
    from queuectl.cli.tables import lay_out

    width = None if app.width is None else app.width - len(indent)
    for line in lay_out(rows, columns, width=width, color=app.color_on(app.stdout)):
        yield indent + line


def field_lines(app: App, fields: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Labels and values, aligned; without those whose value is empty. The values are escaped already."""
    shown = [(label, text) for label, text in fields if text]
    width = max((len(label) for label, _ in shown), default=0)
    for label, text in shown:
        yield f"  {app.paint(label.rjust(width), 'dim')}  {text}"


def select_fields(app: App, value: Any) -> Any:
    """The fields of --json that are named, in that order; null for one that this command does not print."""
    return {name: value.get(name) for name in app.flags.fields} if app.flags.fields else value


def to_json(value: Any) -> str:
    import json

    return escape_json(json.dumps(value, ensure_ascii=False))


def _print_json(app: App, value: Any) -> None:
    # Indented on a terminal; in a pipe one value is one line.
    if app.stdout_is_terminal:
        import json

        app.print(escape_json(json.dumps(value, ensure_ascii=False, indent=2)))
    else:
        app.print(to_json(value))


def _print_array(app: App, values: Iterable[Any], *, live: bool = False) -> None:
    """One element a line, never more than one in memory.

    Nothing is printed before the first element: an error until then leaves stdout empty. A `live` array that is interrupted
    is closed, since its elements are facts. Any other stays open, and so invalid: it is incomplete.
    """
    opening = "["
    try:
        for value in values:
            text = f"{opening}\n{to_json(value)}"
            opening = ","  # set before the write: Ctrl-C may follow at once
            app.write(text, flush=live)
    except (KeyboardInterrupt, QueuectlError):
        if live and opening == ",":
            app.print("\n]", flush=True)
        raise
    app.print("[]" if opening == "[" else "\n]")


# ── progress bars ───────────────────────────────────────────────────────────────────────────────────────────────────

BAR_DELAY_SECONDS: Final = 0.4  # shorter operations show no bar, which would only flicker
REDRAW_SECONDS: Final = 0.1
CLEAR_LINE: Final = "\r\x1b[K"

# (done, total): the total may become known, or grow, during the operation.
Advance = Callable[[int, int | None], None]


class StatusLine:
    """A line on stderr that is updated in place, on a terminal only."""

    def __init__(self, app: App, *, delay: float = 0.0) -> None:
        """`delay`: seconds before it is drawn first."""
        self._app = app
        self._next_at = app.clock.monotonic() + delay
        self.is_drawn = False

    def draw(self, text: Callable[[], str], *, force: bool = False) -> None:
        """Draw it, unless it was drawn just now."""
        now = self._app.clock.monotonic()
        if self._app.shows_messages and (force or now >= self._next_at):
            self._next_at = now + REDRAW_SECONDS
            self._app.write_stderr(CLEAR_LINE + text())
            self.is_drawn = True


@contextmanager
def progress(app: App, title: str, *, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar on stderr, on a terminal only. Yields a function to call with the number done and the total."""
    began = app.clock.monotonic()
    line = StatusLine(app, delay=BAR_DELAY_SECONDS)

    def bar(done: int, of: int | None) -> str:
        from queuectl.cli.tables import bar_text

        counts = f"{done:,}/{of:,}" if of else f"{done:,}"
        elapsed = humanize_elapsed(round((app.clock.monotonic() - began) * 1000))
        return f"{title} {bar_text(done, 0, of, color=app.color_on(app.stderr))} {counts} {elapsed}"

    try:
        yield lambda done, of: line.draw(lambda: bar(done, of or total))
    finally:
        if line.is_drawn:
            app.write_stderr(CLEAR_LINE)
