"""Files of variables, NAME=value, as shells and containers read them; nothing in them is expanded.

What is wrong is said by file and line, and never by what stands there: it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from queuectl.errors import InvalidInput

LARGEST: Final = 1 << 20  # as much as all words of a program together
HINT: Final = "a line is NAME=value, NAME='value', NAME=\"value\" or # a comment"

_NAME: Final = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)=")
_BLANK: Final = " \t"
# What a backslash makes of the letter behind it between double quotes; before any other it stands for itself.
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def parse_env_file(data: bytes, *, subject: str) -> dict[str, str]:
    """The variables; of one that is there twice the last counts. `subject` names the file. Raises InvalidInput."""
    if len(data) > LARGEST:
        raise InvalidInput(subject, "it is larger than 1 MiB", hint="variables are for words; put the rest into a file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{subject}, line {line}", "it is not UTF-8", hint="save it as UTF-8") from error
    return dict(_Reader(text.replace("\r\n", "\n"), subject).variables())


class _Reader:
    def __init__(self, text: str, subject: str) -> None:
        self._text = text
        self._subject = subject
        self._at = 0
        self._line = 1

    def variables(self) -> list[tuple[str, str]]:
        found = []
        while self._at < len(self._text):
            self._skip(_BLANK)
            if self._peek() not in ("\n", "#", ""):
                found.append(self._variable())
            self._end_line()
        return found

    def _variable(self) -> tuple[str, str]:
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise self._wrong("it does not begin with NAME=")
        self._at = name.end()
        self._skip(_BLANK)
        match self._peek():
            case "'":
                value = self._quoted("'")
            case '"':
                value = self._quoted('"')
            case _:
                value = self._bare()
        if "\0" in value:
            raise self._wrong("it holds a NUL character")
        return name[1], value

    def _bare(self) -> str:
        """Up to the end of the line, or to a # behind a blank."""
        end = self._line_end()
        value = self._text[self._at : end]
        self._at = end
        comment = re.search(r"(?:\A|[ \t])#", value)
        return (value if comment is None else value[: comment.start()]).rstrip(_BLANK)

    def _quoted(self, quote: str) -> str:
        """Also over several lines."""
        began, at, value = self._line, self._at + 1, []
        while (letter := self._text[at : at + 1]) != quote:
            if not letter:
                self._line = began
                raise self._wrong(f"there is no {quote} to end what begins here")
            if letter == "\\" and quote == '"' and (meant := _ESCAPES.get(self._text[at + 1 : at + 2])) is not None:
                value.append(meant)
                at += 2
                continue
            self._line += letter == "\n"
            value.append(letter)
            at += 1
        self._at = at + 1
        behind = self._text[self._at : self._line_end()]
        if behind.strip(_BLANK) and not re.match(r"[ \t]+#", behind):
            raise self._wrong(f"something follows the {quote} that ends the value")
        self._at += len(behind)
        return "".join(value)

    def _end_line(self) -> None:
        self._at = self._line_end() + 1
        self._line += 1

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, letters: str) -> None:
        while self._peek() and self._peek() in letters:
            self._at += 1

    def _wrong(self, problem: str) -> InvalidInput:
        return InvalidInput(f"{self._subject}, line {self._line}", problem, hint=HINT)
