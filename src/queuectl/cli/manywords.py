"""The words that make many jobs of one: --for-each and --array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from queuectl.errors import InvalidInput, UsageError
from queuectl.job.spec import check_field

if TYPE_CHECKING:
    from queuectl.queue.intake import Intake

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--for-each", metavar="FILE", help="One job a line, - for stdin; {} {/} {.} {n} are the line in the command."
    ),
    click.option("-0", "--null", "nul", is_flag=True, help="With --for-each: what stands between NULs, not lines."),
    click.option("--colsep", metavar="TEXT", help="With --for-each: what parts the columns {1} {2}."),
    click.option("--on-complete", metavar="CMD", help="With --batch: run this once, when all of the batch have ended."),
    click.option(
        "--array",
        metavar="RANGE",
        help="One job an index (1-100, 1,3,7, 0-90:10; %4 behind: 4 at a time), in QUEUECTL_ARRAY_INDEX.",
    ),
)


def many_options(function: Function) -> Function:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_on_complete(options: Mapping[str, Any], *, stream: bool) -> str | None:
    """What runs when the batch has ended."""
    command: str | None = options["on_complete"]
    if command is None:
        return None
    if options["batch"] is None:
        raise UsageError("--on-complete is for a batch", hint="give the batch a name: --batch NAME")
    if stream:
        hint = "the batch could have ended before the next line; leave one of the two away"
        raise UsageError("--on-complete and --stream at once", hint=hint)
    check_field("command", command, spelled="--on-complete")
    return command


def read_many(options: Mapping[str, Any]) -> Many | None:
    """None if it is about the jobs that are there, and not about making many of one."""
    path, array = options["for_each"], options["array"]
    for name, spelled in (("nul", "-0"), ("colsep", "--colsep")):
        if options[name] not in (None, False) and path is None:
            raise UsageError(f"{spelled} is for --for-each", hint="say which lines: --for-each FILE, or - for stdin")
    if path is not None and array is not None:
        raise UsageError("--for-each and --array at once", hint="leave one of the two away")
    if path == "":
        raise InvalidInput("--for-each", "the name is empty", hint="give the name of a file, or - for stdin")
    return None if path is None and array is None else Many(path, array, nul=options["nul"], colsep=options["colsep"])


class Many:
    def __init__(self, path: str | None, array: str | None, *, nul: bool, colsep: str | None) -> None:
        self._path = path
        self._array = array
        self._nul = nul
        self._colsep = colsep

    def refuse_beside(self, *, file: str | None, stream: bool, form: str | None) -> None:
        beside = {"--file": file, "--stream": stream, "--format": form}
        if other := next((name for name, value in beside.items() if value), None):
            spelled = "--array" if self._path is None else "--for-each"
            raise UsageError(f"{other} and {spelled} at once", hint="leave one of the two away")

    def intake(
        self,
        words: tuple[str, ...],
        flags: dict[str, object],
        *,
        read: Callable[[str], bytes],
        from_words: Callable[[tuple[str, ...], Mapping[str, object]], Intake],
    ) -> Intake:
        """The jobs that they make. What --command says is taken out of `flags`: it holds for each job in another way."""
        from queuectl.queue import many

        if self._path is None:
            given = from_words(words, flags)
            if given.is_batch:
                raise UsageError("--array takes one job, and here are several", hint="give one object, or a command")
            ((_, fields),) = given
            return many.array(fields, str(self._array), flags=flags)
        if "command" in flags:
            if words:
                raise UsageError(
                    "what to run was said twice: by words and by --command", hint="leave one of the two away"
                )
            words = (str(flags.pop("command")),)
        if not "".join(words).strip():
            raise UsageError("nothing to run for each line", hint="say what to run: --for-each FILE 'gzip {}'")
        return many.for_each(read(self._path), words, nul=self._nul, colsep=self._colsep)
