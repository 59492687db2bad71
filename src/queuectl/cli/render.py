"""The one renderer: a Result as a table, as JSON or as bare ids."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, assert_never

from queuectl.cli.app import App
from queuectl.cli.exits import DONE, REFUSED
from queuectl.cli.failure import report_refusals
from queuectl.cli.printable import printable, printable_json
from queuectl.cli.result import Done, Lines, Nothing, Raw, Result, Sheet, Stream, Table
from queuectl.errors import QueuectlError

AT_ONCE = 1000  # lines in one piece: a hundred thousand ids take a fifth of a second one by one
MANY = 20  # ids that nobody wants to read one by one


def render(app: App, result: Result) -> int:
    """Print `result` and return the exit status."""
    as_json = app.flags.json
    match result:
        case Nothing():
            return result.exit_code
        case Raw():
            for chunk in result.chunks:
                app.write_bytes(chunk)
            return _code(result)
        case Lines():
            if as_json:
                _print_json(app, result.value)
            else:
                for line in result.lines:
                    app.print(line)
            return result.exit_code
        case Sheet():
            if as_json:
                _print_json(app, result.value() if callable(result.value) else result.value)
            elif app.flags.quiet:
                if result.id is not None:
                    app.print(printable(result.id))
            else:
                for line in result.people():
                    app.print(line)
                if result.note is not None and app.is_talking and app.stdout_is_terminal:
                    app.say(result.note())
            return result.exit_code
        case Stream():
            if as_json:
                _print_array(app, map(result.to_json, result.rows), live=result.live)
            elif result.summary is not None and app.stdout_is_terminal and not app.flags.quiet:
                app.print(result.summary())
            elif result.live:
                for row in result.rows:
                    app.print(result.to_line(row), flush=True)
            else:
                lines = map(result.to_line, result.rows)
                while some := list(islice(lines, AT_ONCE)):
                    app.print("\n".join(some))
            return _code(result)
        case Table():
            if as_json:
                _print_array(app, map(result.to_json, result.rows))
            elif app.flags.quiet:
                for row in result.rows:
                    app.print(printable(result.to_id(row) if result.to_id else result.columns[0].cell(row)))
            else:
                _print_table(app, result)
            return result.exit_code
        case Done():
            return _render_done(app, result)
        case unreachable:
            assert_never(unreachable)


def _print_table(app: App, table: Table[Any]) -> None:
    from queuectl.cli.table import lay_out

    lines = list(lay_out(table.rows, table.columns, width=app.width, colour=app.colour_on(app.stdout)))
    # In a pipe the header stays: a program that skips one line is right for any number of rows.
    if len(lines) == 1 and app.stdout_is_terminal:
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
        is_summed_up = result.is_bulk and len(result.done) > MANY and app.stdout_is_terminal and not app.flags.quiet
        if is_summed_up:
            app.print(f"{result.verb} {len(result.done):,} jobs")
        for job_id in () if is_summed_up else result.done:
            app.print(printable(job_id) if app.flags.quiet else f"{result.verb} {printable(job_id)}")
        for note in result.notes:
            app.say(note)
    report_refusals(app, result.refused, of=len(result.done) + len(result.refused))
    return REFUSED if result.refused else DONE


def to_json(value: Any) -> str:
    import json

    return printable_json(json.dumps(value, ensure_ascii=False))


def _print_json(app: App, value: Any) -> None:
    # On a terminal somebody reads it; in a pipe one line is one value.
    if app.stdout_is_terminal:
        import json

        app.print(printable_json(json.dumps(value, ensure_ascii=False, indent=2)))
    else:
        app.print(to_json(value))


def _print_array(app: App, values: Iterable[Any], *, live: bool = False) -> None:
    """One element a line, never more than one in memory.

    Nothing is printed before the first element is there: an error until then leaves stdout empty. A `live` array is closed
    also when something ends it: what it holds has happened. Any other stays open then, for it is not all there is.
    """
    opening = "["
    try:
        for value in values:
            text = f"{opening}\n{to_json(value)}"
            opening = ","  # noted before anybody can see it: whoever does may press Ctrl-C at once
            app.write(text, flush=live)
    except (KeyboardInterrupt, QueuectlError):
        if live and opening == ",":
            app.print("\n]", flush=True)
        raise
    app.print("[]" if opening == "[" else "\n]")


def _code(result: Stream[Any] | Raw) -> int:
    return result.exit_code() if callable(result.exit_code) else result.exit_code
