"""Many jobs out of one: a command for each line of a list, and an array of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queuectl.errors import InvalidInput, InvalidItem, QueuectlError, UsageError
from queuectl.job.array import KEY, VARIABLE, parse_array
from queuectl.job.template import ArgvTemplate, Line, ShellTemplate, Template
from queuectl.queue.intake import BOM, Fields, Intake, Numbered, decode
from queuectl.store.ids import new_job_ids


class ForEach(Intake):
    """A job for each line that is not blank."""

    def __init__(self, lines: Sequence[str], template: Template, *, colsep: str | None) -> None:
        self._lines = lines
        self._template = template
        self._colsep = colsep

    def __iter__(self) -> Iterator[Numbered]:
        fill, colsep = self._template.fill, self._colsep
        for number, text in enumerate(self._lines, 1):
            if not self._is_blank(text):
                try:
                    fields = fill(Line(text, number, None if colsep is None else text.split(colsep)))
                except UsageError as error:
                    raise self.blame(number, error) from error
                yield number, fields

    @property
    def size(self) -> int:
        return len(self._lines)

    def _is_blank(self, text: str) -> bool:
        return not text or text.isspace()


class ForEachItem(ForEach):
    """A job for each item between NULs that is not empty: names of files, also with line breaks in them."""

    noun = "item"

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:
        return error if number is None else InvalidItem(number, error)

    def _is_blank(self, text: str) -> bool:
        return not text  # a file may be called " "


class ForEachGiven(ForEachItem):
    """A job for each item, whatever is in it: a program has chosen them."""

    def _is_blank(self, text: str) -> bool:  # noqa: ARG002 # none is
        return False


class Array(Intake):
    """The same job for each index, which it finds in its environment."""

    noun = "index"

    def __init__(self, fields: Fields, indices: Sequence[int]) -> None:
        self._fields = fields
        self._indices = indices

    def __iter__(self) -> Iterator[Numbered]:
        env = self._fields.get("env")
        own = env if isinstance(env, dict) else {}
        for index in self._indices:
            # What is no object is left as it is, for `validate` to say so.
            yield index, {**self._fields, "env": {**own, VARIABLE: str(index)} if env is None or own is env else env}

    def blame(self, number: int | None, error: QueuectlError) -> QueuectlError:  # noqa: ARG002 # the same for every index
        return error

    @property
    def size(self) -> int:
        return len(self._indices)


def for_each(data: bytes, words: Sequence[str], *, nul: bool, colsep: str | None) -> Intake:
    """One word is a template for the shell, several are an argv."""
    separator = None if colsep is None else _separator(colsep, subject="--colsep")
    template = _template(words[0] if len(words) == 1 else words, columns=separator is not None)
    text = decode(data.removeprefix(BOM), first_line=1)
    if nul:
        return ForEachItem(text.split("\0"), template, colsep=separator)
    return ForEach([line.removesuffix("\r") for line in text.split("\n")], template, colsep=separator)


def for_each_given(items: Sequence[str], command: str | Sequence[str], *, colsep: str | None) -> Intake:
    """The same for a program: a text is a template for the shell, anything else an argv."""
    separator = None if colsep is None else _separator(colsep, subject="colsep")
    return ForEachGiven(items, _template(command, columns=separator is not None), colsep=separator)


def _template(command: str | Sequence[str], *, columns: bool) -> Template:
    return (
        ShellTemplate(command, columns=columns) if isinstance(command, str) else ArgvTemplate(command, columns=columns)
    )


def array(fields: Fields, text: str, *, flags: Fields, subject: str = "--array") -> Intake:
    """With `%N` in `text` all of them get one key of their own, of which at most N run at a time. `flags` are put on top later."""
    indices, places = parse_array(text, subject=subject)
    if places is not None:
        if any(given.get(name) is not None for given in (fields, flags) for name in ("key", "places")):
            raise UsageError(
                f"a key and {subject} …%{places} at once: the array has a key of its own",
                hint="leave %N away, and limit the key by its queue: queuectl queue set QUEUE --per-key N",
            )
        fields = {**fields, "key": f"{KEY}{new_job_ids(1)[0]}", "places": places}
    return Array(fields, indices)


def _separator(text: str, *, subject: str) -> str:
    r"""`\t` is a tab, since a shell makes it hard to type one."""
    separator = text.replace("\\t", "\t")
    if not separator:
        raise InvalidInput(subject, "empty", hint=f"say what stands between two columns, like {subject} , or '\\t'")
    return separator
