"""Templates (`--for-each`): one job for each line of a list.

    {}  the line      {/}  its base name      {.}  without its extension      {n}  its number      {1} {2} …  its columns

In a shell command each placeholder becomes one quoted word, whatever the line contains. Inside quotes its own quotes would close
those around it, and the line could inject a command. So the scanner follows the quoting rules that all shells share, and rejects a
placeholder inside quotes or after anything that it does not parse (a here-document, `…`, $(…) inside quotes, arithmetic). In an argv,
which no shell parses, the line is inserted unquoted. A backslash before a placeholder makes it plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput, UsageError


class TemplateLine(NamedTuple):
    text: str
    number: int  # from 1
    columns: Sequence[str] | None  # None: without --colsep


class _Text:
    """Literals and placeholders."""

    def __init__(self) -> None:
        self._form = ""  # for the operator %, the fastest way to fill 100,000 lines
        self._values: list[Callable[[TemplateLine], str]] = []

    def literal(self, text: str) -> None:
        self._form += text.replace("%", "%%")

    def placeholder(self, name: str) -> None:
        self._form += "%s"
        self._values.append(_VALUES.get(name) or partial(_column, name))

    @property
    def is_fixed(self) -> bool:
        return not self._values

    def fill(self, line: TemplateLine, put: Callable[[str], str]) -> str:
        return self._form % tuple([put(value(line)) for value in self._values])


# Makes the fields of a job from a line.
Template = Callable[[TemplateLine], dict[str, object]]


def shell_template(text: str, *, columns: bool) -> Template:
    """Raises InvalidInput for a placeholder that would not be one word, UsageError if there is none."""
    command, end = _Text(), 0
    for start, stop, name in find_placeholders(text, columns=columns):
        command.literal(text[end:start])
        command.placeholder(name)
        end = stop
    command.literal(text[end:])
    if command.is_fixed:
        raise UsageError(
            "no placeholder in the command: all jobs would be the same",
            hint="write {} where the line belongs, like 'gzip {}'",
        )
    return lambda line: {"command": command.fill(line, shell_quote)}


def argv_template(arguments: Sequence[str], *, columns: bool) -> Template:
    """Without a placeholder the line becomes the last argument, as with xargs."""
    argv = [_read_argument(argument, columns=columns) for argument in arguments]
    if all(argument.is_fixed for argument in argv):
        argv.append(_read_argument("{}", columns=columns))
    return lambda line: {"argv": [argument.fill(line, str) for argument in argv]}


def shell_quote(word: str) -> str:
    """Quote one word for a shell, always: an unquoted `2` before `>`, `if` or `a=b` would have another meaning."""
    return "'" + word.replace("'", "'\\''") + "'"


def _read_argument(argument: str, *, columns: bool) -> _Text:
    text, end = _Text(), 0
    for hit in _ESCAPED.finditer(argument):
        text.literal(argument[end : hit.start()])
        if hit[1]:
            text.literal(hit[0][1:])
        elif hit[2].isdigit() and not columns:
            raise no_columns_error(hit[0])
        else:
            text.placeholder(hit[2])
        end = hit.end()
    text.literal(argument[end:])
    return text


def _column(name: str, line: TemplateLine) -> str:
    columns = line.columns or ()
    if int(name) > len(columns):
        found = "one column" if len(columns) == 1 else f"{len(columns)} columns"
        raise InvalidInput(f"{{{name}}}", f"the line has {found}", hint="check --colsep, or the line")
    return columns[int(name) - 1]


def _stem(line: TemplateLine) -> str:
    path = line.text
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    # A name that only starts with dots has no extension: .profile, ..
    return folder + slash + stem if dot and stem.strip(".") else path


# By the text inside the braces; all others are columns.
_VALUES: Final[dict[str, Callable[[TemplateLine], str]]] = {
    "": lambda line: line.text,
    "n": lambda line: str(line.number),
    "/": lambda line: line.text.rstrip("/").rpartition("/")[2] or line.text,
    ".": _stem,
}


MAX_HINT_CHARS: Final = 200
PLACEHOLDER: Final = re.compile(r"\{([/.n]?|[1-9][0-9]?)\}")
_ESCAPED: Final = re.compile(rf"(\\?){PLACEHOLDER.pattern}")

# ${name} is a plain variable.
_VARIABLE: Final = re.compile(r"\$\{(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}")
# Syntax that the scanner does not parse, outside quotes and inside "…".
_UNSUPPORTED: Final = re.compile(r"`|\$\(\(|\(\(|\$\{|\$\[|\$'|<<")
_UNSUPPORTED_IN_QUOTES: Final = re.compile(r"`|\$\(|\$\{|\$\[")
# A new word starts after these, so that a # starts a comment.
_WORD_BREAKS: Final = frozenset(" \t\n;|&()<>")


class Placeholder(NamedTuple):
    start: int
    stop: int
    name: str  # the text inside the braces


class _Context(Enum):
    PLAIN = auto()
    SINGLE = auto()
    DOUBLE = auto()
    COMMENT = auto()
    LOST = auto()


def find_placeholders(text: str, *, columns: bool) -> list[Placeholder]:
    """The placeholders in `text`, in order. Raises InvalidInput with the position and what to write instead.

    Without `columns`, one with a number is an error, and inside quotes plain text.
    """
    scan = _ShellScanner(text)
    found = []
    while scan.at < len(text):
        hit = PLACEHOLDER.match(text, scan.at)
        if hit is None or (hit[1].isdigit() and not columns and scan.place is not _Context.PLAIN):
            scan.step()
            continue
        if hit[1].isdigit() and not columns:
            raise no_columns_error(hit[0])
        if scan.place is not _Context.PLAIN:
            raise scan.refusal(hit)
        found.append(Placeholder(hit.start(), hit.end(), hit[1]))
        scan.skip_word(hit.end())
    return found


def no_columns_error(placeholder: str) -> InvalidInput:
    hint = f"give the separator, like --colsep ,; for plain text write \\{placeholder}"
    return InvalidInput(placeholder, "a column, and there is no --colsep", hint=hint)


class _ShellScanner:
    def __init__(self, text: str) -> None:
        self.at = 0
        self.place = _Context.PLAIN
        self._text = text
        self._since = 0  # where the context started
        self._is_fresh = True  # a word may start here

    def step(self) -> None:
        char = self._text[self.at]
        match self.place:
            case _Context.PLAIN:
                self._step_plain(char)
            case _Context.DOUBLE:
                self._step_double(char)
            case _Context.SINGLE:
                self._step_until(char, "'")
            case _Context.COMMENT:
                self._step_until(char, "\n")
            case _:  # LOST: to the end
                self.at += 1

    def skip_word(self, to: int) -> None:
        self.at = to
        self._is_fresh = False

    def refusal(self, hit: re.Match[str]) -> InvalidInput:
        where = f"{hit[0]} at character {hit.start() + 1}"
        position = f"from character {self._since + 1} on"
        text = self._text
        match self.place:
            case _Context.SINGLE | _Context.DOUBLE:
                quote = text[self._since]
                instead = f"{text[: hit.start()]}{quote}{hit[0]}{quote}{text[hit.end() :]}"
                if len(instead) > MAX_HINT_CHARS or not instead.isprintable():
                    instead = f"{quote}a {quote}{hit[0]}{quote} b{quote}"
                hint = f"it is quoted automatically: close the quotes before it and reopen them after it: {instead}"
                return InvalidInput(where, f"inside quotes, {position}", hint=hint)
            case _Context.COMMENT:
                return InvalidInput(where, f"inside a comment, {position}", hint="take it out of the comment")
            case _:
                what = text[self._since] if text[self._since] == "`" else text[self._since : self._since + 2]
                hint = f'assign it to a variable first, like f={hit[0]}; … "$f"'
                return InvalidInput(where, f"behind {what}, {position}, where it may not be one word", hint=hint)

    def _step_plain(self, char: str) -> None:
        text, at = self._text, self.at
        if char == "\\":
            # A backslash before a newline continues the line; any other escaped character belongs to a word.
            self._is_fresh = self._is_fresh and text[at + 1 : at + 2] == "\n"
            self.at += 2
        elif variable := _VARIABLE.match(text, at):
            self.skip_word(variable.end())
        elif _UNSUPPORTED.match(text, at):
            self._enter(_Context.LOST)
        elif char == "'":
            self._enter(_Context.SINGLE)
        elif char == '"':
            self._enter(_Context.DOUBLE)
        elif char == "#" and self._is_fresh:
            self._enter(_Context.COMMENT)
        else:
            self._is_fresh = char in _WORD_BREAKS
            self.at += 1

    def _step_double(self, char: str) -> None:
        if char == "\\":
            self.at += 2
        elif variable := _VARIABLE.match(self._text, self.at):
            self.at = variable.end()
        elif _UNSUPPORTED_IN_QUOTES.match(self._text, self.at):
            self._enter(_Context.LOST)
        else:
            self._step_until(char, '"')

    def _step_until(self, char: str, end: str) -> None:
        if char == end:
            self.place = _Context.PLAIN
            self._is_fresh = char == "\n"
        self.at += 1

    def _enter(self, place: _Context) -> None:
        self.place, self._since = place, self.at
        self.at += 1
